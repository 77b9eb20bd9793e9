// SPDX-License-Identifier: BSD-3-Clause
// What collectives of a replay take where it is not what they took in the recording.
//
// recorded: what they took, times a factor: the time of the fastest schedule here, by its time on
//           the machine that was recorded.
// mpi:      by the algorithms that an MPI takes (job_host.hpp).
// rules:    by the schedules that Stretto takes, by rules of a file first. What Stretto leaves to
//           the MPI, or does over shared memory, takes what it took.
//
// Calls that may return early always go by schedules of their own. Calls with requests go by those
// of an MPI where others take what they took: the recording has only what it took to begin.
//
// A schedule runs in the timer, and its ranks begin when they come. So a late rank holds up those
// that wait for it, and no others. Where all wait for all, ranks that come as in an earlier call
// end as they did there: within 3% of the call's time.
//
// All calls together have a number of steps in the timer. When it is used up, calls last as if all
// ranks had come together. Parts have their own lengths, as long as the replay has not seen too
// many such calls, and then the mean length.
#pragma once
#include <array>
#include <compare>
#include <map>
#include <memory>
#include <vector>

#include "record/reader.hpp"
#include "request.hpp"
#include "select/selector.hpp"

namespace stretto::modelling {

// How a collective is called. `early`: blocking, but it may return early.
enum class Calling : std::uint8_t { blocking, early, with_requests };

// A collective that all members call.
struct CollectiveCall {
  std::uint32_t place = 0;  // where its members are: CollectiveTimes::place
  Collective collective = Collective::count_;
  std::uint64_t bytes = 0;  // of a vector, or of one part
  int root = 0;
  bool commutes = true;
  Calling calling = Calling::blocking;
  auto operator<=>(const CollectiveCall&) const = default;
};

// How long the parts of a call are, where they have lengths of their own: of each member's part.
// Where each sends to each, of [sender * ranks + receiver]. Empty: all are alike.
using PartLengths = std::vector<std::uint64_t>;

// Of communicators of so many ranks, on so many nodes: whether a blocking call goes as with
// STRETTO_OVERLAP=on (docs/overlap.md), and whether such a call returns before a member's data are
// there. That is by what the member receives; one that only sends counts that. `is_root`: of a call
// with a root.
bool may_return_early(const CollectiveCall& call, int ranks, int nodes);
bool returns_early_here(const CollectiveCall& call, int ranks, bool is_root);

// A machine, and where the job's ranks are there.
struct JobMachine {
  Request request;
  topo::Placement places;
};

class CollectiveTimes {
 public:
  enum class By : std::uint8_t { recorded, mpi, rules };
  struct Options {
    By by = By::recorded;
    select::Rules rules;
    std::uint64_t most_steps = 100'000'000;
  };
  // Collectives among more than one rank.
  enum class How : std::uint8_t { timed, repeated, together, in_memory, as_recorded };
  static constexpr std::array kHowNames{"timed", "repeated", "together", "in_memory", "as_recorded"};
  using Counts = std::array<std::uint64_t, kHowNames.size()>;

  // `was`: the machine that was recorded; without costs it is the same one.
  CollectiveTimes(JobMachine now, JobMachine was, Options options);
  ~CollectiveTimes();

  // Whether a call may go by schedule.
  [[nodiscard]] bool may_run(const CollectiveCall& call) const {
    return options_.by != By::recorded || call.calling != Calling::blocking;
  }
  // A number for calls of these members, which are ranks in MPI_COMM_WORLD. Without members, calls
  // take what they took.
  std::uint32_t place(const std::vector<int>& members);

  // By what the recorded time is multiplied.
  double factor(const CollectiveCall& call);
  // Whether a schedule runs. Never for parts of which not all ranks know the length.
  bool by_schedule(const CollectiveCall& call);
  // Of such a call: how long a member takes that waits for nobody, in seconds. Negative: it waits.
  double alone(const CollectiveCall& call, std::size_t member);
  // When the members end that come at these times, in seconds. False: the call takes what it took.
  bool run(const CollectiveCall& call, const PartLengths& lengths, const std::vector<double>& starts,
           std::vector<double>* ends);

  // About how many bytes go to and from each member, if they are on several nodes.
  std::uint64_t bytes_between_nodes(const CollectiveCall& call);

  // As may_return_early: by schedules of its own, whatever serves others. Then as
  // returns_early_here.
  bool is_early(const CollectiveCall& call);
  bool returns_early(const CollectiveCall& call, bool is_root);
  // How long after the last of those who send to it such a call returns, and how long it copies
  // before, in seconds.
  double first_word(const CollectiveCall& call);
  double copy(const CollectiveCall& call, bool is_root);

  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Place;
  struct Plan;
  std::unique_ptr<Place> make_place(const std::vector<int>& members) const;
  const Place& place_of(const CollectiveCall& call) const { return *places_[call.place]; }
  void count(How how) { ++counts_[static_cast<std::size_t>(how)]; }
  Plan& plan_of(const CollectiveCall& call, const PartLengths& lengths = {});
  Plan& scheduled(const CollectiveCall& call, const PartLengths& lengths = {});
  void schedule(const CollectiveCall& call, Plan& plan);
  void time_together(Plan& plan);

  JobMachine now_, was_;
  Options options_;
  std::map<std::vector<int>, std::uint32_t> numbers_;
  std::vector<std::unique_ptr<Place>> places_;
  std::map<std::pair<CollectiveCall, PartLengths>, std::unique_ptr<Plan>> plans_;
  std::uint64_t steps_ = 0;  // that the timer may still take
  Counts counts_{};
  sched::Timer timer_;
  sched::Builder builder_;
};

}  // namespace stretto::modelling
