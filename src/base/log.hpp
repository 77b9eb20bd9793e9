// SPDX-License-Identifier: BSD-3-Clause
// What Stretto tells the user. Each message is one line and one write(2) to standard error. It
// shares nothing with the host program's stdio.
//
//   stretto: rank 3: error: memory for the shared segment: No space left on device
//
// Each process writes at most kLogBurst errors and warnings a second, so that a failure in a loop
// does not hide its own cause. The next line says how many were left out. Lines at info and debug
// are not limited, because the user asked for them (STRETTO_LOG). Any thread may call these
// functions. They use no heap.
#pragma once
#include <cstdint>

namespace stretto {

enum class LogLevel : std::uint8_t { error, warn, info, debug };  // in the order of STRETTO_LOG's choices

inline constexpr int kLogBurst = 10;

void log_set_level(LogLevel level);
void log_set_rank(int rank);  // rank in MPI_COMM_WORLD, once it is known
bool log_enabled(LogLevel level);

// Writes a line, printf-style, without a newline in `format`. Control characters become '?'. A line
// beyond about 1000 bytes is cut.
[[gnu::format(printf, 2, 3)]] void log_line(LogLevel level, const char* format, ...);
// Writes what the user asked for with STRETTO_EXPLAIN: at every log level, without a limit.
[[gnu::format(printf, 1, 2)]] void log_explain(const char* format, ...);

// A process calls this before it ends the job, because launchers may drop what ranks wrote right
// before. If standard error is a pipe or a socket, it waits until the launcher has taken the output
// over, at most some 2 s. It then waits a moment more, so that the launcher passes the output on.
void log_drain();
// Ends this process, and with it the job, once its last messages are on their way. They stand
// alone: no stack of Stretto's follows.
[[noreturn]] void log_end_process();

}  // namespace stretto
