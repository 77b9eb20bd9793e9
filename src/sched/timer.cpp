// SPDX-License-Identifier: BSD-3-Clause
#include "sched/timer.hpp"

#include <algorithm>

namespace stretto::sched {

bool Timer::execute() {
  for (std::uint32_t i = 0; i < steps_.size(); ++i) {
    Rank& rank = ranks_[steps_[i].rank];
    if (steps_[i].pending != 0) continue;
    set_ready(rank, i, rank.free);
    wake(steps_[i].rank, rank.free);
  }
  for (std::uint32_t rank = 0; rank + 1 < ranks_.size(); ++rank) {
    if (ranks_[rank].handling > 0) wake(rank, ranks_[rank].free);
    if (ranks_[rank].left != 0) ++at_work_[crowd_of(rank)];
  }
  while (!queue_.empty()) {
    queue_.pop(batch_);
    now_ = batch_[0].time();
    events_ += batch_.size();
    looked_at_.clear();
    if (ports_are_taken_) sort_batch();
    for (const Event& event : batch_) handle(event);
    if (!ports_.empty() || !processors_.empty()) std::sort(looked_at_.begin(), looked_at_.end());
    for (const std::uint32_t rank : looked_at_) {
      ranks_[rank].listed = false;
      decide(rank);
    }
  }
  if (queue_.failed() || looked_at_.failed() || flows_.failed()) return fail("no memory");
  for (std::uint32_t rank = 0; rank + 1 < ranks_.size(); ++rank) {
    if (ranks_[rank].left != 0) return fail("a rank waits for ever");
  }
  return true;
}

// Messages that come to a port at the same time go through by number.
void Timer::sort_batch() {
  const auto before = [](const Event& a, const Event& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.what < b.what;
  };
  if (!std::is_sorted(batch_.begin(), batch_.end(), before)) std::sort(batch_.begin(), batch_.end(), before);
}

void Timer::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::wake:
      if (ranks_[event.what].wake == now_) ranks_[event.what].wake = -1;
      return look_at(event.what);
    case Event::Kind::first_byte: return land(event.what);
    case Event::Kind::drained:
      if (ranks_[event.what].port == now_) drain(event.what);
      return;
    case Event::Kind::arrival: return arrive(event.what);
  }
}

void Timer::look_at(std::uint32_t rank) {
  if (ranks_[rank].listed) return;
  ranks_[rank].listed = true;
  looked_at_.push(rank);
}

// Makes sure that an event looks at the rank at `time`, or earlier.
void Timer::wake(std::uint32_t rank, double time) {
  Rank& self = ranks_[rank];
  if (self.wake >= 0 && self.wake <= time) return;
  self.wake = time;
  queue_.push(time, rank, Event::Kind::wake);
}

// The message is there.
void Timer::arrive(std::uint32_t receive) {
  Timed& step = steps_[receive];
  if (--step.pending > 0) return;
  Rank& rank = ranks_[step.rank];
  if (!processors_.empty() && rank.free < now_ && !is_ready(rank)) rank.turn = now_ + turn_of(step.rank);
  set_ready(rank, receive, now_);
  look_at(step.rank);
}

void Timer::decide(std::uint32_t r) {
  Rank& rank = ranks_[r];
  const Choice choice = choose(rank);
  const double begin = std::max({choice.begin, rank.free, rank.turn});
  const bool sends_now = choice.step != kNone && begin <= now_ && class_of(steps_[choice.step].kind) == sends;
  const bool handles = rank.handling > 0 && !sends_now;
  if (!handles && choice.step == kNone) return;
  if (!handles && begin > now_) return wake(r, begin);
  if (const double* const processor = processor_of(r); processor && *processor > now_ && rank.free <= now_)
    return wake(r, *processor);
  handles ? handle_messages(r) : perform(r, choice.step);
}

// The domain whose processors this rank shares.
std::size_t Timer::crowd_of(std::uint32_t rank) const {
  const int level = model_.processors.level;
  return job_.hierarchy && level >= 0
             ? static_cast<std::size_t>(job_.hierarchy->group_over(static_cast<int>(rank), level) -
                                        job_.hierarchy->group_on(level, 0))
             : 0;
}

// The processor that this rank gets if it has something to do: the first that is free. Null: the
// rank has its own.
double* Timer::processor_of(std::uint32_t rank) {
  if (processors_.empty()) return nullptr;
  const auto count = static_cast<std::size_t>(model_.processors.count);
  double* const first = processors_.data() + crowd_of(rank) * count;
  return std::min_element(first, first + count);
}

// How long it takes, on average, until a rank that waits for its turn on a shared processor looks.
double Timer::turn_of(std::uint32_t rank) const {
  const bool alone = at_work_[crowd_of(rank)] <= static_cast<std::uint32_t>(model_.processors.count);
  return alone ? 0 : model_.processors.turn;
}

// Does all handling that is due, without a break.
void Timer::handle_messages(std::uint32_t r) {
  Rank& rank = ranks_[r];
  if (rank.free > now_) return wake(r, rank.free);
  if (double* const processor = processor_of(r)) *processor = now_ + rank.handling;
  rank.time.idle[static_cast<int>(Idle::crowd)] += now_ - rank.free;
  rank.free = rank.time.end = now_ + rank.handling;
  rank.handling = 0;
  if (rank.free > end_) end_ = rank.free;
  wake(r, rank.free);
}

Timer::Choice Timer::choose(Rank& rank) const {
  Choice best{kNone, 0};
  for (int of = 0; of < kClasses; ++of) {
    const std::uint32_t step = first_ready(rank, of);
    if (step == kNone) continue;
    const double begin = of == local ? now_ : std::max(now_, rank.next[of]);
    // Sends come first. Receives and local work go in their order.
    if (best.step == kNone || begin < best.begin) {
      best = {step, begin};
      continue;
    }
    const bool in_order =
        begin == best.begin && of == local && class_of(steps_[best.step].kind) == receives && step < best.step;
    if (in_order) best.step = step;
  }
  return best;
}

void Timer::perform(std::uint32_t r, std::uint32_t i) {
  Rank& rank = ranks_[r];
  Timed& step = steps_[i];
  const Cost& cost = costs_[step.cost];
  const Class of = class_of(step.kind);
  const std::uint32_t local_index = i - rank.first_step;
  words(rank, of)[local_index / 64] &= ~(std::uint64_t{1} << local_index % 64);

  account(rank, step);
  step.time = now_;
  step.pending = rank.previous;
  rank.previous = i;
  if (double* const processor = processor_of(r)) *processor = now_ + cost.processor;
  rank.free = rank.time.end = now_ + cost.processor;
  if (rank.free > end_) end_ = rank.free;
  if (of != local) {
    rank.next[of] = now_ + cost.interval;
    if (model_.gap_rule == GapRule::any_two) rank.next[0] = rank.next[1] = rank.next[of];
  }
  if (of == sends) {
    dispatch(step, cost);
    rank.handling += cost.handling;
  }
  const std::size_t last = i + 1 < steps_.size() ? steps_[i + 1].first_successor : successors_.size();
  for (std::size_t s = step.first_successor; s < last; ++s) {
    if (--steps_[successors_[s]].pending == 0) set_ready(rank, successors_[s], rank.free);
  }
  if (--rank.left == 0) --at_work_[crowd_of(r)];
  if (is_ready(rank) || rank.handling > 0) wake(r, rank.free);
}

// Notes why the processor was idle until now.
void Timer::account(Rank& rank, Timed& step) {
  double from = rank.free;
  if (now_ == from) {
    step.cause = rank.previous == kNone ? Cause::entry : Cause::processor;
    return;
  }
  const double ready = std::max(step.time, from);
  if (ready > from) {  // only a message makes a step ready while the processor is idle
    const Timed& sent = steps_[step.partner];
    const Cost& way = costs_[sent.cost];
    const double begun = std::clamp(sent.time, from, ready);
    const double due = std::clamp(sent.time + way.processor + way.latency + way.bytes_time, begun, ready);
    rank.time.idle[static_cast<int>(Idle::partner)] += begun - from;
    rank.time.idle[static_cast<int>(Idle::wire)] += due - begun;
    rank.time.idle[static_cast<int>(Idle::port)] += ready - due;
  }
  const Class of = class_of(step.kind);
  const double due = of == local ? ready : std::clamp(rank.next[of], ready, now_);
  rank.time.idle[static_cast<int>(Idle::gap)] += due - ready;
  rank.time.idle[static_cast<int>(Idle::crowd)] += now_ - due;
  step.cause = now_ > due ? Cause::crowd : due > ready ? Cause::gap : Cause::message;
}

// ---- Messages ----

Timer::Ports& Timer::port_of(std::uint32_t rank, int i) {
  const auto self = static_cast<int>(rank);
  if (i == 0) return ports_[static_cast<std::size_t>(first_port_[0] + self)];
  const int group = job_.hierarchy->group_over(self, i - 1);
  const int domain = group - job_.hierarchy->group_on(i - 1, 0);
  const int card = ports_each_[i] > 1 ? job_.hierarchy->place_among_carriers(group, self) : 0;
  return ports_[static_cast<std::size_t>(first_port_[i] + domain * ports_each_[i] + card)];
}

// When a message that comes at this time goes through the ports of its rank. It enters all of them
// at once, when all of them let it.
double Timer::pass(double Ports::* way, std::uint32_t rank, const Cost& cost, double time) {
  for (int i = 0; i <= cost.path; ++i) {
    if (model_.ports[i].there) time = std::max(time, port_of(rank, i).*way - model_.ports[i].ahead(cost.bytes));
  }
  for (int i = 0; i <= cost.path; ++i) {
    if (!model_.ports[i].there) continue;
    double& taken = port_of(rank, i).*way;
    taken = std::max(taken, time) + model_.ports[i].interval(cost.bytes);
  }
  return time;
}

// The message of a send that begins now.
void Timer::dispatch(const Timed& step, const Cost& cost) {
  double leaves = now_ + cost.processor;
  if (cost.shared_port) leaves = pass(&Ports::out, step.rank, cost, leaves);
  queue_.push(leaves + cost.latency, step.partner, cost.takes_port ? Event::Kind::first_byte : Event::Kind::arrival);
}

// The first byte is at the receiver's port.
void Timer::land(std::uint32_t receive) {
  const Timed& step = steps_[receive];
  const Cost& cost = costs_[steps_[step.partner].cost];
  Rank& rank = ranks_[step.rank];
  const bool fair = model_.port_rule == PortRule::fair;
  double begin = fair ? now_ : std::max(now_, rank.port);
  if (cost.shared_port) begin = pass(&Ports::in, step.rank, cost, begin);
  if (fair && begin == now_) return cost.bytes_time > 0 ? join(receive, cost.bytes_time) : arrive(receive);
  if (fair)
    // A port outside has held it up.
    return queue_.push(begin + cost.bytes_time, receive, Event::Kind::arrival);
  rank.port = begin + cost.bytes_time;
  if (rank.port == now_) return arrive(receive);
  queue_.push(rank.port, receive, Event::Kind::arrival);
}

// The message shares the port with others. Alone, it needs `time`.
void Timer::join(std::uint32_t receive, double time) {
  Rank& rank = ranks_[steps_[receive].rank];
  if (rank.flows > 0) rank.served += (now_ - rank.served_at) / rank.flows;
  rank.served_at = now_;
  std::uint32_t flow = free_flow_;
  if (flow == kNone) {
    flow = static_cast<std::uint32_t>(flows_.size());
    if (!flows_.push({})) return;
  } else {
    free_flow_ = flows_[flow].next;
  }
  std::uint32_t* at = &rank.first_flow;
  while (*at != kNone && flows_[*at].served <= rank.served + time) at = &flows_[*at].next;
  flows_[flow] = {rank.served + time, receive, *at};
  *at = flow;
  ++rank.flows;
  rank.port = now_ + (flows_[rank.first_flow].served - rank.served) * rank.flows;
  queue_.push(rank.port, steps_[receive].rank, Event::Kind::drained);
}

// The first message in a port is through, with those that are equally far.
void Timer::drain(std::uint32_t r) {
  Rank& rank = ranks_[r];
  if (rank.flows == 0) return;
  rank.served = flows_[rank.first_flow].served;
  rank.served_at = now_;
  while (rank.first_flow != kNone && flows_[rank.first_flow].served <= rank.served) {
    const std::uint32_t flow = rank.first_flow;
    rank.first_flow = flows_[flow].next;
    --rank.flows;
    arrive(flows_[flow].receive);
    flows_[flow].next = free_flow_;
    free_flow_ = flow;
  }
  if (rank.flows == 0) return;
  rank.port = now_ + (flows_[rank.first_flow].served - rank.served) * rank.flows;
  queue_.push(rank.port, r, Event::Kind::drained);
}

// ---- What is ready ----

void Timer::set_ready(Rank& rank, std::uint32_t step, double since) {
  const std::uint32_t index = step - rank.first_step;
  const Class of = class_of(steps_[step].kind);
  steps_[step].time = since;
  words(rank, of)[index / 64] |= std::uint64_t{1} << index % 64;
  rank.lowest[of] = std::min(rank.lowest[of], index / 64);
}

std::uint32_t Timer::first_ready(Rank& rank, int of) const {
  const std::uint64_t* const bits = words(rank, of);
  const auto end = static_cast<std::uint32_t>(rank_words(rank));
  std::uint32_t& word = rank.lowest[of];
  while (word < end && bits[word] == 0) ++word;
  return word == end ? kNone : rank.first_step + word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits[word]));
}

bool Timer::is_ready(Rank& rank) const {
  for (int of = 0; of < kClasses; ++of) {
    if (first_ready(rank, of) != kNone) return true;
  }
  return false;
}

// ---- Afterwards ----

Timer::View Timer::step(std::uint32_t i) const {
  const Timed& step = steps_[i];
  const Cost& cost = costs_[step.cost];
  return {
      static_cast<int>(step.rank), step.kind,     step.cause,   step.segment,    cost.path,    cost.bytes,  step.time,
      step.time + cost.processor,  cost.overhead, cost.latency, cost.bytes_time, step.partner, step.pending};
}

std::uint32_t Timer::final_step() const {
  for (std::size_t rank = 0; rank + 1 < ranks_.size(); ++rank) {
    if (ranks_[rank].previous != kNone && ranks_[rank].time.end == end_) return ranks_[rank].previous;
  }
  return kNone;
}

std::uint32_t Timer::cause_of(std::uint32_t i) const {
  const Timed& step = steps_[i];
  if (step.cause == Cause::message) return step.partner;
  std::uint32_t before = step.pending;
  if (step.cause == Cause::crowd && class_of(step.kind) == receives) {
    const Cost& way = costs_[steps_[step.partner].cost];
    const double arrived = processor_end(steps_[step.partner]) + way.latency + way.bytes_time;
    return before == kNone || processor_end(steps_[before]) < arrived ? step.partner : before;
  }
  if (step.cause != Cause::gap) return before;
  const auto counts = [&](std::uint32_t other) {
    const Class of = class_of(steps_[other].kind);
    return model_.gap_rule == GapRule::any_two ? of != local : of == class_of(step.kind);
  };
  while (before != kNone && !counts(before)) before = steps_[before].pending;
  return before;
}

}  // namespace stretto::sched
