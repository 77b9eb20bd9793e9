// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job.hpp"

#include <cstdlib>
#include <new>

#include "base/log.hpp"
#include "mpi/host.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/wire.hpp"
#include "sys/sys.hpp"
#include "topo/sources.hpp"

namespace stretto::mpi {
namespace {

constinit topo::Sources* g_sources = nullptr;  // what this rank's options say; null until it matters
constinit Job* g_job = nullptr;

// What a rank tells all others.
struct Word {
  topo::Seat seat;
  std::uint32_t scheduled, wanted;
  char host[64];
};

template <class T>
T* make() {
  void* const memory = std::malloc(sizeof(T));
  return memory != nullptr ? new (memory) T : nullptr;
}
template <class T>
void destroy(T*& object) {
  if (object != nullptr) object->~T();
  std::free(object);
  object = nullptr;
}

// ---- the exchange ---------------------------------------------------------------------------------------------------

const topo::Seat& seat_of(void* words, int rank) { return static_cast<const Word*>(words)[rank].seat; }

// Everybody's words, and what follows from them. False on some ranks only if these have no memory.
bool gather_words(Job& job, int rank, int size) {
  const Constants& c = host().constants;
  Word mine{g_sources->seat(rank), options().scheduled(), options().wanted(), {}};
  sys::host_name(mine.host, sizeof mine.host);
  auto* const all = static_cast<Word*>(std::malloc(static_cast<std::size_t>(size) * sizeof(Word)));
  if (all == nullptr) std::abort();  // a hundred bytes a rank: the others would wait for a word that we cannot give
  const int bytes = static_cast<int>(sizeof mine);
  bool fine = host().Allgather(&mine, bytes, c.byte, all, bytes, c.byte, c.comm_world) == MPI_SUCCESS;
  fine = fine && topo::place(&job.placement, size, seat_of, all);
  job.scheduled = mine.scheduled;
  job.wanted = mine.wanted;
  for (int r = 0; r < size; ++r) {
    job.scheduled &= all[r].scheduled;
    job.wanted &= all[r].wanted;
    job.hosts.add(all[r].host);
  }
  std::free(all);
  job.levels = g_sources->levels;
  return host().Bcast(&job.levels, static_cast<int>(sizeof job.levels), c.byte, 0, c.comm_world) == MPI_SUCCESS && fine;
}

bool everybody(bool mine) {
  int word = mine ? 1 : 0, all = 0;
  const Constants& c = host().constants;
  return host().Allreduce(&word, &all, 1, c.int_, c.min, c.comm_world) == MPI_SUCCESS && all != 0;
}

}  // namespace

void job_read(const Options& options, OptionsReport& report) {
  if (*options.hierarchy == 0 && *options.placement_path == 0 && *options.topology_path == 0) return;
  g_sources = make<topo::Sources>();
  if (g_sources == nullptr) return report.add(LogLevel::error, "no memory for what the options name");
  g_sources->read(options, report);
}

void job_begin(int rank, int size) {
  if (g_sources == nullptr) g_sources = make<topo::Sources>();
  Job* made = make<Job>();
  if (g_sources == nullptr || made == nullptr) std::abort();  // as above
  const bool fine = gather_words(*made, rank, size);
  const bool open = wire_open();
  if (everybody(fine && open)) {
    g_job = made;
    return;
  }
  if (open) wire_close();
  destroy(made);
  if (rank == 0) log_line(LogLevel::warn, "no schedules in this job: a rank has no memory, or the MPI makes no communicator");
}

void job_end() {
  if (g_job == nullptr) return;
  destroy(g_job);
  destroy(g_sources);
  wire_close();
}

const Job* job() { return g_job; }

}  // namespace stretto::mpi
