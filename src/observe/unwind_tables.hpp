// SPDX-License-Identifier: BSD-3-Clause
// Tables for unwinding in the memory of a process: which function has an address, and where its
// caller's registers are there. Private to unwind.cpp.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "observe/code_map.hpp"
#include "observe/peer_memory.hpp"
#include "sys/stopped_threads.hpp"

namespace stretto::observe {

using sys::kUnwoundRegisters;

// Some bytes of the process's memory. Beyond its end it reads zeros and is `broken`.
class Bytes {
 public:
  static constexpr std::size_t kMost = 2048;

  bool load(int pid, std::uint64_t address, std::size_t bytes) {
    at_ = 0;
    address_ = address;
    size_ = std::min(bytes, kMost);
    return read_memory(pid, address, data_, size_);
  }
  [[nodiscard]] bool more() const { return at_ < size_; }
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] std::uint64_t address() const { return address_ + at_; }
  void skip(std::size_t bytes) { at_ = std::min(at_ + bytes, size_); }
  void go(std::size_t at) { at_ = std::min(at, size_); }
  [[nodiscard]] std::size_t at() const { return at_; }
  template <class T>
  T get() {
    T value{};
    if (size_ - at_ < sizeof value) {
      broken_ = true;
      at_ = size_;
      return value;
    }
    std::memcpy(&value, data_ + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = get<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    unsigned shift = 0;
    std::uint8_t byte = 0x80;
    while ((byte & 0x80) != 0 && shift < 64) {
      byte = get<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7fu} << shift;
      shift += 7;
    }
    if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }
  // A pointer in one of the encodings of exception tables. `application`: whether it is relative.
  std::uint64_t pointer(std::uint8_t encoding, bool application = true) {
    constexpr std::uint8_t kOmitted = 0xff, kRelative = 0x10;
    if (encoding == kOmitted) return 0;
    const std::uint64_t here = address();
    std::uint64_t value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c: value = get<std::uint64_t>(); break;
      case 0x01: value = uleb(); break;
      case 0x02: value = get<std::uint16_t>(); break;
      case 0x03: value = get<std::uint32_t>(); break;
      case 0x09: value = static_cast<std::uint64_t>(sleb()); break;
      case 0x0a: value = static_cast<std::uint64_t>(std::int64_t{get<std::int16_t>()}); break;
      case 0x0b: value = static_cast<std::uint64_t>(std::int64_t{get<std::int32_t>()}); break;
      default: broken_ = true; break;
    }
    return application && (encoding & 0x70) == kRelative ? value + here : value;
  }

 private:
  unsigned char data_[kMost];
  std::uint64_t address_ = 0;
  std::size_t at_ = 0, size_ = 0;
  bool broken_ = false;
};

// Where a register of the caller is.
struct Rule {
  enum class Kind : std::uint8_t { same, undefined, offset, value_offset, other, expression, value_expression };
  Kind kind = Kind::same;
  std::int64_t number = 0;  // from the frame's address, or a register, or where the expression begins
  std::uint32_t expression_bytes = 0;
};

struct Row {
  std::uint64_t frame_register = 0;
  std::int64_t frame_offset = 0;
  bool frame_is_expression = false;
  std::uint64_t frame_expression = 0;  // its address
  std::uint32_t frame_expression_bytes = 0;
  Rule of[kUnwoundRegisters];
};

struct Common {  // a CIE
  std::uint64_t code_unit = 1;
  std::int64_t data_unit = 1;
  std::uint64_t return_register = sys::kReturnRegister;
  std::uint8_t encoding = 0;  // of pointers
  bool is_signal = false, has_data = false;
  std::uint64_t instructions = 0, end = 0;  // addresses
};

struct Function {  // an FDE
  Common common;
  std::uint64_t begin = 0;
  std::uint64_t instructions = 0, end = 0;
};

// False: no table has the address.
bool find_function(int pid, const CodeMap& code, std::uint64_t pc, Function* function);
// The rules at `pc`. False: they cannot be read.
bool rules_at(int pid, const Function& function, std::uint64_t pc, Row* row);

}  // namespace stretto::observe
