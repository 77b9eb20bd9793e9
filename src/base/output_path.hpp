// SPDX-License-Identifier: BSD-3-Clause
// Names of output files with parts that each job fills in:
//
//   %u  the user              %h  the host, without its domain
//   %j  the batch system's number of the job; without one, the number of the process
//   %s  Slurm's number of the job's step; without one, 0
//   %d  the date, 2027-01-31  %t  the time, 235959
//   %p  the number of the process
//   %%  a per cent sign
#pragma once
#include <cstddef>

namespace stretto {

// False: a letter behind % means nothing, or the path is too long. `path` then has its beginning.
bool output_path(const char* pattern, char* path, std::size_t capacity);

}  // namespace stretto
