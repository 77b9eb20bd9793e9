// SPDX-License-Identifier: BSD-3-Clause
// What Stretto tells the user: one line, one write(2) to standard error, nothing shared with the host program's stdio.
//
//   stretto: rank 3: error: memory for the shared segment: No space left on device
//
// Errors and warnings are limited to kLogBurst lines a second for each process, so that a failure in a loop does not
// bury its own cause; how many lines were left out is said with the next one. Lines at info and debug were asked for
// (STRETTO_LOG) and are not limited. Safe from any thread; no heap.
#pragma once
#include <cstdint>

namespace stretto {

enum class LogLevel : std::uint8_t { error, warn, info, debug };  // in the order of STRETTO_LOG's choices

inline constexpr int kLogBurst = 10;

void log_set_level(LogLevel level);
void log_set_rank(int rank);  // of MPI_COMM_WORLD, once it is known
bool log_enabled(LogLevel level);

// printf-style, without a newline. Control characters become '?'; more than a screenful (about 1000 bytes) is cut.
[[gnu::format(printf, 2, 3)]] void log_line(LogLevel level, const char* format, ...);
// What somebody asked for (STRETTO_EXPLAIN): at every level, not limited.
[[gnu::format(printf, 1, 2)]] void log_explain(const char* format, ...);

// Before this process ends the job. Launchers may drop what ranks wrote right before: this waits until standard error,
// if it is a pipe or a socket, has been taken over (for some 2 s at most), and a moment more for the launcher to pass
// it on.
void log_drain();

}  // namespace stretto
