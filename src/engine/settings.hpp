// SPDX-License-Identifier: BSD-3-Clause
// What the engine is told by the option table (base/options) and by a machine profile. All of it is the sender's own
// business: records in shared memory say where a payload lies, so ranks may differ in every one of these.
#pragma once
#include <cstddef>

namespace stretto::engine {

enum class WaitMode : unsigned char { automatic, spin, yield, nap };

struct Settings {
  std::size_t slots = 8;              // STRETTO_SLOTS: payload slots of a lane (s of paper S1)
  std::size_t slot_bytes = 32 << 10;  // STRETTO_SLOT_BYTES: bytes of a slot (f of paper S1)
  std::size_t segment_bytes = std::size_t{256} << 20;  // STRETTO_SEGMENT_BYTES: address space of a segment; pages come on demand
  WaitMode wait = WaitMode::automatic;  // STRETTO_WAIT
  unsigned ranks_on_node = 0;         // from the launcher; 0: as many as the largest communicator seen
};

}  // namespace stretto::engine
