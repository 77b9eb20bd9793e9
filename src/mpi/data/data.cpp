// SPDX-License-Identifier: BSD-3-Clause
// Buffers of unusual kinds: derived types, empty buffers, device memory and wrong arguments.
#include "mpi/data/data.hpp"

#include "mpi/host/trial.hpp"

namespace stretto::mpi {

namespace {
constinit bool g_host_refuses_aliases = false;
}

void aliases_ask_host() {
  const Inside inside;
  const Constants& c = host().constants;
  if (trial_comm() == c.comm_null) return;
  int number = 0;
  g_host_refuses_aliases = host().Allreduce(&number, &number, 1, c.int_, c.min, trial_comm()) != MPI_SUCCESS;
}

void refuse_alias(Arguments& arguments, const State& state) {
  if (g_host_refuses_aliases && state.check >= 1)
    arguments.wrong(MPI_ERR_BUFFER, "the buffers to send and to receive are the same memory");
}

bool starts_in_page_zero(const Layout& layout, std::int64_t displacement) {
  constexpr std::int64_t kPageBytes = 4096;
  if (layout.run_count == 0) return false;
  const std::int64_t first = displacement + layout.runs[0].offset;
  return first >= 0 && first < kPageBytes;
}

// Returns whether there are data to read or write.
bool Data::prepare(Arguments& arguments, const void* buffer, bool empty, bool checkable, MPI_Datatype type) {
  layout_ = layout_acquire(type);
  if (layout_ == nullptr) {
    // Some programs pass MPI_DATATYPE_NULL with no data. Some hosts accept it, and so does Stretto.
    if (!empty || type != host().constants.datatype_null)
      arguments.wrong(MPI_ERR_TYPE, "invalid datatype, or one that is not committed");
    return false;
  }
  if (!arguments.good() || empty || layout_->size == 0) return false;
  if (buffer == MPI_IN_PLACE) arguments.wrong(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed for this buffer");
  if (buffer == nullptr && checkable && starts_in_page_zero(*layout_, 0))
    arguments.wrong(MPI_ERR_BUFFER, "null buffer");
  if (keeps_ && arguments.good()) {
    held_ = (Handle)type;  // NOLINT: an int or a pointer
    held_add(held_);
    holds_ = true;
  }
  return arguments.good();
}

Region Data::any_region(Arguments& arguments, const State& state, const void* buffer, std::int64_t count,
                        MPI_Datatype type, Staged::Direction direction) {
  if (count < 0) [[unlikely]]
    arguments.wrong(MPI_ERR_COUNT, "negative count");
  const bool some = prepare(arguments, buffer, count == 0, true, type);
  auto* const base = static_cast<char*>(const_cast<void*>(buffer));
  Region region = some ? Region{base, static_cast<std::uint64_t>(count), layout_} : Region{};
  const bool staged = some && must_stage(*layout_, buffer);
  if (watched_ != nullptr) [[unlikely]]
    check_begin(*watched_, {base, region.layout, region.count}, some ? 1 : 0, type, staged);
  if (staged) [[unlikely]] {
    const int code = stage(start_staging(), region, type, state, direction);
    if (code != MPI_SUCCESS) arguments.failed(code, "the data could not be packed");
  }
  return region;
}

Blocks Data::any_blocks(Arguments& arguments, const State& state, const void* buffer, const Extents& e, bool empty,
                        MPI_Datatype type, Staged::Direction direction) {
  // With a null base, 64-bit displacements may be absolute addresses.
  const bool some = prepare(arguments, buffer, empty, !e.wide, type);
  auto* const base = static_cast<char*>(const_cast<void*>(buffer));
  Blocks blocks = some ? Blocks{base, layout_, e.count, e.counts, e.displs, e.wide} : Blocks{nullptr, &kNoBytes};
  const bool staged = some && must_stage(*layout_, buffer);
  if (watched_ != nullptr) [[unlikely]]
    check_begin(*watched_, blocks, some ? e.ranks : 0, type, staged);
  if (staged) [[unlikely]] {
    const int code = stage(start_staging(), blocks, e.ranks, type, state, direction);
    if (code != MPI_SUCCESS) arguments.failed(code, "the data could not be packed");
  }
  return blocks;
}

}  // namespace stretto::mpi
