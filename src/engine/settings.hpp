// SPDX-License-Identifier: BSD-3-Clause
// What the engine is told by the option table (base/options) and by a machine profile. All of it is the sender's own
// business: records in shared memory say where a payload lies, so ranks may differ in every one of these.
#pragma once
#include <cstddef>

#include "base/options.hpp"
#include "base/profile.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {

using WaitMode = WaitChoice;  // automatic, spin, yield, nap

struct Settings {
  std::size_t slots = 8;              // STRETTO_SLOTS: payload slots of a lane (s of paper S1)
  std::size_t slot_bytes = 32 << 10;  // STRETTO_SLOT_BYTES: bytes of a slot (f of paper S1)
  Profile::Fragments fragments = kProfile.fragments;  // STRETTO_FRAGMENT_BYTES, else by the processor
  std::size_t segment_bytes = std::size_t{256} << 20;  // STRETTO_SEGMENT_BYTES: address space of a segment; pages come on demand
  SingleCopyChoice single_copy = SingleCopyChoice::automatic;  // STRETTO_SINGLE_COPY
  unsigned check = 1;                 // STRETTO_CHECK
  unsigned watchdog_seconds = 0;      // STRETTO_WATCHDOG, else half of STRETTO_TIMEOUT; 0: none
  unsigned timeout_seconds = 0;       // STRETTO_TIMEOUT; 0: none
  WaitMode wait = WaitMode::automatic;  // STRETTO_WAIT
  unsigned ranks_on_node = 0;         // from the launcher; 0: as many as the largest communicator seen
  // For onlookers (engine/presence.hpp): a number that the ranks of MPI_COMM_WORLD agree on, and who of them this is.
  std::uint64_t job = 0, job_rank = 0, job_ranks = 0;
  const char* version = "";
};

// Fragments of `bytes` bytes; 0: as was measured to be best on processors like this one.
inline Profile::Fragments fragments_of(std::uint32_t bytes) {
  if (bytes != 0) return {1, bytes, bytes};
  return sys::cpu_is_amd() ? kProfile.fragments_amd : kProfile.fragments;
}

// What the user's options say. (The defaults above are the table's, fragments aside: a test compares them.)
inline Settings settings_from(const Options& options) {
  Settings settings;
  settings.slots = options.slots();
  settings.slot_bytes = options.slot_bytes();
  settings.fragments = fragments_of(static_cast<std::uint32_t>(options.fragment_bytes()));
  settings.segment_bytes = options.segment_bytes();
  settings.single_copy = options.single_copy();
  settings.check = static_cast<unsigned>(options.check());
  settings.watchdog_seconds = options.watchdog_seconds();
  settings.timeout_seconds = options.timeout_seconds();
  if (settings.watchdog_seconds == 0) settings.watchdog_seconds = (settings.timeout_seconds + 1) / 2;
  settings.wait = options.wait();
  return settings;
}

}  // namespace stretto::engine
