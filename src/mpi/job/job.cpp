// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/job.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/log.hpp"
#include "base/user_path.hpp"
#include "mpi/host/host.hpp"
#include "mpi/job/transport.hpp"
#include "mpi/job/world.hpp"
#include "mpi/vendor/vendor.hpp"
#include "sys/sys.hpp"
#include "topo/numbering.hpp"
#include "topo/sources.hpp"

namespace stretto::mpi {
namespace {

constinit topo::Sources* g_sources = nullptr;  // what this rank's options name; null until it is needed
constinit Job* g_job = nullptr;

// The file of rules, on rank 0.
struct RulesFile {
  char path[kOptionPathBytes] = "";
  Array<char> text;
  select::Rules rules;
};
constinit RulesFile* g_rules = nullptr;  // null: there is none

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

// Where `stretto tune` writes its rules (python/stretto/core/paths.py).
bool default_rules_path(char (&path)[kOptionPathBytes]) {
  char name[40];
  std::snprintf(name, sizeof name, "stretto/%s.rules", vendor::kAbi);
  return user_path(path, "XDG_CONFIG_HOME", "/.config", name);
}

bool read_rules(const Options& options, OptionsReport& report, RulesFile& file) {
  const bool named = *options.rules_path != 0;
  if (named)
    std::snprintf(file.path, sizeof file.path, "%s", options.rules_path);
  else if (!default_rules_path(file.path))
    return false;
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
  Array<char> theirs;
  Array<char>& text = g_rules != nullptr ? g_rules->text : theirs;
  int bytes = rank == 0 ? static_cast<int>(text.size()) : 0;
  if (host().Bcast(&bytes, 1, c.int_, 0, c.comm_world) != MPI_SUCCESS) return false;
  if (bytes == 0) return true;
  if (!text.resize(static_cast<std::size_t>(bytes), 0)) std::abort();  // as in topo::Records
  FileError wrong;
  return host().Bcast(text.data(), bytes, c.byte, 0, c.comm_world) == MPI_SUCCESS &&
         job.rules.parse(text.data(), text.size(), &wrong);
}

// ---- The exchange ----

bool allgather(void*, const void* mine, void* all, std::size_t bytes) {
  const Constants& c = host().constants;
  const int count = static_cast<int>(bytes);
  return host().Allgather(mine, count, c.byte, all, count, c.byte, c.comm_world) == MPI_SUCCESS;
}

bool told_by(void*, const int* tellers, int count, const void* mine, void* all, std::size_t bytes) {
  const Constants& c = host().constants;
  const int each = static_cast<int>(bytes), size = world().size;
  if (count == 1) {
    if (tellers[0] == world().rank) std::memcpy(all, mine, bytes);
    return host().Bcast(all, each, c.byte, tellers[0], c.comm_world) == MPI_SUCCESS;
  }
  if (count == size) return allgather(nullptr, mine, all, bytes);
  Array<int> counts, places;
  // As in topo::Records: the other ranks wait for this one.
  if (!counts.resize(static_cast<std::size_t>(size), 0) || !places.resize(static_cast<std::size_t>(size), 0))
    std::abort();
  for (int i = 0; i < count; ++i) {
    counts[static_cast<std::size_t>(tellers[i])] = each;
    places[static_cast<std::size_t>(tellers[i])] = i * each;
  }
  return host().Allgatherv(mine, counts[static_cast<std::size_t>(world().rank)], c.byte, all, counts.data(),
                           places.data(), c.byte, c.comm_world) == MPI_SUCCESS;
}

TcpChoice both(TcpChoice one, TcpChoice other) {
  if (one == other) return one;
  return one == TcpChoice::off || other == TcpChoice::off ? TcpChoice::off : TcpChoice::automatic;
}

// What this rank has to tell. All bytes are set: ranks that have the same to tell have the same
// bytes.
void tell(int rank, NodeRecord* node, RankRecord* own) {
  std::memset(static_cast<void*>(node), 0, sizeof *node);
  std::memset(static_cast<void*>(own), 0, sizeof *own);
  const topo::Locality locality = g_sources->locality(rank);
  for (int level = 0; level < topo::kLocalityLevelCount; ++level) {
    const bool within = level < topo::kNodeLevel;
    (within ? own->domains[level] : node->domains[level - topo::kNodeLevel]) = locality.domains[level];
  }
  node->machine = sys::host_id();
  sys::host_name(node->host, sizeof node->host);
  own->nics.nearest = locality.nics.nearest;
  own->nics.distance = locality.nics.distance;
  own->scheduled = options().scheduled();
  own->wanted = options().wanted();
  own->tcp = static_cast<std::uint32_t>(options().tcp());
  own->overlap_bytes = options().overlap_bytes();
  own->overlap_tries = options().overlap_tries() ? 1 : 0;
  own->overlap_measures = options().overlap_measures() ? 1 : 0;
}

// What all ranks ask for, together.
void combine(Job& job) {
  const RankRecord& first = *job.ranks.begin();
  job.scheduled = first.scheduled;
  job.wanted = first.wanted;
  job.tcp = static_cast<TcpChoice>(first.tcp);
  job.overlap_bytes = first.overlap_bytes;
  for (const RankRecord& rank : job.ranks) {
    job.scheduled &= rank.scheduled;
    job.wanted &= rank.wanted;
    job.tcp = both(job.tcp, static_cast<TcpChoice>(rank.tcp));
    job.overlap_tries = job.overlap_tries || rank.overlap_tries != 0;
    job.overlap_measures = job.overlap_measures || rank.overlap_measures != 0;
    const bool off = job.overlap_bytes == 0 || rank.overlap_bytes == 0;
    job.overlap_bytes = off ? 0 : std::max(job.overlap_bytes, rank.overlap_bytes);
  }
}

topo::Localities localities(const Job& of) {
  return {const_cast<Job*>(&of),
          [](void* context, int rank, int level) {
            const Job& job = *static_cast<const Job*>(context);
            return level < topo::kNodeLevel ? job.ranks.of(rank).domains[level]
                                            : job.nodes.of(rank).domains[level - topo::kNodeLevel];
          },
          [](void* context, int rank) { return static_cast<const Job*>(context)->ranks.of(rank).nics; }};
}

// Numbers the nodes, as the placement says, and the hosts. False: no memory.
bool number_nodes(Job& job, int size) {
  topo::Numbering numbers;
  for (int r = 0; r < size; ++r) {
    const std::uint64_t domain = job.nodes.of(r).domains[0];
    const auto above = static_cast<std::int32_t>(domain >> 32), below = static_cast<std::int32_t>(domain);
    job.node_of.push(domain == 0 ? topo::Placement::kNowhere : numbers.number(above, below));
    job.hosts.add(job.nodes.of(r).host);
  }
  job.known = topo::known_of(size, localities(job));
  job.has_nodes = (job.known.levels >> topo::kNodeLevel & 1) != 0;
  return !numbers.failed() && !job.node_of.failed();
}

// Gathers the records of all ranks and fills the job. Returns false if a call of the host fails or
// this rank has no memory, so the result may differ between ranks.
bool gather_records(Job& job, int rank, int size, bool first_tells) {
  const Constants& c = host().constants;
  NodeRecord node;
  RankRecord own;
  tell(rank, &node, &own);
  const topo::RecordExchange exchange{{rank, size, nullptr, allgather}, told_by};
  bool fine = job.nodes.gather(exchange, node);
  fine = job.ranks.gather(exchange, own) && fine;
  combine(job);
  fine = number_nodes(job, size) && fine;
  if (!first_tells) return fine;
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

bool Job::place(topo::Placement* placement, const int* members, int count) const {
  return topo::place(placement, localities(*this), known, members, count);
}

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

bool job_has_to_tell() { return g_rules != nullptr || g_sources != nullptr; }

void job_begin(int rank, int size, bool first_tells) {
  if (g_sources == nullptr) g_sources = make<topo::Sources>();
  Job* made = make<Job>();
  if (g_sources == nullptr || made == nullptr) std::abort();  // as in topo::Records
  const bool fine = gather_records(*made, rank, size, first_tells);
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
