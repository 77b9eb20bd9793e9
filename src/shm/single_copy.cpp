// SPDX-License-Identifier: BSD-3-Clause
#include "shm/single_copy.hpp"

namespace stretto::shm {

void SingleCopy::set_from(const Tuning::SingleCopyFrom& bytes) {
  const auto set = [this](Collective c, std::uint64_t from) { from_bytes_[static_cast<int>(c)] = from; };
  set(Collective::bcast, bytes.bcast);
  for (const Collective c : {Collective::gather, Collective::gatherv}) set(c, bytes.gather);
  for (const Collective c : {Collective::scatter, Collective::scatterv}) set(c, bytes.scatter);
  for (const Collective c : {Collective::allgather, Collective::allgatherv}) set(c, bytes.allgather);
  for (auto c = static_cast<int>(Collective::alltoall); c <= static_cast<int>(Collective::neighbor_alltoallw); ++c)
    set(static_cast<Collective>(c), bytes.alltoall);
}

void SingleCopy::stop() {
  for (std::uint64_t& from : from_bytes_) from = Tuning::kNever;
}

void SingleCopy::refuse(Member& writer, int error, std::uint64_t tag) {
  note_refusal({members_.rank(), error, tag >> 8});
  Ack& line = *writer.own;  // this rank has read a record
  line.error.store_release(static_cast<std::uint64_t>(error));
  line.refused.store_release(tag);
}

unsigned SingleCopy::readers_of(int member) const {
  unsigned readers = 0;
  for (int r = 0; r < members_.size(); ++r) {
    readers += r != members_.rank() &&
               members_.peer(r).progress_line().reading.load_relaxed() == static_cast<std::uint64_t>(member) + 1;
  }
  return readers;
}

}  // namespace stretto::shm
