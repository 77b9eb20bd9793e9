// SPDX-License-Identifier: BSD-3-Clause
// Which processes of this machine have a segment of Stretto's: a memory file of its name among a process' open files.
#pragma once
#include <string>
#include <vector>

namespace stretto::top {

// A segment that a process may have: what the file holds is still to be seen.
struct Candidate {
  int pid;
  int fd;  // open for reading; the caller's
};

struct Found {
  std::vector<Candidate> candidates;
  std::vector<int> denied;  // processes into which we may not look
};

// Among these processes; none: among all.
Found find_segments(const std::vector<int>& pids);

// The command line, blanks between its words; empty if the process is gone.
std::string command_of(int pid);

}  // namespace stretto::top
