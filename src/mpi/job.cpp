// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/log.hpp"
#include "mpi/host.hpp"
#include "mpi/wire.hpp"
#include "sys/sys.hpp"
#include "topo/network.hpp"
#include "topo/placement_file.hpp"

namespace stretto::mpi {
namespace {

// What this rank has read.
struct Own {
  topo::LevelChoice levels;
  topo::PlacementFile placement;
  topo::Network network;
  std::uint32_t scheduled = 0;
};

constinit Own* g_own = nullptr;  // null: every option as it is by default
constinit Job* g_job = nullptr;

// What a rank tells all others.
struct Word {
  topo::Seat seat;
  std::uint32_t scheduled;
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

// ---- files ----------------------------------------------------------------------------------------------------------

// Hands the file's text to `parse(text, bytes, error)`.
template <class Parse>
void read_file(Option option, const char* path, OptionsReport& report, Parse parse) {
  constexpr std::size_t kFirstBytes = 64 << 10, kMostBytes = 64 << 20;
  const char* const name = option_row(option).name;
  stretto::Array<char> text;
  std::size_t bytes = 0;
  int error = EFBIG;
  for (std::size_t capacity = kFirstBytes; error == EFBIG && capacity <= kMostBytes; capacity *= 4) {
    error = text.resize(capacity, 0) ? sys::file_read(path, text.data(), capacity, &bytes) : ENOMEM;
  }
  if (error != 0) return report.add(LogLevel::error, "%s: %.300s: %s", name, path, strerrordesc_np(error));
  FileError wrong;
  if (parse(text.data(), bytes, &wrong)) return;
  report.add(LogLevel::error, "%s: %.200s, line %u, column %u: %s", name, path, wrong.line, wrong.column, wrong.what);
}

void read_levels(const Options& options, OptionsReport& report) {
  topo::LevelError wrong;
  if (*options.hierarchy == 0 || topo::parse_levels(options.hierarchy, &g_own->levels, &wrong)) return;
  report.add(LogLevel::error, "STRETTO_HIERARCHY: \"%.80s\", column %u: %s", options.hierarchy, wrong.column, wrong.what);
}

// ---- the exchange ---------------------------------------------------------------------------------------------------

Word own_word(int rank) {
  Word word{};
  if (g_own != nullptr) word.scheduled = g_own->scheduled;
  if (g_own != nullptr && !g_own->placement.empty()) {
    word.seat = g_own->placement.seat(rank);
    return word;
  }
  char name[sys::kHostNameBytes];
  sys::host_name(name, sizeof name);
  const topo::Network* const network = g_own != nullptr && g_own->network.levels() != 0 ? &g_own->network : nullptr;
  word.seat = topo::find_seat(sys::cpu_place(), sys::host_id(), name, network);
  return word;
}

const topo::Seat& seat_of(void* words, int rank) { return static_cast<const Word*>(words)[rank].seat; }

// Everybody's words, and what follows from them. False on some ranks only if these have no memory.
bool gather_words(Job& job, int rank, int size) {
  const Constants& c = host().constants;
  const Word mine = own_word(rank);
  auto* const all = static_cast<Word*>(std::malloc(static_cast<std::size_t>(size) * sizeof(Word)));
  if (all == nullptr) std::abort();  // a hundred bytes a rank: the others would wait for a word that we cannot give
  const int bytes = static_cast<int>(sizeof mine);
  bool fine = host().Allgather(&mine, bytes, c.byte, all, bytes, c.byte, c.comm_world) == MPI_SUCCESS;
  fine = fine && topo::place(&job.placement, size, seat_of, all);
  job.scheduled = mine.scheduled;
  for (int r = 0; r < size; ++r) job.scheduled &= all[r].scheduled;
  std::free(all);
  if (g_own != nullptr) job.levels = g_own->levels;
  return host().Bcast(&job.levels, static_cast<int>(sizeof job.levels), c.byte, 0, c.comm_world) == MPI_SUCCESS && fine;
}

bool everybody(bool mine) {
  int word = mine ? 1 : 0, all = 0;
  const Constants& c = host().constants;
  return host().Allreduce(&word, &all, 1, c.int_, c.min, c.comm_world) == MPI_SUCCESS && all != 0;
}

}  // namespace

void job_read(const Options& options, OptionsReport& report) {
  const bool any = options.scheduled() != 0 || *options.hierarchy != 0 || *options.placement_path != 0 || *options.topology_path != 0;
  if (!any) return;
  g_own = make<Own>();
  if (g_own == nullptr) return report.add(LogLevel::error, "no memory for what the options name");
  g_own->scheduled = options.scheduled();
  read_levels(options, report);
  if (*options.placement_path != 0) {
    read_file(Option::placement, options.placement_path, report, [](const char* text, std::size_t bytes, FileError* wrong) {
      return g_own->placement.parse(text, bytes, wrong);
    });
  }
  if (*options.topology_path != 0) {
    read_file(Option::topology, options.topology_path, report, [](const char* text, std::size_t bytes, FileError* wrong) {
      return g_own->network.parse(text, bytes, wrong);
    });
  }
}

void job_begin(int rank, int size) {
  Job* made = make<Job>();
  if (made == nullptr) std::abort();  // as above
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
  destroy(g_own);
  wire_close();
}

const Job* job() { return g_job; }

}  // namespace stretto::mpi
