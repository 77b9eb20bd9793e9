// SPDX-License-Identifier: BSD-3-Clause
// The machine that the model plays. All that depends on the machine is here. Times are in ns.
#pragma once
#include <string>

namespace stretto::node {

inline constexpr int kMostCores = 256;

struct Machine {
  // Cores are numbered by L3 cache, then NUMA node, then socket.
  int sockets = 0, numa_per_socket = 0, l3_per_numa = 0, cores_per_l3 = 0;
  // One line from the cache of another core.
  double same_l3 = 0, same_numa = 0, same_socket = 0, other_socket = 0;
  // One line from memory at this socket, and at another.
  double memory = 0, memory_far = 0;
  // A line that several want: how much later the next reader gets it, if it lies in the reader's L3
  // already, and if it comes from elsewhere. How much later a write ends for each further L3 that
  // has to give the line up.
  double further_reader_l3 = 0, further_reader = 0, further_owner = 0;
  // A load that finds its line, an access to the rank's own memory, a second look at a line, a
  // pause.
  double hit = 0, own_access = 0, look_again = 0, pause = 0;
  // Between two lines into an L3 cache's part of the chip, out of it, from one socket to another.
  double gap_into_l3 = 0, gap_out_of_l3 = 0, gap_between_sockets = 0;
  // Misses under way at once, of a core: of a loop, of a copy.
  int misses_under_way = 0, misses_of_copy = 0;
  // What the library asks of the system.
  int l2_kib = 0, l3_mib = 0, is_amd = 0;

  [[nodiscard]] int l3s() const { return sockets * numa_per_socket * l3_per_numa; }
  [[nodiscard]] int cores() const { return l3s() * cores_per_l3; }
  [[nodiscard]] int l3_of(int core) const { return core / cores_per_l3; }
  [[nodiscard]] int numa_of_l3(int l3) const { return l3 / l3_per_numa; }
  [[nodiscard]] int socket_of_l3(int l3) const { return l3 / (l3_per_numa * numa_per_socket); }
  [[nodiscard]] double between_l3s(int a, int b) const {
    if (a == b) return same_l3;
    if (numa_of_l3(a) == numa_of_l3(b)) return same_numa;
    return socket_of_l3(a) == socket_of_l3(b) ? same_socket : other_socket;
  }
  [[nodiscard]] double memory_from(int home_l3, int l3) const {
    return socket_of_l3(home_l3) == socket_of_l3(l3) ? memory : memory_far;
  }

  // From words "key=value", one for each field. Empty, or what is wrong.
  std::string read(const std::string& words);
};

}  // namespace stretto::node
