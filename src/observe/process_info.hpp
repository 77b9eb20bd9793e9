// SPDX-License-Identifier: BSD-3-Clause
// Tells observers outside the job which process they look at. The process puts this once, when it
// makes its segment, into a key-value table there (kv/table.hpp). So new fields do not move what
// lies in fixed places.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kv/table.hpp"
#include "shm/segment.hpp"

namespace stretto::observe {

struct ProcessInfo {
  std::uint64_t job = 0;              // of its MPI_COMM_WORLD; 0: it has none in common with others (sessions)
  std::uint64_t rank = 0, ranks = 0;  // there
  char version[32] = "";
  char host[64] = "";
};

// If memory is short, this process stays invisible to observers, and nothing else changes.
void process_info_put(shm::Segment& segment, const ProcessInfo& info);
// Returns false if the table has none: then the segment is not the engine's. Trusts nothing in the
// table.
bool process_info_read(const kv::TableView& table, ProcessInfo* process_info);

}  // namespace stretto::observe
