// SPDX-License-Identifier: BSD-3-Clause
// With STRETTO_STATS, a program waits on each node until the job's ranks there have ended
// (tools/keeper). If they end without their report, because the job was stopped, it writes what
// they knew.
#pragma once

namespace stretto::mpi {

// Ranks have come together, at the end of MPI_Init. Collective over MPI_COMM_WORLD.
void keeper_begin();
// The report is written.
void keeper_end();
// Where the report goes; "": standard error. All ranks that have met have rank 0's.
const char* keeper_path();

}  // namespace stretto::mpi
