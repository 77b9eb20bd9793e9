// SPDX-License-Identifier: BSD-3-Clause
// Ranks as fibers of one thread, each with a clock of its own. The rank with the earliest clock
// runs, the lower rank first, so every run is the same.
#pragma once
#include <csetjmp>
#include <functional>
#include <queue>
#include <vector>

namespace stretto::node {

class Fibers {
 public:
  static constexpr int kNobody = -1;

  // Runs `body(rank)` on all ranks and returns when all have returned. False: some rank waits for
  // ever in together().
  bool run(int ranks, std::function<void(int)> body);
  [[nodiscard]] int self() const { return self_; }
  [[nodiscard]] double& clock() { return fibers_[self_].clock; }
  // Ranks with earlier clocks go first.
  void let_earlier_go() {
    if (!ready_.empty() && ready_.top().first < clock()) wait_behind();
  }
  // All other ranks have a turn. Their clocks hardly move.
  void pass();
  // Returns when all ranks are here. Their clocks are then the same: a while after the latest.
  void together();

 private:
  struct Fiber {
    std::jmp_buf context;
    bool started = false, ended = false;
    char* stack = nullptr;
    double clock = 0;
  };
  using Ready = std::pair<double, int>;

  static void enter();
  void start(int rank);
  void resume(int rank);
  void resume_first();
  void wait_behind();

  std::function<void(int)> body_;
  std::vector<Fiber> fibers_;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready_;
  std::vector<int> waiting_;  // in together()
  std::jmp_buf main_;
  int self_ = kNobody;
};

}  // namespace stretto::node
