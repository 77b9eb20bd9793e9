// SPDX-License-Identifier: BSD-3-Clause
// Traces of other tools as recordings: archives of OTF2, as Score-P, TAU and EZTrace write them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace stretto::modelling {

struct Imported {
  int ranks = 0;
  std::uint64_t calls = 0;
  std::uint64_t beside = 0;     // locations that are no rank: threads and devices
  std::uint64_t one_sided = 0;  // operations that count as the time of their calls
  std::uint64_t open = 0;       // requests that never end
};

// Reads the archive with this anchor file and writes a packed recording. Ends the program, with the
// reason, if the trace has what a recording cannot say.
//
// A call is what lies between the begin and the end of a region of MPI. A receive is told where its
// request begins, with what came when it ended. All regions outside of MPI are computation; the
// innermost one is the place of a call.
Imported import_otf2(const std::string& anchor, const std::string& file);

// `job import`: anchor and file.
void import_job(const std::vector<std::string>& words);

}  // namespace stretto::modelling
