// SPDX-License-Identifier: BSD-3-Clause
// What STRETTO_EXPLAIN and STRETTO_LOG say of a communicator.
#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/log.hpp"
#include "coll/shm/manifest.hpp"
#include "mpi/comm/comm_agreement.hpp"
#include "mpi/comm/schedules.hpp"
#include "mpi/job/world.hpp"
#include "mpi/state/neighborhood.hpp"
#include "select/shm_rules.hpp"

namespace stretto::mpi {
namespace {

// The names of a set of collectives.
struct Names {
  char text[400] = "";
  explicit Names(std::uint32_t set) {
    int at = 0;
    for (int op = 0; op < kCollectives; ++op) {
      if ((set >> op & 1) == 0) continue;
      at += std::snprintf(text + at, sizeof text - static_cast<std::size_t>(at), "%s%s", at == 0 ? "" : ", ",
                          kCollectiveNames[op]);
    }
  }
};

constexpr std::uint64_t kLongest = std::uint64_t{1} << 62;

// The first length that, by thresholds, goes by another algorithm than the length `from`. One that
// comes back above another does so at no less than twice its length.
std::uint64_t next_length(Collective collective, std::uint64_t from, const coll_shm::TeamTraits& members) {
  const coll_shm::Algorithm& first = coll_shm::algorithm_of(collective, from, members);
  const auto is_first = [&](std::uint64_t bytes) {
    return &coll_shm::algorithm_of(collective, bytes, members) == &first;
  };
  std::uint64_t below = from, next = from + 1;
  while (is_first(next)) {
    if (next == kLongest) return next;
    below = next;
    next = std::min(next * 3 / 2 + 1, kLongest);
  }
  while (next - below > 1) {
    const std::uint64_t middle = below + (next - below) / 2;
    (is_first(middle) ? below : next) = middle;
  }
  return next;
}

// "flat, from 4097 bytes on by slices": the algorithms of a collective over shared memory.
class Algorithms {
 public:
  Algorithms(const State& state, Collective collective) {
    const select::ShmRules& rules = engine::comm_rules(*state.engine);
    const coll_shm::TeamTraits members = engine::comm_members(*state.engine);
    for (std::uint64_t from = 0; from < kLongest;) {
      const select::ShmRules::Step* const step = rules.step(collective, from);
      const bool named = step != nullptr && step->algorithm != nullptr;
      add(from, named ? *step->algorithm : coll_shm::algorithm_of(collective, from, members), named ? step->line : 0);
      const std::uint64_t last = step != nullptr ? step->bytes.most : kLongest;
      const std::uint64_t next = named ? kLongest : next_length(collective, from, members);
      from = next <= last ? next : last + 1;
    }
  }
  // Whether lengths or rules decide.
  [[nodiscard]] bool tell() const { return tell_; }
  [[nodiscard]] const char* text() const { return text_; }

 private:
  void add(std::uint64_t from, const coll_shm::Algorithm& algorithm, unsigned line) {
    if (&algorithm == last_ && line == line_) return;
    if (from != 0) append(", from %llu bytes on by ", static_cast<unsigned long long>(from));
    append("%s", algorithm.name);
    if (line != 0) append(" (line %u of the rules)", line);
    tell_ = tell_ || from != 0 || line != 0;
    last_ = &algorithm;
    line_ = line;
  }
  [[gnu::format(printf, 2, 3)]] void append(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int more = std::vsnprintf(text_ + length_, sizeof text_ - length_, format, arguments);
    va_end(arguments);
    length_ = std::min(length_ + static_cast<std::size_t>(more), sizeof text_ - 1);
  }

  char text_[400] = "";
  std::size_t length_ = 0;
  const coll_shm::Algorithm* last_ = nullptr;
  unsigned line_ = 0;
  bool tell_ = false;
};

// Which algorithms serve collectives over shared memory, where lengths or rules decide.
void explain_algorithms(const State& state) {
  for (int op = 0; op < kCollectives; ++op) {
    if ((state.served >> op & 1) == 0) continue;
    const Algorithms algorithms(state, static_cast<Collective>(op));
    if (algorithms.tell())
      log_explain("communicator %llu of %d ranks, over shared memory: %s by %s",
                  static_cast<unsigned long long>(state.serial), state.size, kCollectiveNames[op], algorithms.text());
  }
}

void explain(const State& state) {
  if (state.rank != 0 || state.size == 1) return;
  const auto say = [&](const char* how, std::uint32_t set, const char* why) {
    if (set == 0) return;
    const auto serial = static_cast<unsigned long long>(state.serial);
    log_explain("communicator %llu of %d ranks, %s: %s%s%s", serial, state.size, how, Names(set).text,
                *why != 0 ? "; " : "", why);
  };
  say("over shared memory", state.served, "");
  explain_algorithms(state);
  const std::uint32_t ruled = state.schedules != nullptr ? schedules_scheduler(*state.schedules).selector().ruled() : 0;
  say("by schedule, or at some lengths by the MPI", state.scheduled & ~ruled, "");
  say("as rules say", state.scheduled & ruled, "");
  say("by the MPI", kNativeCollectives & ~(state.served | state.scheduled | unable_on(state)),
      state.reason != nullptr ? state.reason : "as options say");
}

}  // namespace

void report(const State& state) {
  if (options().explain()) explain(state);
  if (!log_enabled(LogLevel::info) || state.rank != 0) return;
  if (state.engine != nullptr || state.scheduled != 0) {
    log_line(LogLevel::info, "communicator %llu of %d ranks is served", static_cast<unsigned long long>(state.serial),
             state.size);
  } else {
    log_line(LogLevel::info, "communicator %llu of %d ranks is left to the MPI: %s (rank %d)",
             static_cast<unsigned long long>(state.serial), state.size, state.reason, state.reason_rank);
  }
}

}  // namespace stretto::mpi
