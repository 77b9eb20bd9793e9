// SPDX-License-Identifier: BSD-3-Clause
#include "job_network.hpp"

#include <algorithm>

namespace stretto::modelling {
namespace {

constexpr double kNs = 1e-9;

}  // namespace

Network::Network(const select::Machine* machine, std::size_t ranks)
    : machine_(machine), next_send_(ranks, 0), next_receive_(ranks, 0), out_(topo::kMostLevels + 1) {
  for (std::size_t i = 0; i < out_.size() && !ideal(); ++i) {
    if (machine->costs.ports[i].there) out_[i].assign(ranks, 0);
  }
  in_ = out_;
}

int Network::level(int from, int to) const {
  int level = 0;
  if (machine_->hierarchies == nullptr) return level;
  const topo::Hierarchy& all = machine_->hierarchies->all;
  while (all.group_over(from, level) != all.group_over(to, level)) ++level;
  return level;
}

const sched::LogGP& Network::path(int from, int to, std::uint64_t bytes) const {
  return machine_->costs.paths[level(from, to)].at(bytes);
}

double Network::send_time(int from, int to, std::uint64_t bytes) const {
  if (ideal()) return 0;
  const sched::LogGP& costs = path(from, to, bytes);
  return kNs * (costs.send_overhead + costs.send_byte * static_cast<double>(bytes));
}

double Network::receive_time(int from, int to, std::uint64_t bytes) const {
  if (ideal()) return 0;
  const sched::LogGP& costs = path(from, to, bytes);
  return kNs * (costs.receive_overhead + costs.receive_byte * static_cast<double>(bytes));
}

// The rank's own port, and those of the domains below the level that joins both ranks.
template <class With>
void Network::each_port(Ports& ports, int rank, int level, const With& with) {
  for (int i = 0; i <= level; ++i) {
    std::vector<double>& of_level = ports[static_cast<std::size_t>(i)];
    if (of_level.empty()) continue;
    const int domain = i == 0 ? rank : machine_->hierarchies->all.group_over(rank, i - 1);
    with(of_level[static_cast<std::size_t>(domain)], machine_->costs.ports[i]);
  }
}

// Takes its turn at all these ports. Returns when: a rested port lets a burst through at once.
double Network::enter(Ports& ports, int rank, int level, std::uint64_t bytes, double time) {
  each_port(ports, rank, level,
            [&](double& free, const sched::Port& port) { time = std::max(time, free - kNs * port.ahead(bytes)); });
  each_port(ports, rank, level,
            [&](double& free, const sched::Port& port) { free = std::max(free, time) + kNs * port.interval(bytes); });
  return time;
}

Network::Passage Network::pass(int from, int to, std::uint64_t bytes, double start) {
  if (ideal()) return {start, start};
  const int joined = level(from, to);
  const sched::LogGP& costs = path(from, to, bytes);
  const double length = bytes > 1 ? kNs * costs.byte_gap * static_cast<double>(bytes - 1) : 0;
  double through = length;
  each_port(out_, from, joined,
            [&](const double&, const sched::Port& port) { through = std::max(through, kNs * port.through(bytes)); });
  double &next_send = next_send_[static_cast<std::size_t>(from)],
         &next_receive = next_receive_[static_cast<std::size_t>(to)];
  const double departs = enter(out_, from, joined, bytes, std::max(start, next_send));
  next_send = departs + kNs * costs.gap + length;
  const double enters = enter(in_, to, joined, bytes, std::max(departs + kNs * costs.latency, next_receive));
  next_receive = enters + through;
  return {departs + through, next_receive};
}

std::uint64_t Network::pair(int from, int to) {
  return static_cast<std::uint64_t>(from) << 32 | static_cast<std::uint64_t>(to);
}

Network::Passage Network::pass_on_request(int from, int to, std::uint64_t bytes, double sent, double posted) {
  if (ideal() || !path(from, to, bytes).requests_queue) return pass(from, to, bytes, std::max(sent, posted));
  const sched::LogGP& words = path(from, to, 0);
  const double hop = kNs * (words.latency + words.receive_overhead);
  Last& own = last_[pair(from, to)];
  const Last& other = last_[pair(to, from)];
  const double asks = std::max({sent + hop, own.ends, posted});  // the message's first word is behind data, too
  const double held_up = other.begins <= asks ? std::max(0.0, other.ends - asks) : 0;
  const double begins = asks + held_up + hop;
  const Passage passage = pass(from, to, bytes, std::max(begins - 2 * hop, sent));
  own = {begins, passage.arrives};
  return {std::min(begins, passage.leaves), passage.arrives};  // the kernel takes all at once
}

void Network::use_ports(int rank, std::uint64_t bytes, double until) {
  if (ideal() || bytes == 0) return;
  const int top = machine_->hierarchies == nullptr ? 0 : machine_->hierarchies->all.levels() - 1;
  for (Ports* const ports : {&out_, &in_}) {
    each_port(*ports, rank, top, [&](double& free, const sched::Port& port) {
      const double burst = std::min(port.burst_bytes, static_cast<double>(bytes));
      free = std::max(free, until + kNs * port.byte_gap * burst);  // it rests until then
    });
  }
}

}  // namespace stretto::modelling
