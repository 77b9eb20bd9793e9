// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/stats/keeper.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "base/output_path.hpp"
#include "mpi/job/world.hpp"
#include "mpi/stats/stats_output.hpp"
#include "mpi/vendor/vendor.hpp"
#include "sys/sys.hpp"

extern char** environ;

namespace stretto::mpi {
namespace {

constexpr int kReadyMs = 10'000;
constexpr const char* kProgram = "stretto-keeper";

constinit char g_path[kOptionPathBytes] = "";
constinit bool g_path_known = false;

void find_path() {
  const char* const pattern = options().stats_path;
  if (!output_path(pattern, g_path, sizeof g_path)) {
    log_line(LogLevel::error, "STRETTO_STATS: %s names no file; docs/statistics.md says what may follow %%", pattern);
    g_path[0] = 0;
  }
  g_path_known = true;
}

// How another process finds what a rank keeps.
struct Place {
  std::uint64_t host, pids;  // the node, and the PID namespace there
  std::uint64_t started;
  int pid, descriptor;
};

Place own_place() {
  const int pid = sys::process_id();
  return {sys::host_id(), sys::pid_namespace(), sys::start_time(pid), pid, profile_descriptor()};
}

template <std::size_t n>
void copy_text(const StatsText& text, char (&to)[n]) {
  if (text.size() < n) std::memcpy(to, text.data(), text.size());
}

// What does not change, as text that goes into the report as it is.
void describe(observe::StatsPage& page) {
  page.rank = world().rank;
  page.ranks = world().size;
  std::snprintf(page.version, sizeof page.version, "%s", STRETTO_VERSION);
  std::snprintf(page.abi, sizeof page.abi, "%s", vendor::kAbi);
  char host[sys::kHostNameBytes];
  sys::host_name(host, sizeof host);
  std::snprintf(page.host, sizeof page.host, "%.*s", static_cast<int>(sizeof page.host - 1), host);
  StatsText run, place;
  json_run(run);
  json_place(place);
  copy_text(run, page.run);
  copy_text(place, page.place);
}

// The words of a command line, and variables, in memory that is freed with them.
class Words {
 public:
  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char* word = nullptr;
    if (vasprintf(&word, format, arguments) >= 0) (void)words_.push(word);
    va_end(arguments);
  }
  char* const* end() {
    (void)words_.push(nullptr);
    return words_.failed() ? nullptr : words_.data();
  }
  ~Words() {
    for (char* const word : words_) std::free(word);
  }
  Words() = default;
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;

 private:
  Array<char*> words_;
};

// The program lies beside this library.
bool program_beside_us(char (&path)[4096]) {
  Dl_info info = {};
  if (dladdr(kProgram, &info) == 0 || info.dli_fname == nullptr) return false;
  if (sys::real_path(info.dli_fname, path, sizeof path) != 0) return false;
  char* const name = std::strrchr(path, '/') + 1;
  if (static_cast<std::size_t>(path + sizeof path - name) <= std::strlen(kProgram)) return false;
  std::strcpy(name, kProgram);
  return true;
}

// Nothing of what is preloaded into ranks.
void add_environment(Words& variables) {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "LD_PRELOAD=", 11) != 0) variables.add("%s", *variable);
  }
}

void start(const Place* places) {
  const Place& mine = places[world().rank];
  char path[4096];
  if (!program_beside_us(path)) return;
  Words words, variables;
  words.add("%s", kProgram);
  words.add("%s", options().stats() == StatsFormat::json ? "json" : "text");
  words.add("%s", keeper_path());
  words.add("%x", static_cast<unsigned>(world().job));
  for (int r = 0; r < world().size; ++r) {
    const Place& its = places[r];
    if (its.host == mine.host && its.pids == mine.pids && its.descriptor >= 0)
      words.add("%d:%d:%llu", its.pid, its.descriptor, static_cast<unsigned long long>(its.started));
  }
  add_environment(variables);
  char* const* const line = words.end();
  char* const* const environment = variables.end();
  const int error =
      line != nullptr && environment != nullptr ? sys::program_start(path, line, environment, kReadyMs) : ENOMEM;
  if (error != 0)
    log_line(LogLevel::info, "STRETTO_STATS: %s does not start (%s): a job that is stopped leaves no statistics", path,
             std::strerror(error));
}

}  // namespace

const char* keeper_path() {
  if (!g_path_known) find_path();
  return g_path;
}

void keeper_begin() {
  const Constants& c = host().constants;
  if (world().rank == 0) find_path();
  host().Bcast(g_path, sizeof g_path, c.byte, 0, c.comm_world);
  g_path_known = true;
  if (observe::StatsPage* const page = profile_page()) describe(*page);
  const Place mine = own_place();
  Array<Place> places;
  if (!places.resize(static_cast<std::size_t>(world().size), Place{})) std::abort();  // the other ranks wait already
  host().Allgather(&mine, sizeof mine, c.byte, places.data(), sizeof mine, c.byte, c.comm_world);
  int first = 0;
  while (places[first].host != mine.host || places[first].pids != mine.pids) ++first;
  if (first == world().rank) start(places.data());
  // From here on, every rank's page is read whatever happens to it.
  host().Barrier(c.comm_world);
}

void keeper_end() {
  if (observe::StatsPage* const page = profile_page()) page->reported.store_release(1);
}

}  // namespace stretto::mpi
