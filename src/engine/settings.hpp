// SPDX-License-Identifier: BSD-3-Clause
// What the option table (base/options) and a machine profile tell the engine. Ranks may differ
// in each of these settings: each concerns the sender alone, because records in shared memory
// say where a payload is.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/options.hpp"
#include "base/tuning.hpp"
#include "topo/groups.hpp"

namespace stretto::engine {

using WaitMode = WaitChoice;  // automatic, spin, yield, nap

struct Settings {
  std::size_t slots = 0;              // STRETTO_SLOTS: payload slots of a lane (s of paper S1); 0: slots_of() decides
  std::size_t slot_bytes = 32 << 10;  // STRETTO_SLOT_BYTES: bytes of a slot (f of paper S1)
  Tuning::Fragments fragments = kTuning.fragments;  // STRETTO_FRAGMENT_BYTES, else by the processor
  // STRETTO_SEGMENT_BYTES: address space of a segment. The system provides pages on demand.
  std::size_t segment_bytes = std::size_t{256} << 20;
  SingleCopyChoice single_copy = SingleCopyChoice::automatic;  // STRETTO_SINGLE_COPY
  StreamingChoice streaming = StreamingChoice::automatic;      // STRETTO_STREAMING
  unsigned check = 1;                                          // STRETTO_CHECK
  unsigned watchdog_seconds = 0;        // STRETTO_WATCHDOG, else half of STRETTO_TIMEOUT; 0: none
  unsigned timeout_seconds = 0;         // STRETTO_TIMEOUT; 0: none
  WaitMode wait = WaitMode::automatic;  // STRETTO_WAIT
  // From so many ranks on a communicator has tiers, of groups of at most `tier_members` ranks. The
  // highest and the lowest of all members' values count.
  int tiers_from_ranks = kTuning.tiers_from_ranks;  // STRETTO_TIERS
  int tier_members = kTuning.tier_members;
  // Where the options say that this process is bound. Null: as the system says.
  const topo::Binding* binding = nullptr;
  unsigned ranks_on_node = 0;  // from the launcher; 0: as many as the largest communicator seen
  // For observers (observe/process_info.hpp): a number that the ranks of MPI_COMM_WORLD agree on,
  // this process's rank among them, and their number.
  std::uint64_t job = 0, job_rank = 0, job_ranks = 0;
  const char* version = "";
};

// Fragments of `bytes` bytes. 0: as measured to be best on processors like this one.
Tuning::Fragments fragments_of(std::uint32_t bytes);

// The settings that the options give. The defaults above are those of the option table, except the
// fragments. A test compares them.
Settings settings_from(const Options& options);

}  // namespace stretto::engine
