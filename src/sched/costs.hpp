// SPDX-License-Identifier: BSD-3-Clause
// What steps cost: LogGP with S4's copy. All times are in one unit of the user's, nanoseconds in
// profiles.
//
//   L  latency       from the sender's last instruction to the arrival of the first byte
//   o  overhead      for which the processor of the sender (o_s) or receiver (o_r) is busy
//   O  send_byte,    the same, per byte
//      receive_byte
//   g  gap           least time between the beginnings of two messages of one rank
//   G  byte_gap      time of every byte after the first, on the wire and in both ranks' ports
//   h  handling      processor time of a message beside o, at either end: posting a receive,
//                    seeing that something is complete; the message itself does not wait for it
//   H  handling_byte the same, per byte, where data of the two directions obstruct each other
//      requests_queue  not 0: a receiver's request for a long message goes by the connection on
//                    which it sends, behind its data. For a job's own messages: schedules send
//                    short segments
//   gamma, lambda    processor time per byte combined, per byte copied
//
// A rank that sends m bytes is busy for o_s + O_s m. Its next message begins at least g + (m - 1) G
// after this one. The last byte arrives L + (m - 1) G after the sender was busy, or later if the
// receiver's port is taken. Then the receiver is busy for o_r + O_r m. If it combines what arrives,
// it is busy for gamma m more.
//
// Between messages that it may send, a processor first does the handling that is due. The handling
// of a send is due when it is sent; that of all receives is due when the rank begins. Each path has
// parameters of its own, in pieces by message length. Paths are the levels of a hierarchy, lowest
// first.
//
// LogP: Culler et al. 1993. G: Alexandrov et al. 1995. O: Hoefler et al. 2010. lambda: Kurnosov
// 2016 (S4). h is ours.
#pragma once
#include <algorithm>
#include <cstdint>

#include "topo/placement.hpp"

namespace stretto::sched {

inline constexpr int kMostPieces = 12;

struct LogGP {
  double from_bytes = 0;  // this piece is of messages of so many bytes and more
  double latency = 0;
  double send_overhead = 0, receive_overhead = 0;
  double gap = 0, byte_gap = 0;
  double send_byte = 0, receive_byte = 0;
  double handling = 0, handling_byte = 0;
  double requests_queue = 0;
};

// Processor time of work on so many bytes.
struct Work {
  double from_bytes = 0;
  double fixed = 0, per_byte = 0;
  [[nodiscard]] double over(std::uint64_t bytes) const { return fixed + per_byte * static_cast<double>(bytes); }
};

// Ascending by from_bytes. Lengths below the first piece count as of the first.
template <class Piece>
struct Pieces {
  Piece piece[kMostPieces] = {};
  int count = 1;

  [[nodiscard]] const Piece& at(std::uint64_t bytes) const {
    int i = count - 1;
    while (i > 0 && piece[i].from_bytes > static_cast<double>(bytes)) --i;
    return piece[i];
  }
};

enum class GapRule : std::uint8_t {
  per_direction,  // between two sends, and between two receives, of a rank
  any_two,        // between any two messages of a rank
};

// What a rank's receiving port does with messages that come together.
enum class PortRule : std::uint8_t {
  in_turn,  // one after the other, by their first bytes
  fair,     // all at once, each with its share
};

// A port that the ranks of a domain share, as a node shares its network card. All that leaves goes
// through one such port, and all that enters through another. A node of several cards has one for
// each, and each rank uses its own card (topo/hierarchy.hpp).
struct Port {
  bool there = false;
  double gap = 0, byte_gap = 0;
  // Bytes that a rested port lets through at once: it keeps its rate in the long run only.
  double burst_bytes = 0;
  [[nodiscard]] double bytes_time(std::uint64_t bytes) const {
    return bytes > 1 ? byte_gap * static_cast<double>(bytes - 1) : 0;
  }
  [[nodiscard]] double interval(std::uint64_t bytes) const { return gap + bytes_time(bytes); }
  // A message may enter so long before the port is done with what went before: what the message
  // leaves of a burst.
  [[nodiscard]] double ahead(std::uint64_t bytes) const {
    return std::max(0.0, byte_gap * burst_bytes - bytes_time(bytes));
  }
  // How long a message's last byte is behind its first.
  [[nodiscard]] double through(std::uint64_t bytes) const {
    const double felt = static_cast<double>(bytes) - 1 - burst_bytes;
    return felt > 0 ? byte_gap * felt : 0;
  }
};

// Processors that the ranks of a domain share, where there are fewer of them than ranks.
struct Processors {
  int count = 0;   // 0: every rank has one of its own
  int level = -1;  // of the domains; -1: all ranks are one domain
  // A rank that waits sees its message so much later, as long as other ranks of the domain are not
  // done: they take turns to look.
  double turn = 0;
};

struct Costs {
  Pieces<LogGP> paths[topo::kMostLevels + 1];  // by the lowest level that joins both ranks
  Pieces<Work> reduce, copy;
  GapRule gap_rule = GapRule::per_direction;
  PortRule port_rule = PortRule::in_turn;
  // [0]: of every rank alone. [i + 1]: of the domains of level i.
  // Paths above that level go through them.
  Port ports[topo::kMostLevels + 1];
  Processors processors;

  // The same parameters for every path and length.
  static Costs uniform(const LogGP& parameters, double gamma, double lambda) {
    Costs costs;
    for (Pieces<LogGP>& path : costs.paths) path.piece[0] = parameters;
    costs.reduce.piece[0].per_byte = gamma;
    costs.copy.piece[0].per_byte = lambda;
    return costs;
  }
};

}  // namespace stretto::sched
