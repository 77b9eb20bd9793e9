// SPDX-License-Identifier: BSD-3-Clause
// Barrier, Bcast, Gather, Scatter, Allgather, Alltoall by schedules, in units of bytes. MPI gives
// the lengths of some collectives' parts to the root alone, or to each rank its own. If leaders
// handle parts of other ranks, all ranks first get all lengths.
#include "engine/prepared.hpp"

namespace stretto::engine {
namespace {

using select::Backend;
using select::Choice;

bool in_parts_of_one_length(Collective as) { return coll::regular_form(as) == as; }

std::uint64_t all_parts(const Scheduler& scheduler, std::uint64_t each) {
  return each * static_cast<std::uint64_t>(scheduler.size());
}

// Gives all ranks the lengths of all parts: from the length of each rank (root < 0), or from those
// that the root knows. Does nothing where ranks need no more lengths than they know.
Status tell_lengths(Scheduler& scheduler, Collective as, const Choice& choice, int root, Array<std::uint64_t>& lengths,
                    std::uint64_t own) {
  if (in_parts_of_one_length(as) || select::is_linear(*choice.selection)) return Status::ok;
  Scheduled call{root < 0 ? scheduler.problem(Collective::allgather) : scheduler.problem(Collective::bcast, root),
                 sizeof own};
  call.problem.count = root < 0 ? 1 : lengths.size();
  call.send = reinterpret_cast<const char*>(&own);
  call.receive = reinterpret_cast<char*>(lengths.data());
  return scheduler.run(call).status;
}

// Begins to prepare a call. Returns false if schedules leave it to another.
bool chosen(Prepared& p, Collective as, const Choice& choice, int root = 0) {
  p.call = Scheduled{p.scheduler.problem(as, root)};
  p.call.choice = choice;
  return choice.backend == Backend::schedule;
}

// The call is prepared, if there was memory.
Outcome ready(Prepared& p) {
  if (p.source.failed() || p.target.failed()) return outcome_of(Status::no_memory);
  p.moves = true;
  return outcome_of(Status::ok);
}

}  // namespace

Outcome Prepared::finish(Outcome ended) {
  for (const Status status : {source.finish(), target.finish(), told.compare()}) {
    if (ended.status == Status::ok) ended.status = status;
  }
  return ended;
}

Outcome Prepared::run(const Outcome& prepared) { return moves ? finish(scheduler.run(call)) : prepared; }

Outcome barrier(Prepared& p) {
  const Choice choice = p.scheduler.choose(Collective::barrier, 0);
  return chosen(p, Collective::barrier, choice) ? ready(p) : left_to(choice.backend);
}

Outcome bcast(Prepared& p, const Region& buffer, int root, bool) {
  const Choice choice = p.scheduler.choose(Collective::bcast, buffer.bytes());
  if (!chosen(p, Collective::bcast, choice, root)) return left_to(choice.backend);
  p.call.problem.count = buffer.bytes();
  const bool is_root = p.scheduler.rank() == root;
  p.call.receive = is_root ? p.target.from(buffer, buffer.bytes()) : p.target.to(buffer, buffer.bytes());
  return ready(p);
}

Outcome gather(Prepared& p, Collective as, const Region& send, const Blocks& receive, int root, bool in_place, bool) {
  const int me = p.scheduler.rank(), ranks = p.scheduler.size();
  const bool is_root = me == root, equal = in_parts_of_one_length(as);
  std::uint64_t own = is_root && (in_place || equal) ? receive.at(me).bytes() : send.bytes();
  const Choice choice = p.scheduler.choose(as, equal ? all_parts(p.scheduler, own) : 0);
  if (!chosen(p, as, choice, root)) return left_to(choice.backend);
  Array<std::uint64_t> lengths;
  if (!lengths.resize(static_cast<std::size_t>(ranks), own)) return outcome_of(Status::no_memory);
  for (int r = 0; r < ranks && is_root; ++r) lengths[r] = r == me ? own : receive.at(r).bytes();
  const Status told = tell_lengths(p.scheduler, as, choice, -1, lengths, own);
  if (told != Status::ok) return outcome_of(told);
  if (!p.begins.fill(ranks, [&](int r) { return lengths[r]; })) return outcome_of(Status::no_memory);
  coll::Problem& problem = p.call.problem;
  problem.count = own;
  problem.begins = equal ? nullptr : p.begins.get();
  problem.in_place = in_place;
  if (!in_place) p.call.send = p.source.from(send, own);
  if (is_root && equal) p.call.receive = p.target.to(receive, p.begins.get(), ranks, me, in_place ? me + 1 : me);
  if (is_root && !equal) p.call.receive = p.target.to(receive, p.begins.get(), ranks, 0, ranks);
  return ready(p);
}

Outcome scatter(Prepared& p, Collective as, const Blocks& send, const Region& receive, int root, bool in_place, bool) {
  const int me = p.scheduler.rank(), ranks = p.scheduler.size();
  const bool is_root = me == root, equal = in_parts_of_one_length(as);
  const std::uint64_t each = is_root ? send.at(me).bytes() : receive.bytes();
  const Choice choice = p.scheduler.choose(as, equal ? all_parts(p.scheduler, each) : 0);
  if (!chosen(p, as, choice, root)) return left_to(choice.backend);
  Array<std::uint64_t> lengths;
  if (!lengths.resize(static_cast<std::size_t>(ranks), each)) return outcome_of(Status::no_memory);
  for (int r = 0; r < ranks && is_root; ++r) lengths[r] = send.at(r).bytes();
  const Status told = tell_lengths(p.scheduler, as, choice, root, lengths, 0);
  if (told != Status::ok) return outcome_of(told);
  if (!p.begins.fill(ranks, [&](int r) { return lengths[r]; })) return outcome_of(Status::no_memory);
  coll::Problem& problem = p.call.problem;
  problem.count = lengths[me];
  problem.begins = equal ? nullptr : p.begins.get();
  problem.in_place = in_place;
  if (is_root) p.call.send = p.source.from(send, p.begins.get(), ranks);
  if (!in_place) p.call.receive = p.target.to(receive, lengths[me], !equal);
  return ready(p);
}

Outcome allgather(Prepared& p, Collective as, const Region& send, const Blocks& receive, bool in_place, bool) {
  const int me = p.scheduler.rank(), ranks = p.scheduler.size();
  if (!p.begins.fill(ranks, [&](int r) { return receive.at(r).bytes(); })) return outcome_of(Status::no_memory);
  const Choice choice = p.scheduler.choose(as, p.begins.get()[ranks]);
  if (!chosen(p, as, choice)) return left_to(choice.backend);
  coll::Problem& problem = p.call.problem;
  problem.count = p.begins.length(me);
  problem.begins = in_parts_of_one_length(as) ? nullptr : p.begins.get();
  problem.in_place = in_place;
  if (!in_place) p.call.send = p.source.from(send, p.begins.length(me));
  p.call.receive = p.target.to(receive, p.begins.get(), ranks, me, in_place ? me + 1 : me);
  return ready(p);
}

Outcome alltoall(Prepared& p, Collective as, const Blocks& send, const Blocks& receive, bool in_place, bool) {
  const int ranks = p.scheduler.size();
  const bool equal = in_parts_of_one_length(as);
  Begins &got = p.begins, &sent = p.sent_begins;
  if (!got.fill(ranks, [&](int r) { return receive.at(r).bytes(); })) return outcome_of(Status::no_memory);
  const Choice choice = p.scheduler.choose(as, equal ? got.get()[ranks] : 0);
  if (!chosen(p, as, choice)) return left_to(choice.backend);
  const auto sent_bytes = [&](int r) { return equal ? got.length(r) : send.at(r).bytes(); };
  if (!in_place && !sent.fill(ranks, sent_bytes)) return outcome_of(Status::no_memory);
  coll::Problem& problem = p.call.problem;
  if (p.scheduler.goes_by_carriers(*choice.selection)) {
    const Status told = p.told.exchange(p.scheduler, *choice.selection, in_place ? got : sent, got);
    if (told != Status::ok) return outcome_of(told);
    p.told.describe(problem);
    p.call.check = p.told.check();
  }
  problem.count = got.length(0);
  problem.begins = equal ? nullptr : got.get();
  problem.sent_begins = equal || in_place ? nullptr : sent.get();
  problem.in_place = in_place;
  if (!in_place) p.call.send = p.source.from(send, sent.get(), ranks);
  p.call.receive = p.target.to(receive, got.get(), ranks, 0, in_place ? ranks : 0);
  return ready(p);
}

// Ranks have different numbers of neighbours, so they know no common length.
Outcome neighbors(Prepared& p, Collective as, const SentBlocks& send, const Blocks& receive, bool) {
  const Choice choice = p.scheduler.choose(as, 0);
  if (!chosen(p, as, choice)) return left_to(choice.backend);
  coll::Problem& problem = p.call.problem;
  const int parts = problem.parts(), sent_parts = problem.sent_parts();
  if (!p.begins.fill(parts, [&](int k) { return receive.at(k).bytes(); }) ||
      !p.sent_begins.fill(sent_parts, [&](int k) { return send.at(k).bytes(); }))
    return outcome_of(Status::no_memory);
  problem.begins = p.begins.get();
  problem.sent_begins = p.sent_begins.get();
  p.call.send = send.alike() ? p.source.from(send.at(0), p.sent_begins.length(0))
                             : p.source.from(send.blocks(), p.sent_begins.get(), sent_parts);
  // What nobody fills stays as it is.
  p.call.receive = p.target.to(receive, p.begins.get(), parts, 0, problem.neighborhood->lacks_sources() ? parts : 0);
  return ready(p);
}

}  // namespace stretto::engine
