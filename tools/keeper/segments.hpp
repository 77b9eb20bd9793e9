// SPDX-License-Identifier: BSD-3-Clause
// Shared memory with a name, which an MPI's ranks have in /dev/shm and remove themselves, unless
// they are killed.
#pragma once
#include <set>
#include <string>

namespace stretto::keeper {

// Files of /dev/shm that a process has mapped.
std::set<std::string> segments_of(int pid);
// Removes those of this user that no process has mapped.
void remove_unused(std::set<std::string> segments);

}  // namespace stretto::keeper
