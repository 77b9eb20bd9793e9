// SPDX-License-Identifier: BSD-3-Clause
// A whole job as threads of one process. Every rank is a thread with an engine of its own, with its
// own segments.
#pragma once
#include <barrier>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "engine/process.hpp"
#include "engine/settings.hpp"
#include "engine/watchdog.hpp"
#include "topo/groups.hpp"

namespace stretto::test {

// A communicator's members before the communicator exists: an allgather over memory that all
// threads see.
class Group {
 public:
  explicit Group(std::vector<int> ranks)
      : ranks_(std::move(ranks)), arrive_(std::ssize(ranks_)), leave_(std::ssize(ranks_)) {}
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  // The rank in the group of a rank of the job. -1: it is no member.
  [[nodiscard]] int rank_of(int job_rank) const {
    for (int i = 0; i < size(); ++i) {
      if (ranks_[i] == job_rank) return i;
    }
    return -1;
  }
  bool allgather(int rank, const void* mine, void* all, std::size_t bytes) {
    if (rank == 0) words_.resize(bytes * ranks_.size());
    arrive_.arrive_and_wait();
    std::memcpy(words_.data() + rank * bytes, mine, bytes);
    arrive_.arrive_and_wait();
    std::memcpy(all, words_.data(), bytes * ranks_.size());
    leave_.arrive_and_wait();
    return true;
  }

 private:
  std::vector<int> ranks_;
  std::vector<char> words_;
  std::barrier<> arrive_;
  std::barrier<> leave_;
};

// One member of a group, as the engine's bootstrap wants it.
struct TestMember {
  Group* group;
  int rank;
  [[nodiscard]] engine::Bootstrap bootstrap() {
    return {rank, group->size(), this, [](void* context, const void* mine, void* all, std::size_t bytes) {
              auto* member = static_cast<TestMember*>(context);
              return member->group->allgather(member->rank, mine, all, bytes);
            }};
  }
};

inline std::vector<int> everybody(int size) {
  std::vector<int> ranks(size);
  for (int i = 0; i < size; ++i) ranks[i] = i;
  return ranks;
}

using RankMain = std::function<void(int rank, engine::Process& process)>;

// Tiers where they would not be by themselves: in jobs of few ranks, and by caches and sockets that
// do not exist.
struct FabricatedTiers {
  int from_ranks, members;
  std::function<topo::Binding(int rank)> binding;
};
inline const FabricatedTiers* g_tiers = nullptr;

inline topo::Binding bound_to(int l3, int numa, int socket) { return {{l3, numa, socket}}; }
// By rank; by caches of neighbours; dealt to caches; some ranks bound, in groups of three at most;
// in sockets of three neighbours, where the last one may have two.
inline const FabricatedTiers kFabricatedTiers[] = {
    {3, 4, [](int) { return topo::Binding{}; }},
    {3, 8, [](int r) { return bound_to(r / 4, r / 8, r / 16); }},
    {3, 8, [](int r) { return bound_to(r % 6, r % 3, r % 3); }},
    {3, 3, [](int r) { return bound_to(r * 5 % 7 - 1, r * 3 % 4 - 1, -1); }},
    {3, 8, [](int r) { return bound_to(r / 3, r / 3, r / 3); }},
};

// Runs `main` on `size` ranks with an engine each. Returns when all have returned. `progress` says
// what a rank drives while it waits.
inline void run_job(int size, const engine::Settings& settings, const RankMain& main,
                    const std::function<engine::HostProgress(int rank)>& progress = {}) {
  std::vector<engine::Process*> processes(size);
  std::vector<topo::Binding> bindings(size);
  for (int r = 0; r < size; ++r) {
    engine::Settings own = settings;
    if (g_tiers != nullptr) {
      bindings[r] = g_tiers->binding(r);
      own.tiers_from_ranks = g_tiers->from_ranks;
      own.tier_members = g_tiers->members;
      own.binding = &bindings[r];
    }
    processes[r] = engine::process_create(own, progress ? progress(r) : engine::HostProgress{});
  }
  {
    std::vector<std::jthread> ranks;
    for (int r = 0; r < size; ++r) {
      ranks.emplace_back([&, r] { main(r, *processes[r]); });
    }
  }
  // Under TSan, peers read a segment where its owner has mapped it. So all watchdogs end first.
  for (auto* process : processes) engine::Watchdog::stop(std::exchange(process->watchdog, nullptr));
  for (auto* process : processes) engine::process_destroy(process);
}

// Makes a communicator of `group`'s members. Each of them calls it.
inline engine::Comm* make_comm(engine::Process& process, Group& group, int rank, engine::Decline* why = nullptr,
                               std::uint32_t wanted = kNativeCollectives, bool serves_node = false) {
  TestMember member{&group, rank};
  engine::Decline decline;
  engine::Comm* comm = engine::comm_create(process, member.bootstrap(), wanted, decline, serves_node);
  if (why) *why = decline;
  return comm;
}

// Plain bytes.
inline constexpr Run kByteRun{0, 1};
inline constexpr Layout kBytes{1, 1, &kByteRun, 1, true};

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kEffort = 1;
#else
inline constexpr int kEffort = 8;
#endif

}  // namespace stretto::test
