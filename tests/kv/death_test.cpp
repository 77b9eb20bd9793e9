// SPDX-License-Identifier: BSD-3-Clause
// Clients are killed (SIGKILL) before each of their accesses to shared memory, and at random under
// load. The writer goes on, the data are whole, and a new process takes the dead client's entry.
// When the writer dies, clients must learn of it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "../../bench/kv/crew.hpp"

using namespace stretto;
using namespace stretto::kv;
using namespace stretto::kv::bench;

namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSoonNs = 100 * kMillisecond;

// The machine of the schemes, which kills its process at a chosen access.
struct Mortal : Machine {
  static constexpr std::uint64_t kImmortal = ~std::uint64_t{0};
  static inline std::uint64_t steps_left = kImmortal;
  static void step() {
    if (steps_left == kImmortal) return;
    if (steps_left-- == 0) {
      kill(getpid(), SIGKILL);
      for (;;) pause();
    }
  }

  struct Word {
    shm::Atomic<std::uint64_t> word;
    [[nodiscard]] std::uint64_t load_relaxed() const { return step(), word.load_relaxed(); }
    [[nodiscard]] std::uint64_t load_acquire() const { return step(), word.load_acquire(); }
    void store_relaxed(std::uint64_t value) { step(), word.store_relaxed(value); }
    void store_release(std::uint64_t value) { step(), word.store_release(value); }
    std::uint64_t exchange(std::uint64_t value) { return step(), word.exchange(value); }
    bool compare_exchange(std::uint64_t expected, std::uint64_t value) {
      return step(), word.compare_exchange(expected, value);
    }
  };
  struct Mutex {
    using Try = RobustMutex::Try;
    RobustMutex mutex;
    void init() { mutex.init(); }
    Try try_lock() { return step(), mutex.try_lock(); }
    void unlock() { step(), mutex.unlock(); }
  };
  struct RwLock {
    PosixRwLock lock;
    void init() { lock.init(); }
    bool try_read() { return step(), lock.try_read(); }
    bool write_within(long nanoseconds) { return step(), lock.write_within(nanoseconds); }
    void unlock() { step(), lock.unlock(); }
  };
};

struct Board {
  Word first, second;
  alignas(shm::kLineBytes) Word inside, died_ns, torn;
};

// A client must see a change as a whole.
template <class L>
void look(L& lock, Board& board) {
  std::uint64_t a = 0, b = 0;
  if (lock.read([&] {
        a = board.first.load_relaxed();
        b = board.second.load_relaxed();
      }) == Status::ok &&
      a != b) {
    add(board.torn);
  }
}

template <class L>
void change(L& writer, Board& board) {
  writer.write_enter();
  board.first.store_relaxed(board.first.load_relaxed() + 1);
  board.second.store_relaxed(board.second.load_relaxed() + 1);
  writer.write_leave();
}

enum class Where { alone, writer_inside, writer_waiting };

// One client dies at its `step`-th access. False: it has fewer accesses.
template <template <class> class Scheme>
bool die_at(std::uint64_t step, Where where, std::uint64_t* delay_ns) {
  LockMemory<Scheme> memory(1);
  Shared<Board> board;
  auto& writer = memory.writer();
  if (where == Where::writer_inside) writer.write_enter();
  const pid_t victim = fork();
  if (victim == 0) {
    auto lock = memory.template client<Mortal>();
    const auto prepare = [&] {
      board->died_ns.store_release(sys::now_ns());
      Mortal::steps_left = step;
    };
    if (where != Where::writer_waiting) prepare();
    if (lock.read_enter() != Status::ok) _exit(4);
    if (where == Where::writer_waiting) {
      board->inside.store_release(1);
      sys::nap_ns(4 * kMillisecond);
      prepare();
    }
    lock.read_leave();
    _exit(0);
  }
  int status = 0;
  if (where == Where::writer_waiting) {
    wait_until_at_least(board->inside, 1);
  } else if (where == Where::writer_inside) {
    sys::nap_ns(3 * kMillisecond);
    writer.write_leave();
    sys::nap_ns(kMillisecond);
    board->died_ns.store_release(sys::now_ns());
  } else {
    status = Crew::status_of(victim);
    board->died_ns.store_release(sys::now_ns());
  }
  writer.write_enter();
  const std::uint64_t entered = sys::now_ns();
  if (where != Where::alone) status = Crew::status_of(victim);
  const std::uint64_t died = board->died_ns.load_acquire();
  *delay_ns = entered > died ? entered - died : 0;  // an optimistic reader keeps nobody waiting
  writer.write_leave();
  change(writer, *board);
  // A new process takes the only entry. If the entry is free, it takes it at once, otherwise when
  // the writer looks.
  writer.reap();
  EXPECT_EQ(Crew::status_of([&] {
              const pid_t successor = fork();
              if (successor != 0) return successor;
              auto lock = memory.client();
              look(lock, *board);
              lock.leave();
              _exit(board->torn.load_relaxed() == 0 ? 0 : 5);
            }()),
            0)
      << Scheme<Machine>::kName << ": the successor of a client dead at step " << step;
  change(writer, *board);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

template <template <class> class Scheme>
void die_everywhere(Where where, unsigned least_steps) {
  std::uint64_t step = 0;
  for (;; ++step) {
    // The machine is shared, so the scheme fails only if it is late three times.
    std::uint64_t delay_ns = ~0u, shortest_ns = ~0u;
    bool died = true;
    for (int attempt = 0; attempt < 3 && died && shortest_ns > kSoonNs; ++attempt) {
      died = die_at<Scheme>(step, where, &delay_ns);
      shortest_ns = std::min(shortest_ns, delay_ns);
    }
    if (!died) break;
    EXPECT_LE(shortest_ns, kSoonNs) << Scheme<Machine>::kName << ": killed at step " << step << " of case "
                                    << static_cast<int>(where);
    if (where == Where::writer_inside && step >= 40) break;  // the client waits as long as it likes
  }
  EXPECT_GE(step, least_steps) << Scheme<Machine>::kName;
}

TEST(KvDeath, AtEachStepOfASection) {
  any_scheme([](auto tag) {
    die_everywhere<decltype(tag)::template Of>(Where::alone, 3);
    return false;
  });
}

TEST(KvDeath, AtEachStepOfWaitingForTheWriter) {
  any_scheme([](auto tag) {
    die_everywhere<decltype(tag)::template Of>(Where::writer_inside, 3);
    return false;
  });
}

TEST(KvDeath, AtEachStepOfReleaseWhileTheWriterWaits) {
  any_scheme([](auto tag) {
    die_everywhere<decltype(tag)::template Of>(Where::writer_waiting, 1);
    return false;
  });
}

// ---- at random, under load ----

constexpr unsigned kClients = 6;

struct Load : Board {
  alignas(shm::kLineBytes) Word stop, deaths, sections;
};

template <template <class> class Scheme>
void hammer(LockMemory<Scheme>& memory, Load& load, std::uint64_t seed) {
  Random random(seed);
  auto lock = memory.client();
  for (;;) {
    look(lock, load);
    if (random() % 64 == 0) add(load.sections);
    if (random() % 4096 == 0) {  // some clients leave in good order
      lock.leave();
      lock = memory.client();
    }
  }
}

// Kills clients and replaces them, one at a time.
template <template <class> class Scheme>
void reign_of_terror(LockMemory<Scheme>& memory, Load& load, unsigned kills) {
  Random random(kills);
  pid_t victims[kClients];
  const auto raise = [&](unsigned i) {
    victims[i] = fork();
    if (victims[i] == 0) hammer<Scheme>(memory, load, random() + i);
  };
  for (unsigned i = 0; i < kClients; ++i) raise(i);
  for (unsigned k = 0; k < kills; ++k) {
    sys::nap_ns(random() % (2 * kMillisecond));
    const unsigned i = random() % kClients;
    kill(victims[i], SIGKILL);
    if (!WIFSIGNALED(Crew::status_of(victims[i]))) _exit(6);  // it ended by itself: no entry
    add(load.deaths);
    random();
    raise(i);
  }
  for (const pid_t victim : victims) {
    kill(victim, SIGKILL);
    (void)Crew::status_of(victim);
  }
  load.stop.store_release(1);
}

template <template <class> class Scheme>
void survive(unsigned kills) {
  LockMemory<Scheme> memory(kClients);
  Shared<Load> load;
  Crew crew;
  crew.add([&] { reign_of_terror<Scheme>(memory, *load, kills); });
  std::uint64_t writes = 0, longest_ns = 0;
  while (load->stop.load_acquire() == 0) {
    const std::uint64_t begin = sys::now_ns();
    change(memory.writer(), *load);
    longest_ns = std::max(longest_ns, sys::now_ns() - begin);
    ++writes;
    sys::nap_ns(50'000);
    if (load->deaths.load_relaxed() == kills / 2 && writes % 8 == 0) memory.writer().reap();
  }
  EXPECT_TRUE(crew.wait()) << Scheme<Machine>::kName;
  EXPECT_EQ(load->deaths.load_relaxed(), kills);
  EXPECT_EQ(load->torn.load_relaxed(), 0u) << Scheme<Machine>::kName;
  EXPECT_EQ(load->first.load_relaxed(), writes);
  EXPECT_GT(load->sections.load_relaxed(), kills);
  // Many processes share few processors here, so the longest change has also waited for its turn.
  EXPECT_LT(longest_ns, 1'000 * kMillisecond) << Scheme<Machine>::kName;
  testing::Test::RecordProperty(std::string(Scheme<Machine>::kName) + "_longest_us",
                                static_cast<int>(longest_ns / 1000));
  if (std::getenv("STRETTO_TEST_LONG")) {
    std::printf("%s: %u kills, %llu writes, longest %.1f ms\n", Scheme<Machine>::kName, kills,
                static_cast<unsigned long long>(writes), static_cast<double>(longest_ns) / 1e6);
  }
}

TEST(KvDeath, AtRandomUnderLoad) {
  any_scheme([](auto tag) {
    survive<decltype(tag)::template Of>(std::getenv("STRETTO_TEST_LONG") ? 1000 : 60);
    return false;
  });
}

// ---- the death of a client whose entry another client waits for ----

// The writer has looked for dead clients before there was one.
TEST(KvDeath, AfterTheWriterHasLookedForTheDead) {
  LockMemory<NMcs> memory(1);
  Shared<Board> board;
  const pid_t victim = fork();
  if (victim == 0) {
    auto lock = memory.client();
    board->inside.store_release(1);
    for (;;) pause();
  }
  wait_until_at_least(board->inside, 1);
  Crew crew;
  crew.add([&] { (void)memory.client(20 * kSoonNs); });
  const auto write_for = [&](std::uint64_t ns) {
    for (const std::uint64_t end = sys::now_ns() + ns; sys::now_ns() < end; sys::nap_ns(kMillisecond)) {
      memory.writer().write_enter();
      memory.writer().write_leave();
    }
  };
  write_for(kSoonNs);
  kill(victim, SIGKILL);
  (void)Crew::status_of(victim);
  write_for(5 * kSoonNs);
  EXPECT_TRUE(crew.wait());
}

// ---- the writer's death ----

template <template <class> class Scheme>
void outlive_the_writer() {
  Memory memory(Lock<Scheme>::bytes(1));
  Shared<Board> board;
  const pid_t agent = fork();
  if (agent == 0) {
    Lock<Scheme> writer;
    writer.create(memory.base(), 1);
    writer.write_enter();
    board->inside.store_release(1);
    for (;;) pause();
  }
  wait_until_at_least(board->inside, 1);
  Crew crew;
  crew.add([&] {
    Lock<Scheme> lock;
    if (lock.attach(memory.base(), memory.bytes()) != Status::ok || lock.join() != Status::ok) _exit(3);
    board->inside.store_release(2);
    for (int i = 0; i < 3; ++i) {  // only the first call waits
      if (lock.read_enter() != Status::peer_gone) _exit(4);
    }
  });
  wait_until_at_least(board->inside, 2);
  sys::nap_ns(2 * kMillisecond);
  kill(agent, SIGKILL);
  (void)Crew::status_of(agent);
  const std::uint64_t begin = sys::now_ns();
  EXPECT_TRUE(crew.wait()) << Scheme<Machine>::kName;
  EXPECT_LT(sys::now_ns() - begin, 10 * kSoonNs);
}

TEST(KvDeath, TheWriterDiesInside) {
  any_scheme([](auto tag) {
    outlive_the_writer<decltype(tag)::template Of>();
    return false;
  });
}

}  // namespace
