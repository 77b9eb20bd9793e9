// SPDX-License-Identifier: BSD-3-Clause
// Runs all interleavings of small programs that use a lock scheme. The programs run the shipped
// code on a machine (Model) that asks the explorer before every access to shared memory. The
// explorer says which process goes on.
//
// The machine is x86-like (TSO). A store goes into its process's buffer and reaches memory at any
// later time, in order. Loads see their process's buffer first. Read-modify-write accesses and
// fences empty their process's buffer; barrier_everywhere() empties all buffers. A process may die
// before any access. What it had stored still gets to memory. Waiting is a state and not a loop: a
// waiting process may go on when its condition is true, or can never be true.
//
// The search goes depth first and runs the programs again from the beginning. It does not enter a
// state twice. A state is memory, the buffers, and what each process has observed so far. Equal
// programs that have observed the same are at the same place.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "kv/lock/schemes.hpp"

namespace stretto::kv::model {

inline std::uint64_t mixed(std::uint64_t h, std::uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 31;
}

// A condition on the stack of a process that waits for it.
class Condition {
 public:
  Condition() = default;
  template <class F>
  explicit Condition(F& f) : object_(&f), call_([](void* object) { return (*static_cast<F*>(object))(); }) {}
  bool operator()() const { return call_(object_); }

 private:
  void* object_ = nullptr;
  bool (*call_)(void*) = nullptr;
};

class Explorer {
 public:
  struct Program {
    std::function<void()> body;
    bool mortal = false;
  };
  struct Result {
    std::string failure;  // empty: there is none
    std::uint64_t states = 0, runs = 0;
    bool exhausted = false;  // all states were seen
  };

  static Explorer*& current() {
    static Explorer* explorer = nullptr;
    return explorer;
  }

  // `prepare` makes the memory anew and returns the programs. The state is what lies in [memory,
  // memory + bytes).
  Result run(const void* memory, std::size_t bytes, std::uint64_t most_states,
             const std::function<std::vector<Program>()>& prepare) {
    current() = this;
    Result result;
    std::vector<std::pair<unsigned, unsigned>> choices;  // which choice was taken, of how many
    do {
      ++result.runs;
      running_ = false;
      begin(prepare());
      for (std::size_t depth = 0;; ++depth) {
        const auto actions = enabled();
        if (!failure_.empty() || actions.empty()) break;
        if (depth == choices.size()) {
          if (!seen_.insert(state(memory, bytes)).second) break;
          choices.emplace_back(0, actions.size());
        }
        perform(actions[choices[depth].first]);
      }
      if (failure_.empty() && enabled().empty() && !all_ended()) failure_ = "nobody can go on";
      if (!failure_.empty()) {
        result.failure = failure_;
        result.states = seen_.size();
        return result;
      }
      while (!choices.empty() && choices.back().first + 1 == choices.back().second) choices.pop_back();
      if (!choices.empty()) ++choices.back().first;
    } while (!choices.empty() && seen_.size() < most_states);
    result.exhausted = choices.empty();
    result.states = seen_.size();
    return result;
  }

  // ---- for the machine ----
  [[nodiscard]] bool running() const { return running_; }  // the programs run, and not what prepares them
  std::uint64_t identity() const { return now_ + 1; }
  void act_as(unsigned process) { now_ = process; }
  bool gone(std::uint64_t identity) const { return processes_[identity - 1].standing == Standing::dead; }
  void fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }

  std::uint64_t load(const std::uint64_t& word) {
    pause();
    return note(peek(word));
  }
  void store(std::uint64_t& word, std::uint64_t value) {
    pause();
    if (!running_) {
      word = value;
      return;
    }
    if (peeking_) return;
    note(1);
    self().buffer.emplace_back(&word, value);
  }
  std::uint64_t exchange(std::uint64_t& word, std::uint64_t value) {
    pause();
    drain_self();
    const std::uint64_t before = note(word);
    if (!peeking_) word = value;
    return before;
  }
  bool compare_exchange(std::uint64_t& word, std::uint64_t expected, std::uint64_t value) {
    pause();
    drain_self();
    const bool equal = word == expected;
    note(equal);
    if (equal && !peeking_) word = value;
    return equal;
  }
  void fence() {
    pause();
    drain_self();
    note(2);
  }
  void fence_all() {
    pause();
    if (!running_) return;
    for (Process& process : processes_) drain(process);
    note(3);
  }
  bool wait(Condition done, Condition hopeless) {
    if (!running_) return done();
    self().done = done;
    self().hopeless = hopeless;
    self().standing = Standing::waiting;
    yield();
    self().standing = Standing::ready;
    inside_wait_ = true;
    const bool good = done();
    if (!good) (void)hopeless();
    inside_wait_ = false;
    note(good);
    return good;
  }

 private:
  enum class Standing : std::uint8_t { ready, waiting, ended, dead };
  enum class Kind : std::uint8_t { step, flush, die };
  struct Action {
    unsigned process;
    Kind kind;
  };
  struct Process {
    std::function<void()> body;
    bool mortal = false;
    Standing standing = Standing::ready;
    std::uint64_t history = 0;
    std::deque<std::pair<std::uint64_t*, std::uint64_t>> buffer;
    Condition done, hopeless;
    bool started = false;
    jmp_buf at{};
    ucontext_t context{};
  };

  static constexpr std::size_t kStackBytes = 64 << 10;

  void begin(std::vector<Program> programs) {
    failure_.clear();
    processes_.clear();
    processes_.resize(programs.size());
    while (stacks_.size() < programs.size()) stacks_.push_back(std::make_unique<char[]>(kStackBytes));
    for (std::size_t i = 0; i < programs.size(); ++i) {
      processes_[i].body = std::move(programs[i].body);
      processes_[i].mortal = programs[i].mortal;
    }
    running_ = true;
  }

  Process& self() { return processes_[now_]; }
  static void drain(Process& process) {
    for (const auto& [word, value] : process.buffer) *word = value;
    process.buffer.clear();
  }
  void drain_self() {
    if (running_ && !peeking_) drain(self());
  }
  std::uint64_t peek(const std::uint64_t& word) {
    if (running_) {
      const auto& buffer = self().buffer;
      for (auto entry = buffer.rbegin(); entry != buffer.rend(); ++entry) {
        if (entry->first == &word) return entry->second;
      }
    }
    return word;
  }
  std::uint64_t note(std::uint64_t observed) {
    if (running_ && !peeking_) self().history = mixed(self().history, observed + 7);
    return observed;
  }

  // ---- switching between processes and the explorer ----
  void pause() {
    if (running_ && !peeking_ && !inside_wait_) yield();
  }
  void yield() {
    if (_setjmp(self().at) == 0) _longjmp(home_, 1);
  }
  static void enter() {
    Explorer& e = *current();
    e.self().body();
    e.self().standing = Standing::ended;
    _longjmp(e.home_, 1);
  }
  void resume(unsigned process) {
    now_ = process;
    if (_setjmp(home_) != 0) return;
    Process& p = self();
    if (p.started) _longjmp(p.at, 1);
    p.started = true;
    getcontext(&p.context);
    p.context.uc_stack.ss_sp = stacks_[process].get();
    p.context.uc_stack.ss_size = kStackBytes;
    p.context.uc_link = nullptr;
    makecontext(&p.context, &Explorer::enter, 0);
    setcontext(&p.context);
  }

  // ---- the search ----
  std::vector<Action> enabled() {
    std::vector<Action> actions;
    for (unsigned i = 0; i < processes_.size(); ++i) {
      Process& p = processes_[i];
      if (can_step(i)) actions.push_back({i, Kind::step});
      if (!p.buffer.empty()) actions.push_back({i, Kind::flush});
      if (p.mortal && p.started && (p.standing == Standing::ready || p.standing == Standing::waiting))
        actions.push_back({i, Kind::die});
    }
    return actions;
  }
  bool can_step(unsigned i) {
    Process& p = processes_[i];
    if (p.standing == Standing::ready) return true;
    if (p.standing != Standing::waiting) return false;
    now_ = i;
    peeking_ = true;
    const bool can = p.done() || p.hopeless();
    peeking_ = false;
    return can;
  }
  void perform(Action action) {
    Process& p = processes_[action.process];
    if (action.kind == Kind::step) {
      resume(action.process);
    } else if (action.kind == Kind::flush) {
      *p.buffer.front().first = p.buffer.front().second;
      p.buffer.pop_front();
    } else {
      drain(p);
      p.standing = Standing::dead;
    }
  }
  bool all_ended() const {
    for (const Process& p : processes_) {
      if (p.standing == Standing::ready || p.standing == Standing::waiting) return false;
    }
    return true;
  }
  std::uint64_t state(const void* memory, std::size_t bytes) const {
    std::uint64_t h = 1;
    for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, static_cast<const char*>(memory) + at, 8);
      h = mixed(h, word);
    }
    for (const Process& p : processes_) {
      h = mixed(mixed(h, p.history), static_cast<std::uint64_t>(p.standing) + 16 * p.buffer.size() + 8 * p.started);
      for (const auto& [word, value] : p.buffer) {
        h = mixed(mixed(h, static_cast<std::uint64_t>(reinterpret_cast<const char*>(word) -
                                                      static_cast<const char*>(memory))),
                  value);
      }
    }
    return h;
  }

  std::deque<Process> processes_;
  std::vector<std::unique_ptr<char[]>> stacks_;
  std::unordered_set<std::uint64_t> seen_;
  std::string failure_;
  jmp_buf home_{};
  unsigned now_ = 0;
  bool running_ = false;
  bool peeking_ = false;
  bool inside_wait_ = false;
};

// The machine of the explored programs.
struct Model : Machine {
  struct Word {
    std::uint64_t value;
    [[nodiscard]] std::uint64_t load_relaxed() const { return Explorer::current()->load(value); }
    [[nodiscard]] std::uint64_t load_acquire() const { return Explorer::current()->load(value); }
    void store_relaxed(std::uint64_t v) { Explorer::current()->store(value, v); }
    void store_release(std::uint64_t v) { Explorer::current()->store(value, v); }
    std::uint64_t exchange(std::uint64_t v) { return Explorer::current()->exchange(value, v); }
    bool compare_exchange(std::uint64_t expected, std::uint64_t v) {
      return Explorer::current()->compare_exchange(value, expected, v);
    }
  };
  static void fence() { Explorer::current()->fence(); }
  static void fence_after_exchange() {}
  static void fence_acquire() {}
  static void fence_light() {}
  static bool barrier_register() { return true; }
  static bool barrier_everywhere() {
    Explorer::current()->fence_all();
    return true;
  }
  static void let_stores_arrive() { Explorer::current()->fence_all(); }
  static std::uint64_t identity() { return Explorer::current()->identity(); }
  static bool gone(std::uint64_t identity) { return Explorer::current()->gone(identity); }
  static bool crowded(unsigned) { return false; }
  static std::uint64_t pid_namespace() { return 1; }
  template <class Done, class Hopeless>
  static bool wait(const shm::WaitPolicy&, Done done, Hopeless hopeless) {
    return Explorer::current()->wait(Condition(done), Condition(hopeless));
  }
};

}  // namespace stretto::kv::model
