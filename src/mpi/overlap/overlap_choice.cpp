// SPDX-License-Identifier: BSD-3-Clause
// Which calls go this way. All members decide the same, from what all of them know or have told
// each other.
#include <algorithm>

#include "base/log.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/world.hpp"
#include "mpi/overlap/overlap.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

constexpr std::uint32_t bits(std::initializer_list<Collective> all) {
  std::uint32_t made = 0;
  for (const Collective as : all) made |= std::uint32_t{1} << static_cast<int>(as);
  return made;
}
constexpr std::uint32_t kServed =
    bits({Collective::bcast, Collective::gather, Collective::gatherv, Collective::scatter, Collective::scatterv,
          Collective::allgather, Collective::allgatherv, Collective::alltoall, Collective::alltoallv,
          Collective::alltoallw, Collective::reduce, Collective::allreduce, Collective::reduce_scatter,
          Collective::reduce_scatter_block, Collective::scan, Collective::exscan});
// In these no rank knows how long the call is for the others.
constexpr std::uint32_t kOfUnknownLength =
    bits({Collective::gatherv, Collective::scatterv, Collective::alltoallv, Collective::alltoallw});

}  // namespace

std::uint32_t Overlap::wanted() const { return stage_ == Stage::off ? 0 : kServed & job()->wanted; }

// All members wait for one another when they agree. So it is put off until a collective makes them
// wait anyway, unless no such collective comes for long.
bool Overlap::takes(Collective as, std::uint64_t bytes) {
  constexpr std::uint32_t kCallsOfAnyKind = 2;
  if (stage_ == Stage::declined || (wanted() & bits({as})) == 0) return false;
  const bool knows_length = (kOfUnknownLength & bits({as})) == 0;
  if (knows_length ? bytes < job()->overlap_bytes : goes_as_short(as, bytes)) return false;
  Trial* const trial = trial_of(as, knows_length ? bytes : 0);
  if (trial != nullptr && !goes_with_overlap(*trial, as, bytes)) return false;
  if (stage_ == Stage::unasked && (waits_for_all(as) || ++asked_ >= kCallsOfAnyKind)) {
    const std::uint64_t begin_ns = sys::now_ns();
    stage_ = open() ? Stage::open : Stage::declined;
    if (trial != nullptr) trial->leaves_out(sys::now_ns() - begin_ns);
  }
  return stage_ == Stage::open;
}

bool Overlap::goes_as_short(Collective as, std::uint64_t bytes) {
  if (stage_ != Stage::open) return false;
  ShortCalls& calls = short_calls_[static_cast<int>(as)];
  if (!calls.begins(bytes)) return calls.are_short();
  const Array<std::uint64_t> all = of_all(members(), calls.longest());
  const std::uint64_t longest = *std::max_element(all.begin(), all.end());
  const bool were_short = calls.are_short();
  calls.agree(longest < job()->overlap_bytes);
  if (calls.are_short() != were_short && state_->rank == 0 && options().explain())
    log_explain("overlap: %s of at most %llu bytes on any rank: the next ones go %s",
                kCollectiveNames[static_cast<int>(as)], static_cast<unsigned long long>(longest),
                were_short ? "with overlap" : "without");
  return calls.are_short();
}

void Overlap::leaves(Collective as, const char* why) {
  if ((wanted() & bits({as}) & ~left_out_) == 0) return;
  left_out_ |= bits({as});
  if (state_->rank == 0 && options().explain())
    log_explain("overlap: %s goes as without the option: %s", kCollectiveNames[static_cast<int>(as)], why);
}

// Null: a number of bytes says that all such calls go with overlap.
Trial* Overlap::trial_of(Collective as, std::uint64_t bytes) {
  if (!job()->overlap_measures) return nullptr;
  return &trials_.find(as, bytes, job()->overlap_tries ? kTrialOfAuto : kTrialOfOn);
}

bool Overlap::goes_with_overlap(Trial& trial, Collective as, std::uint64_t bytes) {
  const std::uint64_t waited_ns = trial.measures() ? overlap_waited_ns() : 0;
  if (trial.ends_way()) {
    const std::uint64_t begin_ns = sys::now_ns();
    overlap_complete_all();
    trial.has_waited(sys::now_ns() - begin_ns);
  }
  const Trial::Next next = trial.begins(sys::now_ns(), waited_ns);
  if (next != Trial::Next::compare) return next == Trial::Next::with;
  TrialTimes longest;
  for (const TrialTimes& each : of_all(members(), trial.times())) {
    longest.without_ns = std::max(longest.without_ns, each.without_ns);
    longest.with_ns = std::max(longest.with_ns, each.with_ns);
  }
  const bool keeps = trial.decide(longest);
  if (state_->rank == 0 && options().explain() && trial.is_decided()) {
    log_explain("overlap: %s of %llu bytes: %.3f ms from call to call, %.3f without overlap: %s",
                kCollectiveNames[static_cast<int>(as)], static_cast<unsigned long long>(bytes),
                static_cast<double>(longest.with_ns) * 1e-6, static_cast<double>(longest.without_ns) * 1e-6,
                keeps ? "kept" : "off");
  }
  return keeps;
}

}  // namespace stretto::mpi
