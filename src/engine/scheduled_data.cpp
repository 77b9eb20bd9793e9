// SPDX-License-Identifier: BSD-3-Clause
// Barrier, Bcast, Gather, Scatter, Allgather, Alltoall by schedules, in units of bytes. MPI gives
// the lengths of some collectives' parts to the root alone, or to each rank its own. If leaders
// handle parts of other ranks, all ranks first get all lengths.
#include "engine/packed_buffer.hpp"
#include "engine/scheduler.hpp"

namespace stretto::engine {
namespace {

using select::Backend;
using select::Choice;

// Where parts of these lengths begin.
class Begins {
 public:
  template <class LengthOf>
  bool fill(int ranks, LengthOf length_of) {
    if (!begins_.resize(static_cast<std::size_t>(ranks) + 1, 0)) return false;
    for (int r = 0; r < ranks; ++r) begins_[r + 1] = begins_[r] + length_of(r);
    return true;
  }
  [[nodiscard]] const std::uint64_t* get() const { return begins_.data(); }
  [[nodiscard]] std::uint64_t length(int rank) const { return begins_[rank + 1] - begins_[rank]; }

 private:
  Array<std::uint64_t> begins_;
};

bool in_parts_of_one_length(Collective as) { return coll::regular_form(as) == as; }

std::uint64_t all_parts(const Scheduler& scheduler, std::uint64_t each) {
  return each * static_cast<std::uint64_t>(scheduler.size());
}

// Runs the call and unpacks what came.
Outcome run(Scheduler& scheduler, const Scheduled& call, PackedBuffer& source, PackedBuffer& target) {
  if (source.failed() || target.failed()) return outcome_of(Status::no_memory);
  Outcome outcome = scheduler.run(call);
  for (const Status status : {source.finish(), target.finish()}) {
    if (outcome.status == Status::ok) outcome.status = status;
  }
  return outcome;
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

}  // namespace

Outcome barrier(Scheduler& scheduler) {
  const Choice choice = scheduler.choose(Collective::barrier, 0);
  if (choice.backend != Backend::schedule) return left_to(choice.backend);
  Scheduled call{scheduler.problem(Collective::barrier)};
  call.choice = choice;
  return scheduler.run(call);
}

Outcome bcast(Scheduler& scheduler, const Region& buffer, int root, bool) {
  const Choice choice = scheduler.choose(Collective::bcast, buffer.bytes());
  if (choice.backend != Backend::schedule) return left_to(choice.backend);
  Scheduled call{scheduler.problem(Collective::bcast, root)};
  call.choice = choice;
  PackedBuffer nothing, data;
  call.problem.count = buffer.bytes();
  const bool is_root = scheduler.rank() == root;
  call.receive = is_root ? data.from(buffer, buffer.bytes()) : data.to(buffer, buffer.bytes());
  return run(scheduler, call, nothing, data);
}

Outcome gather(Scheduler& scheduler, Collective as, const Region& send, const Blocks& receive, int root, bool in_place,
               bool) {
  const int me = scheduler.rank(), ranks = scheduler.size();
  const bool is_root = me == root, equal = in_parts_of_one_length(as);
  std::uint64_t own = is_root && (in_place || equal) ? receive.at(me).bytes() : send.bytes();
  const Choice choice = scheduler.choose(as, equal ? all_parts(scheduler, own) : 0);
  if (choice.backend != Backend::schedule) return left_to(choice.backend);
  Array<std::uint64_t> lengths;
  if (!lengths.resize(static_cast<std::size_t>(ranks), own)) return outcome_of(Status::no_memory);
  for (int r = 0; r < ranks && is_root; ++r) lengths[r] = r == me ? own : receive.at(r).bytes();
  const Status told = tell_lengths(scheduler, as, choice, -1, lengths, own);
  if (told != Status::ok) return outcome_of(told);
  Begins begins;
  if (!begins.fill(ranks, [&](int r) { return lengths[r]; })) return outcome_of(Status::no_memory);
  Scheduled call{scheduler.problem(as, root)};
  call.choice = choice;
  PackedBuffer source, target;
  call.problem.count = own;
  call.problem.begins = equal ? nullptr : begins.get();
  call.problem.in_place = in_place;
  if (!in_place) call.send = source.from(send, own);
  if (is_root && equal) call.receive = target.to(receive, begins.get(), ranks, me, in_place ? me + 1 : me);
  if (is_root && !equal) call.receive = target.to(receive, begins.get(), ranks, 0, ranks);
  return run(scheduler, call, source, target);
}

Outcome scatter(Scheduler& scheduler, Collective as, const Blocks& send, const Region& receive, int root, bool in_place,
                bool) {
  const int me = scheduler.rank(), ranks = scheduler.size();
  const bool is_root = me == root, equal = in_parts_of_one_length(as);
  const std::uint64_t each = is_root ? send.at(me).bytes() : receive.bytes();
  const Choice choice = scheduler.choose(as, equal ? all_parts(scheduler, each) : 0);
  if (choice.backend != Backend::schedule) return left_to(choice.backend);
  Array<std::uint64_t> lengths;
  if (!lengths.resize(static_cast<std::size_t>(ranks), each)) return outcome_of(Status::no_memory);
  for (int r = 0; r < ranks && is_root; ++r) lengths[r] = send.at(r).bytes();
  const Status told = tell_lengths(scheduler, as, choice, root, lengths, 0);
  if (told != Status::ok) return outcome_of(told);
  Begins begins;
  if (!begins.fill(ranks, [&](int r) { return lengths[r]; })) return outcome_of(Status::no_memory);
  Scheduled call{scheduler.problem(as, root)};
  call.choice = choice;
  PackedBuffer source, target;
  call.problem.count = lengths[me];
  call.problem.begins = equal ? nullptr : begins.get();
  call.problem.in_place = in_place;
  if (is_root) call.send = source.from(send, begins.get(), ranks);
  if (!in_place) call.receive = target.to(receive, lengths[me], !equal);
  return run(scheduler, call, source, target);
}

Outcome allgather(Scheduler& scheduler, Collective as, const Region& send, const Blocks& receive, bool in_place, bool) {
  const int me = scheduler.rank(), ranks = scheduler.size();
  Begins begins;
  if (!begins.fill(ranks, [&](int r) { return receive.at(r).bytes(); })) return outcome_of(Status::no_memory);
  const Choice choice = scheduler.choose(as, begins.get()[ranks]);
  if (choice.backend != Backend::schedule) return left_to(choice.backend);
  Scheduled call{scheduler.problem(as)};
  call.choice = choice;
  PackedBuffer source, target;
  call.problem.count = begins.length(me);
  call.problem.begins = in_parts_of_one_length(as) ? nullptr : begins.get();
  call.problem.in_place = in_place;
  if (!in_place) call.send = source.from(send, begins.length(me));
  call.receive = target.to(receive, begins.get(), ranks, me, in_place ? me + 1 : me);
  return run(scheduler, call, source, target);
}

Outcome alltoall(Scheduler& scheduler, Collective as, const Blocks& send, const Blocks& receive, bool in_place, bool) {
  const int ranks = scheduler.size();
  const bool equal = in_parts_of_one_length(as);
  Begins got, sent;
  if (!got.fill(ranks, [&](int r) { return receive.at(r).bytes(); })) return outcome_of(Status::no_memory);
  const Choice choice = scheduler.choose(as, equal ? got.get()[ranks] : 0);
  if (choice.backend != Backend::schedule) return left_to(choice.backend);
  const auto sent_bytes = [&](int r) { return equal ? got.length(r) : send.at(r).bytes(); };
  if (!in_place && !sent.fill(ranks, sent_bytes)) return outcome_of(Status::no_memory);
  Scheduled call{scheduler.problem(as)};
  call.choice = choice;
  PackedBuffer source, target;
  call.problem.count = got.length(0);
  call.problem.begins = equal ? nullptr : got.get();
  call.problem.sent_begins = equal || in_place ? nullptr : sent.get();
  call.problem.in_place = in_place;
  if (!in_place) call.send = source.from(send, sent.get(), ranks);
  call.receive = target.to(receive, got.get(), ranks, 0, in_place ? ranks : 0);
  return run(scheduler, call, source, target);
}

}  // namespace stretto::engine
