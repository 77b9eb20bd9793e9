// SPDX-License-Identifier: BSD-3-Clause
// Makes and ends a process's state (process.hpp), and with it the watchdog that reads it.
#include <cstdlib>
#include <new>

#include "engine/process.hpp"
#include "engine/watchdog.hpp"

namespace stretto::engine {

Process* process_create(const Settings& settings, const HostProgress& progress, const Sources& sources) {
  auto* process = static_cast<Process*>(std::malloc(sizeof(Process)));
  if (!process) return nullptr;
  new (process) Process;
  process->settings = settings;
  process->progress = progress;
  process->sources = sources;
  process->ranks_on_node = settings.ranks_on_node;
  // The watchdog reads notes, also of calls that shared memory does not serve. These
  // need a segment.
  if (settings.watchdog_seconds != 0) (void)make_segment(*process);
  process->watchdog = Watchdog::start(*process);
  return process;
}

void process_destroy(Process* process) {
  if (!process) return;
  Watchdog::stop(process->watchdog);
  while (Comm* comm = process->leaving) {
    process->leaving = comm->next;
    destroy(comm);
  }
  for (std::size_t i = 0; i < process->attachments.count; ++i) shm::attachment_unmap(&process->attachments.entries[i]);
  std::free(process->attachments.entries);
  for (Neighbour& each : process->neighbours) {
    if (each.seen.base != nullptr) shm::attachment_unmap(&each.seen);
  }
  process->segment.retire();
  process->segment.destroy();
  process->~Process();
  std::free(process);
}

}  // namespace stretto::engine
