// SPDX-License-Identifier: BSD-3-Clause
#include "sched/execute.hpp"

#include <cstring>

#include "topo/numbering.hpp"

namespace stretto::sched {

// ---- Program ----

bool Program::prepare(Schedule schedule, std::uint64_t unit_bytes) {
  schedule_ = static_cast<Schedule&&>(schedule);
  return schedule_.complete && link() && order_messages() && place_landings(unit_bytes);
}

bool Program::link() {
  const std::size_t steps = schedule_.steps.size();
  first_successor_.clear();
  successors_.clear();
  Array<std::uint32_t> next;
  if (!first_successor_.resize(steps + 1, 0) || !successors_.resize(schedule_.dependencies.size(), 0)) return false;
  for (const Step& step : schedule_.steps) {
    for (const std::uint32_t on : schedule_.dependencies_of(step)) ++first_successor_[on + 1];
  }
  for (std::size_t i = 0; i < steps; ++i) first_successor_[i + 1] += first_successor_[i];
  if (!next.resize(steps, 0)) return false;
  for (std::size_t i = 0; i < steps; ++i) next[i] = first_successor_[i];
  for (std::uint32_t i = 0; i < steps; ++i) {
    for (const std::uint32_t on : schedule_.dependencies_of(schedule_.steps[i])) successors_[next[on]++] = i;
  }
  return true;
}

bool Program::order_messages() {
  const std::size_t steps = schedule_.steps.size();
  following_.clear();
  follows_.clear();
  if (!following_.resize(steps, kNone) || !follows_.resize(steps, 0)) return false;
  topo::Numbering pairs;
  Array<std::uint32_t> last;
  for (std::uint32_t i = 0; i < steps; ++i) {
    const Step& step = schedule_.steps[i];
    if (!step.is_message()) continue;
    const auto pair = static_cast<std::size_t>(pairs.number(step.peer, step.receives() ? 1 : 0));
    if (pairs.failed() || !last.resize(static_cast<std::size_t>(pairs.count()), kNone)) return false;
    if (last[pair] != kNone) {
      following_[last[pair]] = i;
      follows_[i] = 1;
    }
    last[pair] = i;
  }
  return true;
}

bool Program::place_landings(std::uint64_t unit_bytes) {
  const std::size_t steps = schedule_.steps.size();
  landing_.clear();
  landing_successor_.clear();
  inherits_.clear();
  Array<std::uint32_t> before;  // the combination right before this one in a chain
  if (!landing_.resize(steps, 0) || !landing_successor_.resize(steps, kNone) || !inherits_.resize(steps, 0) ||
      !before.resize(steps, kNone)) {
    return false;
  }
  landing_end_ = schedule_.scratch_units;
  for (std::uint32_t i = 0; i < steps; ++i) {
    const Step& step = schedule_.steps[i];
    if (step.kind != Kind::recv_reduce) continue;
    for (const std::uint32_t on : schedule_.dependencies_of(step)) {
      if (schedule_.steps[on].kind == Kind::recv_reduce) before[i] = on;
    }
    std::uint32_t owner = i;
    for (int back = 0; back < open_receives(step.length * unit_bytes) && owner != kNone; ++back) owner = before[owner];
    if (owner != kNone && landing_successor_[owner] == kNone && schedule_.steps[owner].length >= step.length) {
      landing_[i] = landing_[owner];
      landing_successor_[owner] = i;
      inherits_[i] = 1;
    } else {
      landing_[i] = landing_end_;
      landing_end_ += step.length;
    }
  }
  return true;
}

// ---- Execution ----

bool Execution::prepare(const Program& program) {
  program_ = &program;
  const std::size_t steps = program.schedule_.steps.size();
  // A step stands in each queue at most once at a time.
  return pending_.resize(steps, 0) && closed_.resize(steps, 0) && states_.resize(steps, State::waiting) &&
         messages_.reserve(steps) && work_.reserve(steps);
}

void Execution::start(const Binding& binding) {
  binding_ = binding;
  status_ = Status::ok;
  messages_.clear();
  work_.clear();
  const Array<Step>& steps = program_->schedule_.steps;
  left_ = steps.size();
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const bool combines = steps[i].kind == Kind::recv_reduce;
    closed_[i] = static_cast<std::uint8_t>(combines ? program_->inherits_[i] + program_->follows_[i] : 0);
    // What arrives counts as one.
    pending_[i] = steps[i].dependencies + (combines ? 1 : program_->follows_[i]);
    states_[i] = State::waiting;
    if (combines ? closed_[i] != 0 : pending_[i] != 0) continue;
    (steps[i].is_message() ? messages_ : work_).push(i, steps[i].priority);
  }
}

bool Execution::advance() {
  bool moved = collect();
  while (status_ == Status::ok) {
    while (!messages_.empty() && post(messages_.first())) {
      const std::uint32_t posted = messages_.first();
      messages_.pop();
      if (program_->following_[posted] != Program::kNone) open(program_->following_[posted]);
      moved = true;
    }
    if (work_.empty()) break;
    const std::uint32_t i = work_.first();
    work_.pop();
    perform(i);
    moved = true;
    // Peers need not wait for the rest of our work. But steps that it has made ready go first.
    // A look at the transport may cost a round of all ranks, where the host yields in it.
    if (messages_.empty() && !work_.empty()) collect();
  }
  return moved;
}

Status Execution::wait(const shm::WaitPolicy& policy, const Look& look) {
  shm::Waiter waiter(policy);
  while (!done()) {
    if (advance()) {
      waiter.moved();
    } else if (!done() && waiter.step() && look.look != nullptr) {
      look.look(look.context, *this, waiter.waited_ns());
    }
  }
  return status_;
}

bool Execution::collect() {
  constexpr int kBatch = 32;
  std::uint32_t tickets[kBatch];
  bool any = false;
  for (;;) {
    const int count =
        binding_.transport.poll ? binding_.transport.poll(binding_.transport.context, tickets, kBatch) : 0;
    if (count < 0) status_ = binding_.transport.why_broken();
    for (int t = 0; t < count; ++t) finished(tickets[t]);
    any = any || count > 0;
    if (count < kBatch) return any;
  }
}

bool Execution::post(std::uint32_t i) {
  const Step& s = step(i);
  const transport::Transport& transport = binding_.transport;
  const std::uint64_t bytes = s.length * binding_.unit_bytes;
  states_[i] = State::posted;  // a transport may be done before it returns
  bool taken;
  if (s.kind == Kind::send) {
    taken = transport.send(transport.context, s.peer, s.message_index, address(s.source, s.source_offset), bytes, i);
  } else {
    char* const to =
        s.kind == Kind::recv ? address(s.target, s.target_offset) : address(Buffer::scratch, program_->landing_[i]);
    taken = transport.recv(transport.context, s.peer, s.message_index, to, bytes, i);
  }
  if (!taken) states_[i] = State::waiting;
  return taken;
}

// The message of a step is complete.
void Execution::finished(std::uint32_t i) {
  if (step(i).kind != Kind::recv_reduce) return complete(i);
  states_[i] = State::arrived;
  met(i);
}

void Execution::met(std::uint32_t i) {
  if (--pending_[i] != 0) return;
  const bool message = step(i).is_message() && states_[i] == State::waiting;
  (message ? messages_ : work_).push(i, step(i).priority);
}

// A message has its turn, or has a place to land.
void Execution::open(std::uint32_t i) {
  if (step(i).kind != Kind::recv_reduce) return met(i);
  if (--closed_[i] == 0) messages_.push(i, step(i).priority);
}

void Execution::perform(std::uint32_t i) {
  const Step& s = step(i);
  const char* const source = address(s.source, s.source_offset);
  char* const target = address(s.target, s.target_offset);
  if (s.kind == Kind::copy) {
    std::memcpy(target, source, s.length * binding_.unit_bytes);
    return complete(i);
  }
  const bool arrives = s.kind == Kind::recv_reduce;
  const char* const other = arrives ? address(Buffer::scratch, program_->landing_[i]) : source;
  const char* const own = arrives ? source : target;
  const bool other_left = s.side == Side::left;
  binding_.combination.apply(binding_.combination.context, target, other_left ? other : own, other_left ? own : other,
                             s.length);
  complete(i);
}

void Execution::complete(std::uint32_t i) {
  states_[i] = State::complete;
  --left_;
  const Program& program = *program_;
  for (std::uint32_t s = program.first_successor_[i]; s < program.first_successor_[i + 1]; ++s)
    met(program.successors_[s]);
  const std::uint32_t successor = program.landing_successor_[i];
  if (successor != Program::kNone) open(successor);
}

void StepQueue::push(std::uint32_t step, std::uint16_t priority) {
  const std::uint64_t key = static_cast<std::uint64_t>(priority) << 32 | step;
  std::size_t at = heap_.size();
  heap_.push(key);
  for (; at > 0 && heap_[(at - 1) / 2] > key; at = (at - 1) / 2) heap_[at] = heap_[(at - 1) / 2];
  heap_[at] = key;
}

void StepQueue::pop() {
  const std::uint64_t last = heap_.back();
  const std::size_t size = heap_.size() - 1;
  heap_.resize(size, 0);
  std::size_t at = 0;
  for (std::size_t child = 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && heap_[child + 1] < heap_[child]) ++child;
    if (heap_[child] >= last) break;
    heap_[at] = heap_[child];
    at = child;
  }
  if (size > 0) heap_[at] = last;
}

}  // namespace stretto::sched
