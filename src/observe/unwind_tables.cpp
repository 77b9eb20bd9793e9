// SPDX-License-Identifier: BSD-3-Clause
#include "observe/unwind_tables.hpp"

namespace stretto::observe {
namespace {

bool read_common(int pid, std::uint64_t address, Common* common) {
  Bytes bytes;
  std::uint32_t length = 0;
  if (!read_value(pid, address, &length) || length == 0 || length == 0xffffffff) return false;
  if (!bytes.load(pid, address + 4, length)) return false;
  if (bytes.get<std::uint32_t>() != 0) return false;
  const auto version = bytes.get<std::uint8_t>();
  char words[8] = "";
  for (std::size_t i = 0;; ++i) {
    const char each = bytes.get<char>();
    if (i < sizeof words - 1) words[i] = each;
    if (each == 0) break;
  }
  common->code_unit = bytes.uleb();
  common->data_unit = bytes.sleb();
  common->return_register = version == 1 ? bytes.get<std::uint8_t>() : bytes.uleb();
  common->end = address + 4 + length;
  if (words[0] == 'z') {
    common->has_data = true;
    const std::uint64_t more = bytes.uleb();
    const std::size_t after = bytes.at() + more;
    for (const char* word = words + 1; *word != 0; ++word) {
      if (*word == 'R') common->encoding = bytes.get<std::uint8_t>();
      if (*word == 'L') (void)bytes.get<std::uint8_t>();
      if (*word == 'S') common->is_signal = true;
      if (*word == 'P') (void)bytes.pointer(bytes.get<std::uint8_t>(), false);
    }
    bytes.go(after);
  }
  common->instructions = bytes.address();
  return !bytes.broken() && common->return_register < kUnwoundRegisters && common->code_unit != 0;
}

bool read_function(int pid, std::uint64_t address, std::uint64_t pc, Function* function) {
  Bytes bytes;
  std::uint32_t length = 0;
  if (!read_value(pid, address, &length) || length == 0 || length == 0xffffffff) return false;
  if (!bytes.load(pid, address + 4, length)) return false;
  const auto back = bytes.get<std::uint32_t>();
  if (!read_common(pid, address + 4 - back, &function->common)) return false;
  function->begin = bytes.pointer(function->common.encoding);
  const std::uint64_t size = bytes.pointer(function->common.encoding, false);
  if (pc < function->begin || pc - function->begin >= size) return false;
  if (function->common.has_data) {
    const std::uint64_t more = bytes.uleb();
    bytes.skip(more);
  }
  function->instructions = bytes.address();
  function->end = address + 4 + length;
  return !bytes.broken();
}

// ---- Its instructions ----

class Rows {
 public:
  Rows(int pid, const Function& function) : pid_(pid), function_(function), location_(function.begin) {}

  // The rules at `pc`. False: they cannot be read.
  bool at(std::uint64_t pc, Row* row) {
    if (!run(function_.common.instructions, function_.common.end, ~std::uint64_t{0})) return false;
    initial_ = row_;
    if (!run(function_.instructions, function_.end, pc)) return false;
    *row = row_;
    return true;
  }

 private:
  static constexpr unsigned kDepth = 8;

  void set(std::uint64_t number, Rule::Kind kind, std::int64_t value, std::uint32_t bytes = 0) {
    if (number < kUnwoundRegisters) row_.of[number] = {kind, value, bytes};
  }
  void restore(std::uint64_t number) {
    if (number < kUnwoundRegisters) row_.of[number] = initial_.of[number];
  }
  void set_expression(Bytes& bytes, Rule::Kind kind) {
    const std::uint64_t number = bytes.uleb(), length = bytes.uleb();
    set(number, kind, static_cast<std::int64_t>(bytes.address()), static_cast<std::uint32_t>(length));
    bytes.skip(length);
  }
  void frame(std::uint64_t number, std::int64_t offset) {
    row_.frame_register = number;
    row_.frame_offset = offset;
    row_.frame_is_expression = false;
  }

  bool run(std::uint64_t begin, std::uint64_t end, std::uint64_t pc) {
    Bytes bytes;
    if (begin >= end) return true;
    if (!bytes.load(pid_, begin, end - begin)) return false;
    while (bytes.more() && !bytes.broken()) {
      if (!step(bytes)) return false;
      if (location_ > pc) break;
    }
    return true;
  }

  [[nodiscard]] std::int64_t scaled(std::uint64_t value) const {
    return static_cast<std::int64_t>(value) * function_.common.data_unit;
  }
  // A row holds up to the next location: so the old one is kept until it is reached.
  void advance(std::uint64_t units) { location_ += units * function_.common.code_unit; }

  bool step(Bytes& bytes) {
    const auto code = bytes.get<std::uint8_t>();
    const std::uint64_t low = code & 0x3f;
    switch (code & 0xc0) {
      case 0x40: advance(low); return true;
      case 0x80: set(low, Rule::Kind::offset, scaled(bytes.uleb())); return true;
      case 0xc0: restore(low); return true;
      default: break;
    }
    if (code <= 0x04) return step_location(code, bytes);
    const bool is_frame = (code >= 0x0c && code <= 0x0f) || code == 0x12 || code == 0x13;
    return is_frame ? step_frame(code, bytes) : step_register(code, bytes);
  }

  bool step_location(std::uint8_t code, Bytes& bytes) {
    switch (code) {
      case 0x00: return true;
      case 0x01: location_ = bytes.pointer(function_.common.encoding); return true;
      case 0x02: advance(bytes.get<std::uint8_t>()); return true;
      case 0x03: advance(bytes.get<std::uint16_t>()); return true;
      default: advance(bytes.get<std::uint32_t>()); return true;
    }
  }

  // Where the frame of the caller is.
  bool step_frame(std::uint8_t code, Bytes& bytes) {
    std::uint64_t number = 0;
    switch (code) {
      case 0x0c:
        number = bytes.uleb();
        frame(number, static_cast<std::int64_t>(bytes.uleb()));
        return true;
      case 0x0d: frame(bytes.uleb(), row_.frame_offset); return true;
      case 0x0e: row_.frame_offset = static_cast<std::int64_t>(bytes.uleb()); return true;
      case 0x0f:
        row_.frame_is_expression = true;
        row_.frame_expression_bytes = static_cast<std::uint32_t>(bytes.uleb());
        row_.frame_expression = bytes.address();
        bytes.skip(row_.frame_expression_bytes);
        return true;
      case 0x12:
        number = bytes.uleb();
        frame(number, bytes.sleb() * function_.common.data_unit);
        return true;
      default: row_.frame_offset = bytes.sleb() * function_.common.data_unit; return true;
    }
  }

  // Where the caller's registers are, and rows that are kept.
  bool step_register(std::uint8_t code, Bytes& bytes) {
    using Kind = Rule::Kind;
    std::uint64_t number = 0;
    switch (code) {
      case 0x05:
        number = bytes.uleb();
        set(number, Kind::offset, scaled(bytes.uleb()));
        return true;
      case 0x06: restore(bytes.uleb()); return true;
      case 0x07: set(bytes.uleb(), Kind::undefined, 0); return true;
      case 0x08: set(bytes.uleb(), Kind::same, 0); return true;
      case 0x09:
        number = bytes.uleb();
        set(number, Kind::other, static_cast<std::int64_t>(bytes.uleb()));
        return true;
      case 0x0a:
        if (depth_ == kDepth) return false;
        kept_[depth_++] = row_;
        return true;
      case 0x0b:
        if (depth_ == 0) return false;
        row_ = kept_[--depth_];
        return true;
      case 0x10: set_expression(bytes, Kind::expression); return true;
      case 0x11:
        number = bytes.uleb();
        set(number, Kind::offset, bytes.sleb() * function_.common.data_unit);
        return true;
      case 0x14:
        number = bytes.uleb();
        set(number, Kind::value_offset, scaled(bytes.uleb()));
        return true;
      case 0x15:
        number = bytes.uleb();
        set(number, Kind::value_offset, bytes.sleb() * function_.common.data_unit);
        return true;
      case 0x16: set_expression(bytes, Kind::value_expression); return true;
      case 0x2d: return true;  // AArch64: the return address is signed from here on, or no more
      case 0x2e: (void)bytes.uleb(); return true;
      default: return false;
    }
  }

  int pid_;
  const Function& function_;
  std::uint64_t location_;
  Row row_, initial_, kept_[kDepth];
  unsigned depth_ = 0;
};

}  // namespace

// The sorted table in .eh_frame_hdr leads to the function's entry.
bool find_function(int pid, const CodeMap& code, std::uint64_t pc, Function* function) {
  constexpr std::uint8_t kSorted = 0x3b;  // relative to the header, 4 bytes
  const CodeObject* const object = code.find(pc);
  if (object == nullptr || object->unwinds == 0) return false;
  Bytes header;
  if (!header.load(pid, object->unwinds, 32)) return false;
  const auto version = header.get<std::uint8_t>(), frames = header.get<std::uint8_t>();
  const auto counts = header.get<std::uint8_t>(), table = header.get<std::uint8_t>();
  (void)header.pointer(frames);
  const std::uint64_t count = header.pointer(counts);
  if (version != 1 || table != kSorted || header.broken()) return false;
  struct Entry {
    std::int32_t begin, function;
  } entry{};
  const std::uint64_t entries = header.address();
  std::uint64_t low = 0, high = count;
  const auto wanted = static_cast<std::int64_t>(pc - object->unwinds);
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    if (!read_value(pid, entries + middle * sizeof entry, &entry)) return false;
    if (entry.begin <= wanted)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0 || !read_value(pid, entries + (low - 1) * sizeof entry, &entry)) return false;
  return read_function(pid, object->unwinds + static_cast<std::uint64_t>(std::int64_t{entry.function}), pc, function);
}

bool rules_at(int pid, const Function& function, std::uint64_t pc, Row* row) { return Rows(pid, function).at(pc, row); }

}  // namespace stretto::observe
