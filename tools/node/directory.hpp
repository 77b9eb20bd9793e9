// SPDX-License-Identifier: BSD-3-Clause
// Who has which line of shared memory, and what it takes to get it: a directory of caches that a
// protocol like MESI keeps coherent. Caches are as large as need be, so lines move only because
// somebody writes them.
//
//   read   The line comes from a cache of the reader's L3 domain if one has it. If not, it comes
//          from the core that wrote it last, or from memory. Reads of one line from elsewhere
//          queue at its home: each begins `further_reader` after the one before it.
//   write  All other caches give the line up. The write ends when the farthest has.
#pragma once
#include <bitset>
#include <cstdint>
#include <deque>
#include <vector>

#include "machine.hpp"

namespace stretto::node {

struct Counts {
  std::uint64_t transfers = 0;         // a line went from one core's cache to another's
  std::uint64_t socket_transfers = 0;  // from another socket
  std::uint64_t l3_transfers = 0;      // from the same L3 domain
  std::uint64_t invalidations = 0;     // caches that gave a line up
  int most_readers = 0;                // cores that fetched one line between two writes of it
  std::uint64_t crowded = 0;           // times that a line was fetched by more than kFewReaders
  std::vector<std::uint64_t> between;  // transfers [from L3 * L3s + to L3]
  static constexpr int kFewReaders = 16;
};

struct Line {
  using Cores = std::bitset<kMostCores>;
  struct Arrival {
    int l3;
    double at;
  };

  int owner = -1;  // the core that wrote it last; -1: only memory has it
  int home = 0;    // the L3 domain at whose memory it lies
  int readers = 0;
  Cores holders;
  double busy_until = 0;          // its home is through with earlier requests
  double visible_at = 0;          // what was written last can be read
  std::vector<Arrival> arrivals;  // when the next reader of that domain may have it
};

class Directory {
 public:
  explicit Directory(const Machine& machine);

  // The line of this number; `home` counts when it is new.
  Line& line(std::uint64_t number, int home);
  // When a core that asks at `now` has it. A core that has it already gets it after a hit.
  double read(Line& line, int core, double now);
  // When all other caches have given it up.
  double write(Line& line, int core, double now);
  [[nodiscard]] static bool has(const Line& line, int core) {
    return line.holders.test(static_cast<std::size_t>(core));
  }

  [[nodiscard]] const Counts& counts() const { return counts_; }
  void start_counting();

 private:
  double fetch(Line& line, int l3, double from_now);
  void count_transfer(int from_l3, int to_l3);
  double& arrival(Line& line, int l3);
  void grow();

  const Machine& machine_;
  std::vector<Line::Cores> cores_of_l3_;
  std::vector<double> into_free_, out_free_, socket_free_;  // when each way takes the next line
  Counts counts_;
  // Open addressing over numbers of lines. 0: the place is free.
  std::vector<std::uint64_t> keys_;
  std::vector<Line*> found_;
  std::deque<Line> lines_;
};

}  // namespace stretto::node
