// SPDX-License-Identifier: BSD-3-Clause
// What the messages of a replay take, in seconds: costs of paths (sched/costs.hpp), gaps of a rank,
// and ports that are taken. Without a machine they take nothing.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "select/candidates.hpp"

namespace stretto::modelling {

class Network {
 public:
  // Costs are in nanoseconds.
  Network(const select::Machine* machine, std::size_t ranks);
  [[nodiscard]] bool ideal() const { return machine_ == nullptr; }

  // Processor time of both ends.
  [[nodiscard]] double send_time(int from, int to, std::uint64_t bytes) const;
  [[nodiscard]] double receive_time(int from, int to, std::uint64_t bytes) const;

  struct Passage {
    double leaves, arrives;  // its last byte
  };
  // A message that may depart from `start` on. Messages are passed in the order of their times.
  Passage pass(int from, int to, std::uint64_t bytes, double start);
  // One that waits for its receive: the receiver asks for the data when it knows of the message and
  // `posted` the receive. Where the MPI sends the request by the connection on which it sends data,
  // the request comes behind data that are under way by then. Costs have the handshake itself.
  Passage pass_on_request(int from, int to, std::uint64_t bytes, double sent, double posted);
  // So many bytes of other kinds have gone through all ports over a rank, both ways, until then.
  void use_ports(int rank, std::uint64_t bytes, double until);

 private:
  using Ports = std::vector<std::vector<double>>;  // when they are free, by level and domain

  struct Last {
    double begins = 0, ends = 0;
  };

  [[nodiscard]] static std::uint64_t pair(int from, int to);
  [[nodiscard]] int level(int from, int to) const;
  [[nodiscard]] const sched::LogGP& path(int from, int to, std::uint64_t bytes) const;
  double enter(Ports& ports, int rank, int level, std::uint64_t bytes, double time);
  template <class With>
  void each_port(Ports& ports, int rank, int level, const With& with);

  const select::Machine* machine_;
  std::vector<double> next_send_, next_receive_;
  Ports out_, in_;
  std::unordered_map<std::uint64_t, Last> last_;  // by pair(): the last message that waited for its receive
};

}  // namespace stretto::modelling
