// SPDX-License-Identifier: BSD-3-Clause
#include "directory.hpp"

#include <algorithm>

namespace stretto::node {

Directory::Directory(const Machine& machine)
    : machine_(machine),
      cores_of_l3_(machine.l3s()),
      into_free_(machine.l3s()),
      out_free_(machine.l3s()),
      socket_free_(machine.sockets * machine.sockets),
      keys_(1 << 16),
      found_(1 << 16) {
  for (int c = 0; c < machine.cores(); ++c) cores_of_l3_[machine.l3_of(c)].set(static_cast<std::size_t>(c));
  start_counting();
}

void Directory::start_counting() {
  counts_ = {};
  counts_.between.assign(machine_.l3s() * machine_.l3s(), 0);
}

namespace {
std::size_t place_of(std::uint64_t key, std::size_t places) { return (key * 0x9e3779b97f4a7c15u >> 20) & (places - 1); }
}  // namespace

Line& Directory::line(std::uint64_t number, int home) {
  std::size_t at = place_of(number, keys_.size());
  for (; keys_[at] != 0; at = (at + 1) & (keys_.size() - 1)) {
    if (keys_[at] == number) return *found_[at];
  }
  keys_[at] = number;
  Line* const made = found_[at] = &lines_.emplace_back();
  made->home = home;
  if (lines_.size() * 2 > keys_.size()) grow();
  return *made;
}

void Directory::grow() {
  std::vector<std::uint64_t> keys(keys_.size() * 2);
  std::vector<Line*> found(keys.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == 0) continue;
    std::size_t at = place_of(keys_[i], keys.size());
    while (keys[at] != 0) at = (at + 1) & (keys.size() - 1);
    keys[at] = keys_[i];
    found[at] = found_[i];
  }
  keys_.swap(keys);
  found_.swap(found);
}

double& Directory::arrival(Line& line, int l3) {
  for (Line::Arrival& each : line.arrivals) {
    if (each.l3 == l3) return each.at;
  }
  return line.arrivals.emplace_back(Line::Arrival{l3, 0}).at;
}

void Directory::count_transfer(int from_l3, int to_l3) {
  ++counts_.transfers;
  counts_.l3_transfers += from_l3 == to_l3;
  counts_.socket_transfers += machine_.socket_of_l3(from_l3) != machine_.socket_of_l3(to_l3);
  ++counts_.between[from_l3 * machine_.l3s() + to_l3];
}

// The line comes from another domain. When it does, the ways that it takes are free.
double Directory::fetch(Line& line, int l3, double from_now) {
  const int from = line.owner < 0 ? line.home : machine_.l3_of(line.owner);
  const int from_socket = machine_.socket_of_l3(from), to_socket = machine_.socket_of_l3(l3);
  double begin = std::max(from_now, into_free_[l3]);
  if (line.owner >= 0) begin = std::max(begin, out_free_[from]);
  double& between = socket_free_[from_socket * machine_.sockets + to_socket];
  if (from_socket != to_socket) begin = std::max(begin, between);
  into_free_[l3] = begin + machine_.gap_into_l3;
  if (line.owner >= 0) out_free_[from] = begin + machine_.gap_out_of_l3;
  if (from_socket != to_socket) between = begin + machine_.gap_between_sockets;
  if (line.owner >= 0) count_transfer(from, l3);
  return begin + (line.owner < 0 ? machine_.memory_from(from, l3) : machine_.between_l3s(from, l3));
}

double Directory::read(Line& line, int core, double now) {
  if (has(line, core)) return now + machine_.hit;
  const int l3 = machine_.l3_of(core);
  if (++line.readers > counts_.most_readers) counts_.most_readers = line.readers;
  counts_.crowded += line.readers == Counts::kFewReaders + 1;
  double done;
  double& next = arrival(line, l3);
  if ((line.holders & cores_of_l3_[l3]).any()) {
    const double begin = std::max({now, next, line.visible_at});
    done = begin + machine_.same_l3;
    next = begin + machine_.further_reader_l3;
    count_transfer(l3, l3);
  } else {
    const double begin = std::max({now, line.busy_until, line.visible_at});
    next = done = fetch(line, l3, begin);
    line.busy_until = begin + machine_.further_reader;
  }
  line.holders.set(static_cast<std::size_t>(core));
  return done;
}

double Directory::write(Line& line, int core, double now) {
  const bool had = has(line, core);
  line.holders.reset(static_cast<std::size_t>(core));
  const bool others = line.holders.any();
  line.holders.set(static_cast<std::size_t>(core));
  if (line.owner == core && had && !others) return now;
  const int l3 = machine_.l3_of(core);
  const double begin = std::max({now, line.busy_until, line.visible_at});
  double done = begin + machine_.hit;
  int domains = 0;
  for (int x = 0; others && x < machine_.l3s(); ++x) {
    Line::Cores losing = line.holders & cores_of_l3_[x];
    if (x == l3) losing.reset(static_cast<std::size_t>(core));
    if (losing.none()) continue;
    counts_.invalidations += losing.count();
    domains += x != l3;
    done = std::max(done, begin + machine_.between_l3s(x, l3));
  }
  if (domains > 1) done += machine_.further_owner * (domains - 1);
  if (!had && line.owner >= 0) count_transfer(machine_.l3_of(line.owner), l3);
  if (!had && line.owner < 0) done = std::max(done, begin + machine_.memory_from(line.home, l3));
  line.holders.reset();
  line.holders.set(static_cast<std::size_t>(core));
  line.owner = core;
  line.readers = 0;
  line.busy_until = done;
  line.arrivals.clear();
  return done;
}

}  // namespace stretto::node
