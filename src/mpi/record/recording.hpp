// SPDX-License-Identifier: BSD-3-Clause
// When the recording of this process begins and ends (recorder.hpp, recorded.hpp).
#pragma once

namespace stretto::mpi {

// Options are read. Later record_begin() decides.
void record_prepare();
// At the end of MPI_Init. `complete`: all ranks come here.
void record_begin(bool complete);
// In MPI_Finalize.
void record_end();
// In a forked child: the parent goes on.
void record_leave_to_parent();

}  // namespace stretto::mpi
