// SPDX-License-Identifier: BSD-3-Clause
// Lock schemes under all interleavings of a writer and some clients. A client may die before any of
// its accesses.
#include "model.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "../../bench/kv/correctness.hpp"

using namespace stretto;
using namespace stretto::kv;
using namespace stretto::kv::model;

namespace {

struct Case {
  unsigned clients = 1;
  unsigned sections = 1;  // of each client
  unsigned writes = 1;
  bool mortal = true;
  // One more client. It has no entry until another client leaves, or dies and is reclaimed.
  bool successor = false;
  std::uint64_t most_states = 20'000'000;
};

template <template <class> class Scheme, class Sync>
class Scene {
 public:
  using L = Lock<Scheme, Sync>;
  explicit Scene(const Case& c) : case_(c), bytes_(L::bytes(c.clients) + sizeof(Data)) {
    memory_ = static_cast<char*>(
        std::aligned_alloc(shm::kLineBytes, (bytes_ + shm::kLineBytes - 1) / shm::kLineBytes * shm::kLineBytes));
  }
  ~Scene() { std::free(memory_); }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  Explorer::Result explore() {
    return explorer_.run(memory_, bytes_, case_.most_states, [this] { return prepare(); });
  }

 private:
  struct Data {
    typename Sync::Word first, second;
  };

  std::vector<Explorer::Program> prepare() {
    std::memset(memory_, 0, bytes_);
    data_ = reinterpret_cast<Data*>(memory_ + L::bytes(case_.clients));
    explorer_.act_as(0);
    locks_.assign(case_.clients + 2, L{});
    locks_[0].create(memory_, case_.clients);
    std::vector<Explorer::Program> programs;
    programs.push_back({[this] { write(); }});
    for (unsigned i = 1; i <= case_.clients; ++i) {
      explorer_.act_as(i);
      attach(i);
      if (locks_[i].join() != Status::ok) explorer_.fail("no free entry");
      programs.push_back({[this, i] {
                            for (unsigned s = 0; s < case_.sections; ++s) look(i);
                          },
                          case_.mortal});
    }
    if (case_.successor) {
      attach(case_.clients + 1);
      programs.push_back({[this, i = case_.clients + 1] {
        if (locks_[i].join() == Status::ok) look(i);
      }});
    }
    return programs;
  }
  void attach(unsigned i) {
    if (locks_[i].attach(memory_, bytes_) != Status::ok) explorer_.fail("not attached");
  }
  void write() {
    for (unsigned w = 1; w <= case_.writes; ++w) {
      locks_[0].write_enter();
      data_->first.store_relaxed(w);
      data_->second.store_relaxed(w);
      locks_[0].write_leave();
    }
    if (case_.successor) locks_[0].reap();
  }
  void look(unsigned i) {
    std::uint64_t a = 0, b = 0;
    const Status status = locks_[i].read([&] {
      a = data_->first.load_relaxed();
      b = data_->second.load_relaxed();
    });
    if (status != Status::ok) explorer_.fail("a reader was refused");
    if (a != b) explorer_.fail("a reader saw half of a change");
  }

  Case case_;
  std::size_t bytes_;
  char* memory_ = nullptr;
  Data* data_ = nullptr;
  std::vector<L> locks_;
  Explorer explorer_;
};

template <template <class> class Scheme, class Sync = Model>
Explorer::Result explore(const Case& c) {
  return Scene<Scheme, Sync>(c).explore();
}

template <template <class> class Scheme, class Sync = Model>
void expect_sound(const Case& c) {
  const auto result = explore<Scheme, Sync>(c);
  EXPECT_EQ(result.failure, "") << Scheme<Model>::kName;
  EXPECT_TRUE(result.exhausted) << Scheme<Model>::kName << ": " << result.states << " states are not all";
  EXPECT_GT(result.states, 100u);
  std::printf("%s: %u client(s) x %u, %u writes%s%s: %llu states, %llu runs\n", Scheme<Model>::kName, c.clients,
              c.sections, c.writes, c.mortal ? ", mortal" : "", c.successor ? ", a successor" : "",
              static_cast<unsigned long long>(result.states), static_cast<unsigned long long>(result.runs));
}

const bool kLong = std::getenv("STRETTO_TEST_LONG") != nullptr;

// The number of states depends on what a scheme's protocol does to a section. It decides how much
// can be tried in a second or two.
const Case kPlain = {.clients = 1, .sections = 2, .writes = 2, .mortal = false};
const Case kDeath = {.clients = 1, .sections = 2, .writes = 2};
const Case kTwo = {.clients = 2, .sections = 1, .writes = 1};
const Case kSuccessor = {.clients = 1, .sections = 1, .writes = 1, .successor = true};
const Case kTwoWrites = {.clients = 2, .sections = 1, .writes = 2};

TEST(KvModel, NMcsIsSoundAndSurvivesDeath) {
  for (const Case& c : {kPlain, kDeath, kTwo, kSuccessor}) expect_sound<NMcs>(c);
  if (kLong) expect_sound<NMcs>(kTwoWrites);
}

TEST(KvModel, NMutexSignalIsSoundAndSurvivesDeath) {
  for (const Case& c : {kPlain, kDeath, kTwo, kSuccessor}) expect_sound<NMutexSignal>(c);
  if (kLong) expect_sound<NMutexSignal>(kTwoWrites);
}

TEST(KvModel, PassiveIsSoundAndSurvivesDeath) {
  for (const Case& c : {kPlain, kDeath, kTwo, kSuccessor}) expect_sound<Passive>(c);
  if (kLong) expect_sound<Passive>(kTwoWrites);
}

// The barrier works when the writer makes the lock. The system refuses it from the writer's n-th
// section on.
template <unsigned n>
struct RefusedLater : Model {
  static inline unsigned sections = 0;
  static bool barrier_everywhere() {
    if (!Explorer::current()->running())
      sections = 0;
    else if (++sections >= n)
      return false;
    return Model::barrier_everywhere();
  }
};

TEST(KvModel, PassiveIsSoundWhenTheBarrierIsRefusedLater) {
  for (const Case& c : {kPlain, kDeath, kTwo, kSuccessor}) expect_sound<Passive, RefusedLater<1>>(c);
  for (const Case& c : {kPlain, kDeath}) expect_sound<Passive, RefusedLater<2>>(c);
  if (kLong) expect_sound<Passive, RefusedLater<2>>(kTwoWrites);
}

template <class Sync>
struct ImpatientSeqLock : SeqLockTrying<Sync, 0> {};  // waits for its turn as soon as it comes too late once

TEST(KvModel, SeqlockIsSoundAndSurvivesDeath) {
  expect_sound<SeqLock>({.clients = 1, .sections = 1, .writes = 2});
  expect_sound<ImpatientSeqLock>({.clients = 1, .sections = 1, .writes = 2});
  if (!kLong) return;
  for (const Case& c : {kDeath, kTwo, kSuccessor}) expect_sound<SeqLock>(c);
  for (const Case& c : {kDeath, kTwo}) expect_sound<ImpatientSeqLock>(c);
}

// ---- the explorer finds mistakes ----

TEST(KvModel, FindsALockThatDoesNothing) {
  EXPECT_EQ(explore<bench::Dummy>({}).failure, "a reader saw half of a change");
}

struct WithoutBarrier : Model {
  static bool barrier_everywhere() { return true; }
};

struct RefusedInHaste : RefusedLater<1> {
  static void let_stores_arrive() {}
};

TEST(KvModel, FindsThatPassiveMustWaitWhenTheBarrierIsRefused) {
  EXPECT_EQ((explore<Passive, RefusedInHaste>({}).failure), "a reader saw half of a change");
}

TEST(KvModel, FindsThatPassiveNeedsItsBarrier) {
  EXPECT_EQ((explore<Passive, WithoutBarrier>({}).failure), "a reader saw half of a change");
}

template <class Sync>
struct CarelessMcs : NMcs<Sync> {
  template <class L>
  static void repair(L&, typename NMcs<Sync>::Client&) {}
};

TEST(KvModel, FindsThatTheDeadMustBeTakenOutOfTheQueue) {
  EXPECT_NE(explore<CarelessMcs>({.clients = 1, .sections = 1, .writes = 2, .successor = true}).failure, "");
}

template <class Sync>
struct HastyMcs : NMcs<Sync> {  // marks itself when it is in the queue already
  template <class L>
  static Status enter(L& lock, typename NMcs<Sync>::Client& queue) {
    if (queue.head.exchange(1) == 0) return Status::ok;
    queue.blocked[0].store_relaxed(1);
    return lock.wait_for_writer([&] { return queue.blocked[0].load_acquire() == 0; }) ? Status::ok : Status::peer_gone;
  }
};

TEST(KvModel, FindsALostWakeUp) { EXPECT_EQ(explore<HastyMcs>({.mortal = false}).failure, "nobody can go on"); }

template <class Sync>
struct SignalAlone : NMutexSignal<Sync> {  // the writer does not wait until the client has left its section
  template <class L>
  static void acquire(L& lock) {
    for (unsigned i = 0; i < lock.clients(); ++i) lock.client(i).signal.store_relaxed(1);
  }
};

TEST(KvModel, FindsThatTheSignalAloneExcludesNobody) {
  EXPECT_EQ(explore<SignalAlone>({}).failure, "a reader saw half of a change");
}

}  // namespace
