// SPDX-License-Identifier: BSD-3-Clause
// Who a process is, for those who look on from outside its job: put once, when its segment is made, into a key-value
// table there (kv/table.hpp), so that fields may be added without touching what lies in fixed places.
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

// Want of memory only makes this process invisible.
void process_info_put(shm::Segment& segment, const ProcessInfo& info);
// False: there is none, so that is no segment of the engine's. Trusts nothing in it.
bool process_info_read(const kv::TableView& table, ProcessInfo* process_info);

}  // namespace stretto::observe
