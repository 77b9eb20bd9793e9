// SPDX-License-Identifier: BSD-3-Clause
#include "engine/agreement.hpp"

namespace stretto::engine {
namespace {

constexpr const char* kReasons[] = {
    "no reason",
    "members run different versions of Stretto",
    "no memory for the shared segment",
    "the lanes (of STRETTO_SLOTS x STRETTO_SLOT_BYTES each) do not fit into STRETTO_SEGMENT_BYTES",
    "the system refuses memory files (memfd_create)",
    kOnSeveralNodes,
    "a member's memory could not be attached, neither through /proc nor by descriptor passing",
    "a member's memory could not be attached through /proc, and sockets for descriptor passing are refused",
    "a member's limit of address space (RLIMIT_AS, ulimit -v) leaves no room for the members' shared memory",
};
static_assert(sizeof kReasons / sizeof kReasons[0] == static_cast<std::size_t>(Reason::count_));

// Parts of the words that members exchange. kNoSingleCopy: this member cannot read every peer's
// memory, or must not. kRefused: the system refused it, with the error at kErrorShift.
constexpr std::uint32_t kNoSingleCopy = std::uint32_t{1} << 31;
constexpr std::uint32_t kRefused = std::uint32_t{1} << 30;
constexpr unsigned kErrorShift = 16;
constexpr std::uint32_t kErrorMask = 0xfff;
constexpr std::uint32_t kReasonMask = 0xffff;

}  // namespace

const char* words_of(Reason reason) { return kReasons[static_cast<std::size_t>(reason)]; }

bool Agreement::decline(int rank, Reason reason) {
  verdict_ = {rank, words_of(reason)};
  return false;
}

// Exchanges one word of every rank. Returns false if some rank gives a reason to stop. The reason
// of the lowest such rank is then the verdict.
bool Agreement::everybody(Reason mine) {
  const auto word = static_cast<std::uint32_t>(mine) | (reads_all_ ? 0 : kNoSingleCopy) | (refused_ ? kRefused : 0) |
                    (static_cast<std::uint32_t>(error_) & kErrorMask) << kErrorShift;
  if (!bootstrap_.allgather(bootstrap_.context, &word, words_, sizeof word)) return decline(bootstrap_.rank, mine);
  all_read_all_ = true;
  refusal_ = {};
  for (int r = 0; r < bootstrap_.size; ++r) {
    if ((words_[r] & kNoSingleCopy) != 0) all_read_all_ = false;
    if ((words_[r] & kRefused) != 0 && refusal_.rank < 0)
      refusal_ = {r, static_cast<int>(words_[r] >> kErrorShift & kErrorMask)};
    words_[r] &= kReasonMask;
  }
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (words_[r] != 0) return decline(r, static_cast<Reason>(words_[r]));
  }
  return true;
}

// All members decline together, so no peer has looked at our lines.
void Agreement::abandon() {
  const std::uint64_t place_offset = comm_ ? comm_->place_offset : 0;
  if (comm_) destroy(comm_);
  comm_ = nullptr;
  const Locked locked(process_.lock);
  if (process_.agreements == 1) process_.attachments.drop_unused();  // other agreements may need them
  if (mine_.block_offset == 0) return;
  release_lines(process_, mine_.block_offset, place_offset, bootstrap_.size);
  release_tiers(process_, mine_.blocks, bootstrap_.size);
}

Comm* Agreement::reach(std::uint32_t wanted) {
  if ((!bootstrap_.several_nodes || is_on_one_node()) && introduce(wanted) && attach()) {
    settle();
    connect();
    make_tiers();
  } else {
    abandon();
  }
  return comm_;
}

Comm* comm_create(Process& process, const Bootstrap& bootstrap, std::uint32_t wanted, Decline& decline,
                  bool serves_node) {
  Agreement agreement(process, bootstrap, serves_node);
  Comm* comm = agreement.reach(wanted);
  if (!comm) decline = agreement.verdict();
  return comm;
}

}  // namespace stretto::engine
