// SPDX-License-Identifier: BSD-3-Clause
#include "overlap/deferred_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/private_heap.hpp"
#include "sys/call_layouts.hpp"
#include "sys/kernel_access.hpp"

namespace stretto::overlap {
namespace {

constexpr long kNapNs = 20'000;
constexpr std::uint64_t kMostCopied = 256 << 20;  // bytes of what calls that have returned send

DeferredCalls::Result failed(Status status) {
  DeferredCalls::Result result;
  result.status = status;
  return result;
}

// The driver's thread needs a processor, too: a rank that waits for it gives its own away soon.
shm::WaitPolicy patient(const shm::WaitPolicy& policy) {
  shm::WaitPolicy made = policy;
  made.crowd();
  made.nap_after_ns = std::min<std::uint64_t>(made.nap_after_ns, 100'000);
  return made;
}

}  // namespace

void DeferredCalls::open(const Settings& settings) {
  open_ = true;
  notes_ = settings.notes;
  Guard::Limits limits;
  limits.most = settings.most;
  limits.least_bytes = settings.least_bytes;
  limits.alarm = {&messages_, [](void* messages, std::uint64_t ns) {
                    static_cast<transport::bulk::Driver*>(messages)->attend_by(ns);
                  }};
  guard_error_ = guard_.open(limits);
  if (catches_calls()) {
    waits_ = {this,
              [](void* self, std::uint64_t address, std::uint64_t bytes) {
                static_cast<DeferredCalls*>(self)->wait_in_call(address, bytes);
              },
              [](void* self) { static_cast<DeferredCalls*>(self)->wait_in_call(0, ~std::uint64_t{0}); },
              guard_.faults().says_memory};
    guard_error_ = sys::calls_install(answer, this);
    if (guard_error_ != 0) guard_.close();
  }
}

// Data of a call that has not returned wait for this thread, which drives the MPI in that call.
bool DeferredCalls::has_returned_away() const {
  return any_away() && std::any_of(std::begin(by_cover_), std::end(by_cover_), [](const auto& each) {
           const Pending* const pending = each.load(std::memory_order_acquire);
           return pending != nullptr && pending->has_returned() && pending->has_away();
         });
}

// In the handler of a signal. Calls whose data it waits for stay as they are meanwhile. One of them
// may be over when the wait ends, and its place may serve another call: then that one counts it.
void DeferredCalls::wait_in_call(std::uint64_t begin, std::uint64_t bytes) {
  const bool is_of_some = bytes != ~std::uint64_t{0};
  const auto is_away = [&] { return is_of_some ? guard_.away(begin, bytes) : has_returned_away(); };
  if (!is_away()) return;
  const std::uint64_t since_ns = sys::now_through();
  bool waits[Guard::kMostCovers] = {};
  for (int i = 0; i < Guard::kMostCovers; ++i) {
    Pending* const pending = by_cover_[i].load(std::memory_order_acquire);
    waits[i] = pending != nullptr && pending->has_returned() && pending->has_away() && pending->touches(begin, bytes);
    if (waits[i]) pending->catch_call(since_ns);
  }
  // A load waits for its page, and makes the driver ask for it.
  std::uint64_t at = 0;
  while (is_of_some && guard_.away(begin, bytes, &at)) (void)*static_cast<const volatile char*>(address(at));
  while (is_away()) sys::nap_through(kNapNs);
  if (!is_of_some) waited_ns_ += sys::now_through() - since_ns;  // else the driver has seen the touch
  for (int i = 0; i < Guard::kMostCovers; ++i) {
    if (waits[i]) by_cover_[i].load(std::memory_order_acquire)->let_go(since_ns, sys::now_through());
  }
}

// Where nothing is away the thread is caught in vain: it goes on uncaught.
sys::CallAnswer DeferredCalls::answer(void* context, const sys::CaughtCall& call) {
  auto* const self = static_cast<DeferredCalls*>(context);
  if (!self->any_away()) return {true, 0};
  return answer_call(&self->waits_, call);
}

void DeferredCalls::close() {
  if (!open_) return;
  open_ = false;
  complete_all({});
  messages_.stop();
  if (catches_calls()) sys::calls_uninstall();
  guard_.close();
  for (Pending* const pending : pending_) PrivateHeap::destroy(pending);
  pending_.clear();
}

// ---- one call ----

Pending* DeferredCalls::take(const Exchange& call) {
  const Locked locked(lock_);
  Pending* taken = nullptr;
  for (Pending* const pending : pending_) {
    if (taken == nullptr && !pending->taken.exchange(true)) taken = pending;
  }
  if (taken == nullptr) {
    taken = PrivateHeap::make<Pending>(messages_, guard_, notes_);
    if (taken == nullptr) return nullptr;
    taken->taken = true;
    if (!pending_.push(taken)) {
      PrivateHeap::destroy(taken);
      return nullptr;
    }
  }
  const Sites::Site* const site = call.is_measuring ? nullptr : sites_.find(call.site());
  taken->prefer(site != nullptr ? &site->order : nullptr);
  return taken;
}

void DeferredCalls::count_call(const Exchange& call, std::uint64_t begin_ns, std::uint64_t end_ns) {
  const Locked locked(lock_);
  Sites::Site* const site = sites_.find(call.site());
  if (site == nullptr) return;
  std::strncpy(site->place, call.place, sizeof site->place - 1);
  ++site->counts.calls;
  site->counts.in_call_ns += end_ns - begin_ns;
  site->timeline.add(&Timeline::Bin::in_call_ns, begin_ns - origin_ns_, end_ns - begin_ns);
}

// The thread of the connections serves the guard, too.
bool DeferredCalls::serves_guard() {
  const Locked locked(lock_);
  if (attended_ || guard_error_ != 0) return attended_;
  const auto attend = [](void* context) {
    auto* const self = static_cast<DeferredCalls*>(context);
    (void)self->messages_.attend(
        self->guard_.faults().fd, [](void* driver) { static_cast<DeferredCalls*>(driver)->on_events(); }, self);
  };
  attended_ = messages_.on_thread(attend, this) == Status::ok;
  return attended_;
}

void DeferredCalls::on_events() {
  constexpr int kMost = 16;
  Told told[kMost];
  int count = kMost;
  while (count == kMost && guard_.events(told, kMost, &count) == 0) {
    for (int i = 0; i < count; ++i) {
      if (told[i].kind != Told::Kind::fault) continue;
      if (Pending* const pending = by_cover_[told[i].cover].load(std::memory_order_acquire))
        pending->wanted(told[i].offset);
    }
  }
}

DeferredCalls::Result DeferredCalls::run(const Exchange& call, const shm::WaitPolicy& policy) {
  const std::uint64_t begin = sys::now_ns();
  // Guarding switches catching off. Until it is on again, a handler of a signal might have the
  // kernel use earlier data.
  if (any_away() && catches_calls() && sys::handled_signals() != 0) complete_all(policy);
  const Result result = make(call, policy);
  // Data of an earlier call may still be under way, and guarding has switched catching off.
  if (!result.early && !catch_calls()) complete_all(policy);
  if (!call.is_measuring) count_call(call, begin, sys::now_ns());
  return result;
}

// Peers that wait for this rank hear that it gives up.
DeferredCalls::Result DeferredCalls::give_up(const Exchange& call) {
  for (const MessageOut& send : call.sends) abandon(send.peer, call.comm);
  for (const MessageIn& what : call.receives) {
    abandon(what.peer, call.comm);
    if (what.forward_to >= 0) abandon(what.forward_to, call.comm);
  }
  return failed(Status::no_memory);
}

// Where the kernel does not wait for pages, it may use them by calls of this thread alone.
Refusal DeferredCalls::check_kernel_access(const Exchange& call) {
  if (!catches_calls()) return Refusal::none;
  if (!sys::is_only_thread()) return Refusal::threads;
  const std::uint64_t handled = sys::handled_signals();
  if (handled != 0 && sys::runs_handlers_elsewhere(handled)) return Refusal::elsewhere;
  waits_.beside_threads = sys::has_threads_of_mpi();
  if (sys::has_children()) return Refusal::children;
  return sys::is_stack({call.memory(), call.memory_bytes()}) ? Refusal::stack : Refusal::none;
}

// Makes it possible that the call returns early, or says why not.
Refusal DeferredCalls::prepare(const Exchange& call, Pending& pending) {
  pending.do_not_cover();
  if (!call.may_return_early) return Refusal::unsuitable;
  if (too_much_is_copied()) return Refusal::copied;
  if (call.fills_nothing()) return pending.copy_all(call) ? Refusal::none : Refusal::no_memory;
  if (guard_error_ != 0) return Refusal::closed;
  if (!serves_guard()) return Refusal::no_thread;
  if (const Refusal why = check_kernel_access(call); why != Refusal::none) return why;
  if (call.gapped != nullptr) {
    // Another process may be in the midst of reading a gap, for an earlier message of the MPI.
    const bool waits_for_pages = mode() == sys::FaultMode::kernel;
    return waits_for_pages && sys::is_only_thread() ? pending.prepare_gapped(call) : Refusal::gapped;
  }
  // Where no event tells of mappings, calls stay caught while other data are away.
  if (guard_.faults().says_memory) sys::calls_off();
  const Refusal refused = pending.cover(call, guard_.faults().page_bytes);
  if (refused == Refusal::none) by_cover_[pending.index_of_cover()].store(&pending, std::memory_order_release);
  return refused;
}

Refusal DeferredCalls::cover_gapped(Pending& pending) {
  const Refusal refused = pending.cover_gapped(guard_.faults().page_bytes);
  if (refused == Refusal::none) by_cover_[pending.index_of_cover()].store(&pending, std::memory_order_release);
  return refused;
}

DeferredCalls::Result DeferredCalls::make(const Exchange& call, const shm::WaitPolicy& policy) {
  reap();
  Pending* const pending = take(call);
  if (pending == nullptr) return give_up(call);
  Refusal refused = prepare(call, *pending);
  if (refused == Refusal::lost) {
    pending->taken.store(false, std::memory_order_release);
    return give_up(call);
  }
  const shm::WaitPolicy waits = patient(policy);
  if ((call.ends.bring != nullptr ? pending->begin_with_ends(call, waits) : pending->begin(call)) == Status::ok) {
    shm::Waiter waiter(waits);
    while (!pending->over() && !pending->may_return() && pending->status() == Status::ok) {
      if (pending->may_cover_gapped()) refused = cover_gapped(*pending);
      (void)waiter.step();
    }
    if (!pending->over() && pending->may_return()) {
      if (!catch_calls())
        refused = Refusal::not_caught;
      else if (pending->return_now())
        return {Status::ok, true, refused, {}};
    }
  }
  pending->forgo_cover();
  wait_until_over(*pending, waits);
  Result result = finish(*pending);
  result.refused = refused;
  return result;
}

// A rank that only sends could run ahead for ever.
bool DeferredCalls::too_much_is_copied() {
  const Locked locked(lock_);
  std::uint64_t bytes = 0;
  for (const Pending* const pending : pending_)
    bytes += pending->taken && pending->has_returned() ? pending->copy_bytes() : 0;
  return bytes > kMostCopied;
}

// Catches the system calls of this thread where the kernel would not wait for pages.
bool DeferredCalls::catch_calls() { return !any_away() || !catches_calls() || sys::calls_on() == 0; }

void DeferredCalls::wait_until_over(Pending& pending, const shm::WaitPolicy& policy) {
  shm::Waiter waiter(policy);
  for (bool abandoned = false; !pending.over();) {
    const Status status = pending.status();
    if (!abandoned && status != Status::ok && status != Status::truncated) {
      abandoned = true;
      pending.abandon();
    }
    (void)waiter.step();
  }
}

DeferredCalls::Result DeferredCalls::finish(Pending& pending) {
  Result result;
  result.status = pending.status();
  result.lost = pending.lost();
  pending.reap();
  pending.taken.store(false, std::memory_order_release);
  return result;
}

// ---- calls that have returned early ----

void DeferredCalls::reap() {
  const Locked locked(lock_);
  for (Pending* const pending : pending_) {
    if (!pending->taken || !pending->has_returned() || !pending->over()) continue;
    if (Sites::Site* const site = sites_.find(pending->site())) pending->teach(site, origin_ns_);
    waited_ns_ += pending->touched_ns();
    (void)finish(*pending);
  }
}

std::uint64_t DeferredCalls::waited_ns() {
  const Locked locked(lock_);
  std::uint64_t ns = waited_ns_;
  for (const Pending* const pending : pending_) {
    if (pending->taken && pending->has_returned()) ns += pending->touched_ns();
  }
  return ns;
}

template <class Chosen>
void DeferredCalls::complete_those(const shm::WaitPolicy& policy, const Chosen& chosen) {
  const std::uint64_t begin_ns = sys::now_ns();
  const shm::WaitPolicy waits = patient(policy);
  shm::Waiter waiter(waits);
  for (;;) {
    bool waits_for_one = false;
    {
      const Locked locked(lock_);
      for (Pending* const pending : pending_) {
        if (!pending->taken || !pending->has_returned() || !chosen(*pending)) continue;
        pending->hold();
        waits_for_one = true;
      }
    }
    if (!waits_for_one) break;
    (void)waiter.step();
  }
  waited_ns_ += sys::now_ns() - begin_ns;
  if (!any_away()) sys::calls_off();
  reap();
}

void DeferredCalls::complete(const void* memory, std::uint64_t bytes, const shm::WaitPolicy& policy) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  complete_those(policy, [&](const Pending& pending) { return pending.has_away() && pending.touches(address, bytes); });
}

void DeferredCalls::complete_all(const shm::WaitPolicy& policy) {
  complete_those(policy, [](const Pending& pending) { return !pending.over(); });
}

void DeferredCalls::bring_home(const void* memory, std::uint64_t bytes) const {
  while (guard_.away(reinterpret_cast<std::uintptr_t>(memory), bytes)) sys::nap_through(kNapNs);
}

void DeferredCalls::forget(std::uint64_t comm, const shm::WaitPolicy& policy) {
  complete_those(policy, [&](const Pending& pending) { return pending.comm() == comm && !pending.over(); });
  messages_.forget(comm);
}

void DeferredCalls::complete_before_fork() {
  while (any_away()) sys::nap_through(kNapNs);
}

}  // namespace stretto::overlap
