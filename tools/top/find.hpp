// SPDX-License-Identifier: BSD-3-Clause
// Which processes of this machine have a segment of Stretto: a memory file of its name among their
// open files.
#pragma once
#include <string>
#include <vector>

namespace stretto::top {

// A segment that a process may have. The caller must look at what the file holds.
struct Candidate {
  int pid;
  int fd;  // open for reading; the caller closes it
};

struct Found {
  std::vector<Candidate> candidates;
  std::vector<int> denied;  // processes that we may not look into
};

// Among these processes. None given: among all.
Found find_segments(const std::vector<int>& pids);

// Its threads, the main thread first. Empty: the process is gone.
std::vector<int> threads_of(int pid);

// The command line, with blanks between its words. Empty: the process is gone.
std::string command_of(int pid);

}  // namespace stretto::top
