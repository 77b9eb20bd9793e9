// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/record/recording.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/log.hpp"
#include "mpi/host/entry.hpp"
#include "mpi/job/finalize.hpp"
#include "mpi/job/world.hpp"
#include "mpi/record/recorded.hpp"
#include "mpi/record/recorder.hpp"

namespace stretto::mpi {

void record_prepare() { g_recorded = options().record_path[0] != 0; }

void record_begin(bool complete) {
  if (!g_recorded) return;
  void* const memory = std::malloc(sizeof(Recorder));
  if (memory == nullptr) {
    g_recorded = false;
    return;
  }
  auto* const made = new (memory) Recorder;
  if (made->begin(complete)) {
    g_recorder = made;
    recorded_first();
    ensure_finalize_hook();
    return;
  }
  made->~Recorder();
  std::free(memory);
  g_recorded = false;
}

void record_end() {
  Recorder* const ended = g_recorder;
  if (ended == nullptr) return;
  recorded_last();
  g_recorder = nullptr;
  g_recorded = false;
  if (const int error = ended->writer.failure())
    log_line(LogLevel::warn, "the recording ends early: %s", std::strerror(error));
  ended->writer.finish();
}

void record_leave_to_parent() {
  g_recorder = nullptr;
  g_recorded = false;
}

}  // namespace stretto::mpi
