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
// With a network that reads remote memory (remote_reads.hpp):
//
//   reach   both       format        of the payload 0        how this process is reached there
//   leave   both       0             0              0        none: it is of no use here any more
//   offer   sender     of a piece    of the piece   whole    where it stands: address, key, slot
//   taken   receiver   a slot        0              refused  none: it is free; if `refused` is 1,
//                                                            its piece is to come as data
//
// Index, comm and call name the message. A fail names the communicator alone. Reach, leave and
// taken name nothing.
#pragma once
#include <cstdint>

#include "transport/bulk/ranges.hpp"
#include "transport/fabric/fabric.hpp"
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
inline constexpr std::uint32_t kUrgentBytes = 64 << 10;  // of a message, beside queued data (connection.hpp)
inline constexpr std::uint32_t kMostRanges = 16;         // of an ask
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;  // of a message

enum class Kind : std::uint32_t { ask = 0x53740001, hurry, data, eager, ack, fail, grant, reach, leave, offer, taken };
inline constexpr std::size_t kMostWords = kMostRanges * sizeof(Range);  // of a payload that the driver reads itself

// What an offer's payload says.
struct Offered {
  static constexpr std::size_t kBytes = 24;
  FabricWindow window;
  std::uint32_t slot = 0;

  void write(char* to) const;
  // False: there is no such slot.
  bool read(const char* from);
};

struct Head {
  static constexpr std::size_t kBytes = 48;
  Kind kind{};
  Key key;
  std::uint64_t offset = 0, bytes = 0, total = 0;

  void write(char* to) const;
  // False: no driver of ours writes such a head.
  bool read(const char* from);
  [[nodiscard]] std::uint64_t payload_bytes() const {
    switch (kind) {
      case Kind::ask: return bytes * sizeof(Range);
      case Kind::offer: return Offered::kBytes;
      case Kind::data:
      case Kind::eager:
      case Kind::reach: return bytes;
      default: return 0;
    }
  }

 private:
  [[nodiscard]] bool makes_sense() const;
};

void write_ranges(const Range* ranges, std::uint32_t count, char* to);
// False: a range is empty, or beyond all messages.
bool read_ranges(const char* from, std::uint32_t count, Range* ranges);

// A reach's payload: its provider's name, filled up with zeros, and its address. Returns its bytes.
std::uint32_t write_address(const FabricAddress& address, char* to);
// False: this is no address.
bool read_address(const char* from, const Head& head, FabricAddress* address);

}  // namespace stretto::transport::bulk
