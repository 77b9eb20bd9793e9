// SPDX-License-Identifier: BSD-3-Clause
#include "engine/settings.hpp"

#include "sys/sys.hpp"

namespace stretto::engine {

Tuning::Fragments fragments_of(std::uint32_t bytes) {
  if (bytes != 0) return {1, bytes, bytes};
  return sys::cpu_is_amd() ? kTuning.fragments_amd : kTuning.fragments;
}

Settings settings_from(const Options& options) {
  Settings settings;
  settings.slots = options.slots();
  settings.slot_bytes = options.slot_bytes();
  settings.fragments = fragments_of(static_cast<std::uint32_t>(options.fragment_bytes()));
  settings.segment_bytes = options.segment_bytes();
  settings.single_copy = options.single_copy();
  settings.streaming = options.streaming();
  settings.check = static_cast<unsigned>(options.check());
  settings.watchdog_seconds = options.watchdog_seconds();
  settings.timeout_seconds = options.timeout_seconds();
  if (settings.watchdog_seconds == 0) settings.watchdog_seconds = (settings.timeout_seconds + 1) / 2;
  settings.wait = options.wait();
  settings.tiers_from_ranks = options.tiers_from_ranks();
  return settings;
}

}  // namespace stretto::engine
