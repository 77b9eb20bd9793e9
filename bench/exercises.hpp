// SPDX-License-Identifier: BSD-3-Clause
// What measuring programs run, apart from the MPI's collectives: candidates by their keys, and
// exercises. `stretto model measure` finds parameters by exercises: schedules of a few messages
// between two ranks.
//
//   oneway    a message from 0 to 1               exchange  both ways at once
//   roundtrip there and back                      burst     8 messages from 0 to 1
//   combine   exchange, and each combines what arrives
//   local     a copy on both ranks                sum       a combination of local data, on both
//   nothing   no step
//   sendrecv  no step: the measuring program calls MPI_Sendrecv
#pragma once
#include <string>

#include "sched/builder.hpp"

namespace stretto::benching {

inline constexpr int kBurst = 8, kSendrecvs = 8;

// The key of a candidate (select::named_candidate) on a command line. There ':' divides what is
// asked for, and launchers' scripts divide at spaces. So it is written as
// "hierarchy/rails+by=ring".
inline std::string candidate_key(std::string text) {
  for (char& c : text) c = c == '/' ? ':' : c == '+' ? ' ' : c;
  return text;
}

// Emits the steps of the rank in this role, 0 or 1. -1: the rank has no partner. What arrives in a
// burst goes to `places` places in turn. False: there is no such exercise.
inline bool emit_exercise(sched::Builder& builder, const std::string& name, std::uint64_t units, int role, int peer,
                          int places) {
  const sched::Slice out{sched::Buffer::send, 0, units}, in{sched::Buffer::receive, 0, units};
  const bool both = name == "exchange" || name == "combine", there_and_back = name == "roundtrip";
  const bool local = name == "local" || name == "sum" || name == "nothing" || name == "sendrecv";
  if (!both && !there_and_back && !local && name != "oneway" && name != "late" && name != "burst") return false;
  if (name == "local") builder.copy(out, in);
  if (name == "sum") builder.reduce(out, in, sched::Side::right);
  if (local || role < 0) return true;
  if (both || role == 0) builder.send(peer, out);
  if (name == "combine")
    builder.recv_reduce(peer, out, in, sched::Side::right);
  else if (both || role == 1)
    builder.recv(peer, in);
  if (there_and_back && role == 0) builder.recv(peer, in);
  if (there_and_back && role == 1) builder.send(peer, in);
  for (int i = 1; i < kBurst && name == "burst"; ++i) {
    if (role == 0)
      builder.send(peer, out);
    else
      builder.recv(peer, {sched::Buffer::receive, static_cast<std::uint64_t>(i % places) * units, units});
  }
  return true;
}

}  // namespace stretto::benching
