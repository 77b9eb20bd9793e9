// SPDX-License-Identifier: BSD-3-Clause
// Type signatures. A signature is the sequence of basic elements in a message, whatever datatypes
// describe it. Sender and receiver must agree on it, so Stretto compares hashes. The hash of a
// whole follows from the hashes of its parts: 2 x {int, int} hashes like 4 x int.
//
// Nearly every message is a sequence of n equal elements. It hashes as (element, n), by one
// multiplication for any count. A mixed sequence is a polynomial in kBase whose coefficients are
// the elements' codes. n repetitions take log n steps.
//
// What programs may mix hashes alike. An element's code is its kind and size: C and Fortran types
// of one size have the same code, signed or not. A complex number is two reals. Elements of one
// byte (MPI_BYTE, MPI_CHAR, MPI_PACKED) match everything, and a signature with such elements says
// so. A signature with an unknown element says nothing.
#pragma once
#include <cstdint>

namespace stretto {

enum class ElementKind : std::uint8_t { unknown, bytes, integer, real };

// Kind and size of a basic element. 0: unknown, or several different ones.
using ElementCode = std::uint16_t;
constexpr ElementCode element_code(ElementKind kind, unsigned bytes) {
  return static_cast<ElementCode>(static_cast<unsigned>(kind) << 8 | (bytes & 0xff));
}
constexpr ElementKind kind_of(ElementCode code) { return static_cast<ElementKind>(code >> 8); }
constexpr unsigned bytes_of(ElementCode code) { return code & 0xff; }

// The part of a signature that fits into a record's header: 22 bits of hash, and whether single
// bytes are among the elements. 0: nothing is known.
using Stamp = std::uint32_t;
inline constexpr unsigned kStampBits = 24;
constexpr bool has_bytes(Stamp stamp) { return (stamp & 1) != 0; }

class Signature {
 public:
  constexpr Signature() = default;

  // Appends `count` elements of one kind. An unknown element makes the whole signature unknown.
  constexpr void append(ElementCode code, std::uint64_t count) {
    Signature more;
    more.elements_ = 1;
    more.hash_ = code;
    more.power_ = kBase;
    more.uniform_ = code;
    more.has_bytes_ = kind_of(code) == ElementKind::bytes;
    more.unknown_ = kind_of(code) == ElementKind::unknown;
    append(more, count);
  }
  // Appends all of `part`, `count` times.
  constexpr void append(const Signature& part, std::uint64_t count) {
    if (part.elements_ == 0 || count == 0) return;
    uniform_ = elements_ == 0 || uniform_ == part.uniform_ ? part.uniform_ : 0;
    unknown_ = unknown_ || part.unknown_;
    has_bytes_ = has_bytes_ || part.has_bytes_;
    const Polynomial whole = join({hash_, power_}, repeat({part.hash_, part.power_}, count));
    hash_ = whole.hash;
    power_ = whole.power;
    elements_ += part.elements_ * count;
  }

  // The stamp of `count` elements that each have this signature.
  [[nodiscard]] constexpr Stamp stamp(std::uint64_t count) const {
    if (elements_ == 0 || unknown_ || count == 0) return 0;
    const std::uint64_t hash = uniform_ != 0 ? uniform_ * kMixer + elements_ * count : repeated(count);
    return ((static_cast<Stamp>(hash * kBase >> 40) | 2) & ~Stamp{1}) | (has_bytes_ ? 1 : 0);
  }
  // The code of all elements if they are alike, otherwise 0.
  [[nodiscard]] constexpr ElementCode element() const { return unknown_ ? ElementCode{0} : uniform_; }

 private:
  [[nodiscard, gnu::noinline]] constexpr std::uint64_t repeated(std::uint64_t count) const {
    return mix(repeat({hash_, power_}, count).hash);
  }
  static constexpr std::uint64_t kBase =
      0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio: odd, and its bits have no pattern

  // The hash of a sequence, and kBase to the power of its length.
  struct Polynomial {
    std::uint64_t hash, power;
  };
  static constexpr Polynomial join(Polynomial first, Polynomial second) {
    return {first.hash * second.power + second.hash, first.power * second.power};
  }
  static constexpr Polynomial repeat(Polynomial part, std::uint64_t count) {
    Polynomial whole{0, 1};
    for (; count != 0; count >>= 1) {
      if ((count & 1) != 0) whole = join(whole, part);
      part = join(part, part);
    }
    return whole;
  }
  static constexpr std::uint64_t kMixer =
      0xd6e8feb86659fd93;  // odd, no pattern: spreads inputs that differ in few bits
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ x >> 32) * kMixer;
    return x ^ x >> 32;
  }

  std::uint64_t elements_ = 0;
  std::uint64_t hash_ = 0;
  std::uint64_t power_ = 1;
  ElementCode uniform_ = 0;
  bool has_bytes_ = false;
  bool unknown_ = false;
};

}  // namespace stretto
