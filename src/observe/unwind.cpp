// SPDX-License-Identifier: BSD-3-Clause
#include "observe/unwind.hpp"

#include "observe/unwind_tables.hpp"

namespace stretto::observe {
namespace {

// ---- Expressions ----

// Those that occur in tables for unwinding: the linker's stubs and frames of signals.
class Expression {
 public:
  Expression(int pid, const sys::ThreadRegisters& registers) : pid_(pid), registers_(registers) {}

  bool value(std::uint64_t address, std::uint32_t length, std::uint64_t* result, const std::uint64_t* first = nullptr) {
    Bytes bytes;
    if (!bytes.load(pid_, address, length)) return false;
    if (first != nullptr) push(*first);
    while (bytes.more()) {
      if (!step(bytes) || bytes.broken() || failed_) return false;
    }
    *result = pop();
    return !failed_;
  }

 private:
  void push(std::uint64_t value) {
    if (depth_ == kDepth)
      failed_ = true;
    else
      stack_[depth_++] = value;
  }
  std::uint64_t pop() {
    if (depth_ == 0) {
      failed_ = true;
      return 0;
    }
    return stack_[--depth_];
  }
  bool step(Bytes& bytes) {
    const auto code = bytes.get<std::uint8_t>();
    if (code >= 0x30 && code <= 0x4f) {
      push(code - 0x30u);
      return true;
    }
    if (code >= 0x70 && code <= 0x8f) {
      const unsigned number = code - 0x70u;
      if (number >= kUnwoundRegisters) return false;
      push(registers_.of[number] + static_cast<std::uint64_t>(bytes.sleb()));
      return true;
    }
    switch (code) {
      case 0x06: {
        std::uint64_t value = 0;
        if (!read_value(pid_, pop(), &value)) return false;
        push(value);
        return true;
      }
      case 0x08: push(bytes.get<std::uint8_t>()); return true;
      case 0x09: push(static_cast<std::uint64_t>(std::int64_t{bytes.get<std::int8_t>()})); return true;
      case 0x0a: push(bytes.get<std::uint16_t>()); return true;
      case 0x10: push(bytes.uleb()); return true;
      case 0x11: push(static_cast<std::uint64_t>(bytes.sleb())); return true;
      case 0x12: {
        const std::uint64_t top = pop();
        push(top);
        push(top);
        return true;
      }
      case 0x23: push(pop() + bytes.uleb()); return true;
      default: return binary(code);
    }
  }
  bool binary(std::uint8_t code) {
    const std::uint64_t b = pop(), a = pop();
    switch (code) {
      case 0x1a: push(a & b); return true;
      case 0x1c: push(a - b); return true;
      case 0x22: push(a + b); return true;
      case 0x24: push(a << (b & 63)); return true;
      case 0x2a: push(static_cast<std::int64_t>(a) >= static_cast<std::int64_t>(b)); return true;
      default: return false;
    }
  }

  static constexpr unsigned kDepth = 16;
  int pid_;
  const sys::ThreadRegisters& registers_;
  std::uint64_t stack_[kDepth];
  unsigned depth_ = 0;
  bool failed_ = false;
};

// ---- From a frame to its caller's ----

// The return address may be signed (AArch64). User addresses have at most 48 bits.
std::uint64_t without_signature(std::uint64_t address) {
#if defined(__aarch64__)
  return address & ((std::uint64_t{1} << 48) - 1);
#else
  return address;
#endif
}

bool step_by_rules(int pid, const Function& function, const Row& row, sys::ThreadRegisters* registers) {
  const sys::ThreadRegisters before = *registers;
  std::uint64_t frame = 0;
  if (row.frame_is_expression) {
    if (!Expression(pid, before).value(row.frame_expression, row.frame_expression_bytes, &frame)) return false;
  } else {
    if (row.frame_register >= kUnwoundRegisters) return false;
    frame = before.of[row.frame_register] + static_cast<std::uint64_t>(row.frame_offset);
  }
  registers->of[sys::kStackRegister] = frame;
  for (unsigned i = 0; i < kUnwoundRegisters; ++i) {
    const Rule& rule = row.of[i];
    const std::uint64_t there = frame + static_cast<std::uint64_t>(rule.number);
    std::uint64_t& value = registers->of[i];
    switch (rule.kind) {
      case Rule::Kind::same: break;
      case Rule::Kind::undefined:
        if (i == function.common.return_register) return false;  // the outermost frame
        break;
      case Rule::Kind::offset:
        if (!read_value(pid, there, &value)) return false;
        break;
      case Rule::Kind::value_offset: value = there; break;
      case Rule::Kind::other:
        if (static_cast<std::uint64_t>(rule.number) >= kUnwoundRegisters) return false;
        value = before.of[rule.number];
        break;
      case Rule::Kind::expression:
      case Rule::Kind::value_expression: {
        std::uint64_t result = 0;
        if (!Expression(pid, before)
                 .value(static_cast<std::uint64_t>(rule.number), rule.expression_bytes, &result, &frame))
          return false;
        if (rule.kind == Rule::Kind::value_expression)
          value = result;
        else if (!read_value(pid, result, &value))
          return false;
        break;
      }
    }
  }
  registers->pc = without_signature(registers->of[function.common.return_register]);
  return true;
}

// A frame pointer leads to the caller's, and the return address lies beside it.
bool step_by_frame_pointer(int pid, sys::ThreadRegisters* registers) {
  struct {
    std::uint64_t frame, pc;
  } link{};
  const std::uint64_t frame = registers->of[sys::kFrameRegister];
  if (frame < registers->of[sys::kStackRegister] || !read_value(pid, frame, &link)) return false;
  registers->of[sys::kStackRegister] = frame + sizeof link;
  registers->of[sys::kFrameRegister] = link.frame;
  registers->pc = without_signature(link.pc);
  return true;
}

}  // namespace

unsigned unwind(int pid, const CodeMap& code, const sys::ThreadRegisters& innermost, std::uint64_t* addresses,
                unsigned most) {
  sys::ThreadRegisters registers = innermost;
  bool interrupted = true;  // the address is that of an instruction, not the one behind a call
  unsigned count = 0;
  while (count < most && registers.pc != 0) {
    const std::uint64_t pc = interrupted ? registers.pc : registers.pc - 1;
    if (count != 0 && code.find(pc) == nullptr) break;
    addresses[count++] = pc;
    Function function;
    Row row;
    const std::uint64_t stack = registers.of[sys::kStackRegister];
    const bool known = find_function(pid, code, pc, &function) && rules_at(pid, function, pc, &row);
    if (known ? !step_by_rules(pid, function, row, &registers) : !step_by_frame_pointer(pid, &registers)) break;
    interrupted = known && function.common.is_signal;
    if (!interrupted && registers.of[sys::kStackRegister] <= stack && count > 1) break;  // stacks grow downward
  }
  return count;
}

}  // namespace stretto::observe
