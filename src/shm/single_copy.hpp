// SPDX-License-Identifier: BSD-3-Clause
// Messages that readers copy straight out of the writer's memory: from which length on a team's
// messages go so, which readers were refused, and who reads whose memory now.
#pragma once
#include <cstdint>

#include "base/collective.hpp"
#include "base/tuning.hpp"
#include "shm/members.hpp"

namespace stretto::shm {

// Why messages do not go by single copy, or not any more.
struct MemoryRefusal {
  int rank = -1;           // which may not read its peers' memory; -1: no rank has been refused
  int error = 0;           // errno value; 0: the members' process ids mean nothing to each other
  std::uint64_t call = 0;  // in which it was refused; 0: from the start
};

class SingleCopy {
 public:
  explicit SingleCopy(Members& members) : members_(members) { stop(); }

  // Messages of so many bytes and more go by single copy in this collective. Set when all members
  // agree that they can read each other's memory. Reductions do not use it: they combine
  // contributions where they lie.
  [[nodiscard]] std::uint64_t from_bytes(Collective c) const { return from_bytes_[static_cast<int>(c)]; }
  void set_from(const Tuning::SingleCopyFrom& bytes);
  void stop();

  [[nodiscard]] const MemoryRefusal& refusal() const { return refusal_; }
  void note_refusal(const MemoryRefusal& refusal) {
    if (refusal_.rank < 0) refusal_ = refusal;
  }
  // Tells the writer that this rank could not read what it published in the call of this tag. The
  // ack of the record follows: a writer that sees the ack sees both.
  void refuse(Member& writer, int error, std::uint64_t tag);
  // Whether that member says so.
  [[nodiscard]] bool has_refused(int reader, std::uint64_t tag) const {
    const Ack* const line = members_.line_of(reader);
    return line != nullptr && line->refused.load_acquire() == tag && members_.peer(reader).is_here();  // refuse()
  }
  // What that member said of it.
  [[nodiscard]] int error_of(int reader) const {
    return static_cast<int>(members_.line_of(reader)->error.load_acquire());
  }

  // Readers of one process's private memory hold each other up: each pins pages under that
  // process's lock. So a rank counts them before it begins. Two may look at once, and one may end
  // while another counts: a hint, not a lock.
  [[nodiscard]] unsigned readers_of(int member) const;
  void start_reading(int member) {
    members_.progress_line().reading.store_relaxed(static_cast<std::uint64_t>(member) + 1);
  }
  void stop_reading() { members_.progress_line().reading.store_relaxed(0); }

 private:
  Members& members_;
  std::uint64_t from_bytes_[kCollectives];
  MemoryRefusal refusal_;
};

}  // namespace stretto::shm
