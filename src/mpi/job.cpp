// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/log.hpp"
#include "mpi/host.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/transport.hpp"
#include "mpi/vendor/vendor.hpp"
#include "sys/sys.hpp"
#include "topo/sources.hpp"

namespace stretto::mpi {
namespace {

constinit topo::Sources* g_sources = nullptr;  // what this rank's options name; null until it is needed
constinit Job* g_job = nullptr;

// The file of rules, on rank 0.
struct RulesFile {
  char path[kOptionPathBytes] = "";
  stretto::Array<char> text;
  select::Rules rules;
};
constinit RulesFile* g_rules = nullptr;  // null: there is none

// What a rank tells all others.
struct Word {
  topo::Locality locality;
  std::uint32_t scheduled, wanted;
  SocketsChoice sockets;
  std::uint64_t overlap_bytes, machine;
  bool overlap_tries, overlap_measures;
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

// ---- Rules ----

// Where `stretto tune` writes its rules (python/stretto/core/paths.py). `path` stays "" if
// there is no such place.
void default_rules_path(char (&path)[kOptionPathBytes]) {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const bool own = config == nullptr || *config == 0;
  const char* const directory = own ? std::getenv("HOME") : config;
  if (directory == nullptr || *directory == 0) return;
  const int length =
      std::snprintf(path, sizeof path, "%s%s/stretto/%s.rules", directory, own ? "/.config" : "", vendor::kAbi);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) path[0] = 0;
}

bool read_rules(const Options& options, OptionsReport& report, RulesFile& file) {
  const bool named = *options.rules_path != 0;
  if (named)
    std::snprintf(file.path, sizeof file.path, "%s", options.rules_path);
  else
    default_rules_path(file.path);
  if (*file.path == 0) return false;
  constexpr char kElse[] = "what is built in decides";
  const int error = topo::file_text(file.path, &file.text);
  FileError wrong;
  if (error != 0) {
    if (named)
      report.add(LogLevel::warn, "cannot read %.300s: %s (STRETTO_RULES); %s", file.path, strerrordesc_np(error),
                 kElse);
    return false;
  }
  if (file.rules.parse(file.text.data(), file.text.size(), &wrong)) return true;
  report.add(LogLevel::warn, "%.250s:%u:%u: %s; %s", file.path, wrong.line, wrong.column, wrong.what, kElse);
  return false;
}

// Rank 0 sends the text of its rules to all ranks, so that all have the same rules.
bool share_rules(Job& job, int rank) {
  const Constants& c = host().constants;
  stretto::Array<char> theirs;
  stretto::Array<char>& text = g_rules != nullptr ? g_rules->text : theirs;
  int bytes = rank == 0 ? static_cast<int>(text.size()) : 0;
  if (host().Bcast(&bytes, 1, c.int_, 0, c.comm_world) != MPI_SUCCESS) return false;
  if (bytes == 0) return true;
  if (!text.resize(static_cast<std::size_t>(bytes), 0)) std::abort();  // as in gather_words
  FileError wrong;
  return host().Bcast(text.data(), bytes, c.byte, 0, c.comm_world) == MPI_SUCCESS &&
         job.rules.parse(text.data(), text.size(), &wrong);
}

// ---- The exchange ----

const topo::Locality& locality_of(void* words, int rank) { return static_cast<const Word*>(words)[rank].locality; }

SocketsChoice both(SocketsChoice one, SocketsChoice other) {
  if (one == other) return one;
  return one == SocketsChoice::off || other == SocketsChoice::off ? SocketsChoice::off : SocketsChoice::automatic;
}

// Gathers the words of all ranks and fills the job. Returns false if a call of the host fails or
// this rank has no memory, so the result may differ between ranks.
bool gather_words(Job& job, int rank, int size) {
  const Constants& c = host().constants;
  Word mine{g_sources->locality(rank), options().scheduled(),        options().wanted(),
            options().sockets(),       options().overlap_bytes(),    sys::host_id(),
            options().overlap_tries(), options().overlap_measures(), {}};
  sys::host_name(mine.host, sizeof mine.host);
  auto* const all = static_cast<Word*>(std::malloc(static_cast<std::size_t>(size) * sizeof(Word)));
  // These are some hundred bytes a rank. Without them this rank cannot send its word, for
  // which the other ranks wait.
  if (all == nullptr) std::abort();
  const int bytes = static_cast<int>(sizeof mine);
  bool fine = host().Allgather(&mine, bytes, c.byte, all, bytes, c.byte, c.comm_world) == MPI_SUCCESS;
  fine = fine && topo::place(&job.placement, size, locality_of, all);
  job.scheduled = mine.scheduled;
  job.wanted = mine.wanted;
  job.sockets = mine.sockets;
  job.overlap_bytes = mine.overlap_bytes;
  job.overlap_tries = job.overlap_measures = false;
  for (int r = 0; r < size; ++r) {
    job.scheduled &= all[r].scheduled;
    job.wanted &= all[r].wanted;
    job.sockets = both(job.sockets, all[r].sockets);
    const std::uint64_t theirs = all[r].overlap_bytes;
    job.overlap_tries = job.overlap_tries || all[r].overlap_tries;
    job.overlap_measures = job.overlap_measures || all[r].overlap_measures;
    job.overlap_bytes = job.overlap_bytes == 0 || theirs == 0 ? 0 : std::max(job.overlap_bytes, theirs);
    job.hosts.add(all[r].host);
    job.machines.push(all[r].machine);
  }
  fine = fine && !job.machines.failed();
  std::free(all);
  job.levels = g_sources->levels;
  fine = host().Bcast(&job.levels, static_cast<int>(sizeof job.levels), c.byte, 0, c.comm_world) == MPI_SUCCESS && fine;
  return share_rules(job, rank) && fine;
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

const topo::Binding* job_binding(int rank) {
  static constinit topo::Binding binding;
  if (g_sources == nullptr || g_sources->placement.empty()) return nullptr;
  binding = topo::binding_of(g_sources->placement.locality(rank));
  return &binding;
}

void job_read_rules(const Options& options, OptionsReport& report) {
  if (!options.enabled() || std::strcmp(options.rules_path, "off") == 0) return;
  g_rules = make<RulesFile>();
  if (g_rules != nullptr && !read_rules(options, report, *g_rules)) destroy(g_rules);
}

bool job_rules_speak_of_one_node() { return g_rules != nullptr && g_rules->rules.speak_of_nodes(1); }

void job_begin(int rank, int size) {
  if (g_sources == nullptr) g_sources = make<topo::Sources>();
  Job* made = make<Job>();
  if (g_sources == nullptr || made == nullptr) std::abort();  // as in gather_words
  const bool fine = gather_words(*made, rank, size);
  const bool open = transport_open();
  if (g_rules != nullptr && options().explain()) log_explain("%zu rules, of %s", g_rules->rules.size(), g_rules->path);
  destroy(g_rules);
  if (everybody(fine && open)) {
    g_job = made;
    return;
  }
  if (open) transport_close();
  destroy(made);
  if (rank == 0)
    log_line(LogLevel::warn, "no schedules in this job: a rank has no memory, or the MPI makes no communicator");
}

void job_end() {
  if (g_job == nullptr) return;
  destroy(g_job);
  destroy(g_sources);
  transport_close();
}

const Job* job() { return g_job; }

}  // namespace stretto::mpi
