// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/schedules.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/scheduler.hpp"
#include "mpi/job.hpp"
#include "mpi/reductions.hpp"
#include "mpi/wire.hpp"
#include "topo/seat.hpp"

namespace stretto::mpi {

struct Schedules {
  Wire wire;
  engine::Scheduler scheduler;
  int number = -1;  // on the wire
  int* job_ranks = nullptr;
};

namespace {

constexpr std::uint32_t bit(Collective collective) { return std::uint32_t{1} << static_cast<int>(collective); }
constexpr std::uint32_t kCollectivesHere =
    bit(Collective::barrier) | bit(Collective::bcast) | bit(Collective::reduce) | bit(Collective::allreduce) |
    bit(Collective::scan) | bit(Collective::exscan);

// ---- buffers --------------------------------------------------------------------------------------------------------

// A buffer of the program's as plain bytes: itself, or a packed copy of what is scattered.
class Packed {
 public:
  Packed() = default;
  ~Packed() { std::free(copy_); }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  // Its bytes, as they are now. Null if there are none, or if there is no memory: then failed().
  char* bytes(const Region& region) {
    if (char* const flat = region.flat()) return flat;
    const std::uint64_t length = region.bytes();
    if (length == 0) return nullptr;
    copy_ = static_cast<char*>(std::malloc(length));
    failed_ = copy_ == nullptr;
    if (failed_) return nullptr;
    region_ = region;
    Stream(region).pack(copy_, length);
    return copy_;
  }
  [[nodiscard]] bool failed() const { return failed_; }
  // Brings the copy back.
  void unpack() const {
    if (copy_ != nullptr) Stream(region_).unpack(copy_, region_.bytes());
  }

 private:
  char* copy_ = nullptr;
  bool failed_ = false;
  Region region_{};
};

// ---- operations -----------------------------------------------------------------------------------------------------

// By kernels, on dense elements.
void by_kernel(void* context, char* out, const char* left, const char* right, std::uint64_t units) {
  const auto* const combining = static_cast<const Combining*>(context);
  combining->three(out, left, right, static_cast<std::size_t>(units));
}

// By a function that wants elements as their type lays them out. Schedules have them packed.
class Laid {
 public:
  bool start(Arguments& arguments, const Function& function, const Layout* layout, std::uint64_t count) {
    function_ = function;
    layout_ = layout;
    const std::uint64_t at_once = engine::operands_at_once(layout->size);
    at_once_ = count < at_once ? count : at_once;
    left_ = left_memory_.make(arguments, function.type, layout, at_once_);
    right_ = right_memory_.make(arguments, function.type, layout, at_once_);
    return arguments.good();
  }

  static void apply(void* context, char* out, const char* left, const char* right, std::uint64_t units) {
    static_cast<Laid*>(context)->combine(out, left, right, units);
  }

 private:
  void combine(char* out, const char* left, const char* right, std::uint64_t units) {
    for (std::uint64_t done = 0; done < units; done += at_once_) {
      const std::uint64_t count = units - done < at_once_ ? units - done : at_once_;
      const std::uint64_t at = done * layout_->size, bytes = count * layout_->size;
      left_.count = right_.count = count;
      Stream(left_).unpack(left + at, bytes);
      Stream(right_).unpack(right + at, bytes);
      fold(&function_, left_.base, right_.base, count);
      Stream(right_).pack(out + at, bytes);
    }
  }

  Function function_{};
  const Layout* layout_ = nullptr;
  std::uint64_t at_once_ = 1;
  Held left_memory_, right_memory_;
  Region left_, right_;
};

bool is_commutative(const Combining& combining, MPI_Op op) {
  if (combining.by != By::user) return true;  // MPI's own operations all are
  int commutative = 0;
  host().Op_commutative(op, &commutative);
  return commutative != 0;
}

// ---- running --------------------------------------------------------------------------------------------------------

coll::Problem problem_of(const Call& call) {
  coll::Problem problem;
  problem.collective = call.collective();
  problem.size = call.state->size;
  problem.rank = call.state->rank;
  return problem;
}

bool left_alone(Call& call) {
  check_cancel(call);
  return false;
}

// Runs the schedule between the packed buffers and the program's.
bool run(Call& call, engine::Scheduled& scheduled, const Region& send, const Region& receive, Data& source, Data& target) {
  Packed from, to;
  scheduled.send = from.bytes(send);
  scheduled.receive = to.bytes(receive);
  const auto finish = [&] {
    to.unpack();
    const int first = source.finish();
    const int second = target.finish();
    return first != MPI_SUCCESS ? first : second;
  };
  return run_between(call, Arguments{}, finish, [&](bool) {
    engine::Outcome outcome;
    outcome.path = Path::schedule;
    outcome.status = Status::no_memory;
    if (from.failed() || to.failed()) return outcome;
    return call.state->schedules->scheduler.run(scheduled.problem.collective, scheduled);
  });
}

}  // namespace

// ---- a communicator's -----------------------------------------------------------------------------------------------

Schedules* schedules_create(State& state, const int* job_ranks, const engine::Process& process) {
  const std::uint32_t wanted = job()->scheduled & kCollectivesHere;
  if (wanted == 0) return nullptr;
  void* const memory = std::malloc(sizeof(Schedules));
  const std::size_t bytes = static_cast<std::size_t>(state.size) * sizeof(int);
  auto* const ranks = static_cast<int*>(std::malloc(bytes));
  if (memory == nullptr || ranks == nullptr) std::abort();  // a few kilobytes, and nothing can be agreed without them
  auto* const schedules = new (memory) Schedules;
  schedules->job_ranks = static_cast<int*>(std::memcpy(ranks, job_ranks, bytes));
  topo::Placement placement;
  const bool able = topo::place_members(&placement, job()->placement, ranks, state.size) &&
                    schedules->scheduler.start(placement, job()->levels, schedules->wire.transport(),
                                               engine::schedule_policy(process));
  schedules->number = wire_take_number(state.handle, able);
  if (schedules->number < 0) {
    schedules_free(schedules);
    return nullptr;
  }
  schedules->wire.start(ranks, schedules->number);
  state.scheduled = wanted;
  state.served &= ~wanted;
  return schedules;
}

void schedules_free(Schedules* schedules) {
  if (schedules == nullptr) return;
  if (schedules->number >= 0) wire_release_number(schedules->number);
  std::free(schedules->job_ranks);
  schedules->~Schedules();
  std::free(schedules);
}

// ---- what the collectives call --------------------------------------------------------------------------------------

bool scheduled_barrier(Call& call) {
  Data none, nothing;
  engine::Scheduled scheduled{problem_of(call)};
  return run(call, scheduled, {}, {}, none, nothing);
}

bool scheduled_bcast(Call& call, void* buffer, std::int64_t count, Handle type, int root) {
  const State& state = *call.state;
  Arguments arguments;
  Data data, nothing;
  const int from = valid_root(arguments, root, state);
  const bool is_root = state.rank == from;
  if (!is_root) data.watch(call);
  const Region region = data.region(arguments, state, buffer, count, type, is_root ? Staged::read : Staged::write);
  if (!arguments.good()) return left_alone(call);
  engine::Scheduled scheduled{problem_of(call)};
  scheduled.problem.root = from;
  scheduled.problem.count = region.bytes();
  return run(call, scheduled, {}, region, data, nothing);
}

bool scheduled_reduction(Call& call, const void* send, void* receive, std::int64_t count, Handle handle, Handle op, int root) {
  const State& state = *call.state;
  const auto type = as<MPI_Datatype>(handle);
  Combining combining = combining_of(as<MPI_Op>(op), type);
  if (combining.by == By::nobody || left_to_host(combining.by, type)) return false;
  Arguments arguments;
  const int to = call.collective() == Collective::reduce ? valid_root(arguments, root, state) : 0;
  const bool may_get = call.collective() == Collective::reduce ? state.rank == to : true;
  const bool in_place = may_get && send == MPI_IN_PLACE;
  const bool gets = may_get && (call.collective() != Collective::exscan || state.rank != 0);
  Data source, target;
  Region out, own;
  if (gets) target.watch(call);
  if (gets || in_place) {
    out = target.region(arguments, state, receive, count, handle, Staged::write);
  }
  if (!in_place) own = source.region(arguments, state, send, count, handle, Staged::read);
  const Layout* const layout = arguments.good() ? layout_acquire(type) : nullptr;
  engine::Scheduled scheduled{problem_of(call)};
  Laid laid;
  if (combining.by == By::kernel) {
    scheduled.combination = {&combining, by_kernel};
  } else if (layout != nullptr && layout->size != 0 && count != 0) {
    const Function function{as<MPI_Op>(op), type, combining.by == By::padded ? combining.two : nullptr};
    laid.start(arguments, function, layout, static_cast<std::uint64_t>(count));
    scheduled.combination = {&laid, Laid::apply};
  }
  bool finished = false;
  if (layout == nullptr || !arguments.good()) {
    finished = left_alone(call);
  } else {
    check_reduction(call, combining, (in_place ? out : own).flat(), static_cast<std::uint64_t>(count));
    scheduled.problem.root = to;
    scheduled.problem.count = layout->size != 0 ? static_cast<std::uint64_t>(count) : 0;
    scheduled.problem.in_place = in_place;
    scheduled.problem.commutative = is_commutative(combining, as<MPI_Op>(op));
    scheduled.unit_bytes = layout->size;
    finished = run(call, scheduled, own, out, source, target);
  }
  layout_release(layout);
  return finished;
}

}  // namespace stretto::mpi
