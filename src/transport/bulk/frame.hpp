// SPDX-License-Identifier: BSD-3-Clause
// What two drivers say to each other: frames, each a head of 48 bytes and its payload. Numbers are
// little-endian.
//
//   bytes  0      4       8      16     24       32      40
//          kind   index   comm   call   offset   bytes   total
//
//   kind    from       offset        bytes          total    payload
//   ask     receiver   granted       ranges         0        so many ranges of 16 bytes: the order
//   grant   receiver   0             more           0        none: so many bytes more may come
//   hurry   receiver   of a range    of the range   0        none
//   data    sender     of a piece    of the piece   whole    the piece
//   eager   sender     0             whole          whole    the message
//   ack     receiver   0             0              0        none: an eager message's credit
//   fail    both       a reason      0              0        none: the communicator has failed
//
// Index, comm and call name the message. A fail names the communicator alone.
#pragma once
#include <cstdint>

#include "transport/bulk/ranges.hpp"
#include "transport/transport.hpp"

namespace stretto::transport::bulk {

// Names a message among those of a pair in one direction. Both ends know it. A communicator's id
// is never used again. Each message of a communicator has another name.
struct Key {
  std::uint64_t comm = 0, call = 0;
  std::uint32_t index = 0;
  bool operator==(const Key&) const = default;
};

inline constexpr std::uint32_t kEagerBytes = 16 << 10;
inline constexpr std::uint32_t kCredit = 16;             // eager messages of a pair and direction that wait for an ack
inline constexpr std::uint32_t kPieceBytes = 128 << 10;  // of a data frame, at most
inline constexpr std::uint32_t kMostRanges = 16;         // of an ask
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;  // of a message

enum class Kind : std::uint32_t { ask = 0x53740001, hurry, data, eager, ack, fail, grant };

struct Head {
  static constexpr std::size_t kBytes = 48;
  Kind kind{};
  Key key;
  std::uint64_t offset = 0, bytes = 0, total = 0;

  void write(char* to) const;
  // False: no driver of ours writes such a head.
  bool read(const char* from);
  [[nodiscard]] std::uint64_t payload_bytes() const {
    return kind == Kind::ask ? bytes * sizeof(Range) : kind == Kind::data || kind == Kind::eager ? bytes : 0;
  }

 private:
  [[nodiscard]] bool makes_sense() const;
};

void write_ranges(const Range* ranges, std::uint32_t count, char* to);
// False: a range is empty, or beyond all messages.
bool read_ranges(const char* from, std::uint32_t count, Range* ranges);

}  // namespace stretto::transport::bulk
