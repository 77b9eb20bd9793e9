// SPDX-License-Identifier: BSD-3-Clause
#include "fibers.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>

namespace stretto::node {
namespace {

constexpr std::size_t kStackBytes = 512 << 10;
constexpr double kPassNs = 1e-3, kBetweenCallsNs = 1000;
Fibers* running = nullptr;

}  // namespace

bool Fibers::run(int ranks, std::function<void(int)> body) {
  body_ = std::move(body);
  fibers_.assign(ranks, {});
  for (int r = 0; r < ranks; ++r) {
    void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) std::abort();
    fibers_[r].stack = static_cast<char*>(stack);
    ready_.push({0, r});
  }
  running = this;
  if (_setjmp(main_) == 0) resume_first();
  running = nullptr;
  self_ = kNobody;
  bool ended = true;
  for (const Fiber& fiber : fibers_) {
    ended = ended && fiber.ended;
    munmap(fiber.stack, kStackBytes);
  }
  return ended;
}

void Fibers::enter() {
  Fibers& all = *running;
  const int rank = all.self_;
  all.body_(rank);
  all.fibers_[rank].ended = true;
  if (all.ready_.empty()) _longjmp(all.main_, 1);
  all.resume_first();
  std::abort();
}

void Fibers::start(int rank) {
  Fiber& fiber = fibers_[rank];
  fiber.started = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber.stack;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, &Fibers::enter, 0);
  setcontext(&context);
}

void Fibers::resume(int rank) {
  self_ = rank;
  if (!fibers_[rank].started) start(rank);
  _longjmp(fibers_[rank].context, 1);
}

void Fibers::resume_first() {
  const int first = ready_.top().second;
  ready_.pop();
  resume(first);
}

void Fibers::wait_behind() {
  ready_.push({clock(), self_});
  if (_setjmp(fibers_[self_].context) == 0) resume_first();
}

void Fibers::pass() {
  clock() += kPassNs;
  wait_behind();
}

void Fibers::together() {
  waiting_.push_back(self_);
  if (waiting_.size() < fibers_.size()) {
    if (_setjmp(fibers_[self_].context) != 0) return;
    if (ready_.empty()) _longjmp(main_, 1);
    resume_first();
  }
  double latest = 0;
  for (const int rank : waiting_) latest = std::max(latest, fibers_[rank].clock);
  for (const int rank : waiting_) {
    fibers_[rank].clock = latest + kBetweenCallsNs;
    if (rank != self_) ready_.push({latest + kBetweenCallsNs, rank});
  }
  waiting_.clear();
}

}  // namespace stretto::node
