// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/stats.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/log.hpp"
#include "base/units.hpp"
#include "mpi/communicator.hpp"
#include "mpi/lifecycle.hpp"
#include "mpi/overlap.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {
namespace {

// ---- Freed communicators ----

struct Summary {
  int size;
  // Why they were left to the host, null if they were not. Reasons are literals: pointers compare.
  const char* reason;
  engine::Refused refused;  // of the first communicator on which single copy was refused
  std::uint64_t communicators;
  Counters counters;
  Summary* next;
};
constinit Summary* g_freed = nullptr;  // one for each size and reason; the communicators' lock guards it

void add(Counters& sum, const Counters& more) {
  for (int c = 0; c < kCollectives; c++) {
    for (int p = 0; p < kPaths; p++) sum.of[c].calls[p] += more.of[c].calls[p];
    sum.of[c].bytes += more.of[c].bytes;
    sum.of[c].ns += more.of[c].ns;
  }
}

std::uint64_t calls_of(const Counter& counter) {
  std::uint64_t calls = 0;
  for (const std::uint64_t n : counter.calls) calls += n;
  return calls;
}

// ---- Text under construction ----

// It grows as needed. If there is no memory, further text is lost.
class Text {
 public:
  Text() = default;
  ~Text() { std::free(data_); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  [[nodiscard]] const char* data() const { return data_ != nullptr ? data_ : ""; }
  [[nodiscard]] std::size_t size() const { return size_; }

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    constexpr std::size_t kLongest = 768;
    if (!reserve(size_ + kLongest)) return;
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(data_ + size_, kLongest, format, arguments);
    va_end(arguments);
    if (length > 0)
      size_ += static_cast<std::size_t>(length) < kLongest ? static_cast<std::size_t>(length) : kLongest - 1;
  }

 private:
  bool reserve(std::size_t bytes) {
    if (bytes <= capacity_) return true;
    const std::size_t wanted = bytes < 4096 ? 4096 : 2 * bytes;
    auto* const grown = static_cast<char*>(std::realloc(data_, wanted));
    if (grown == nullptr) return false;
    data_ = grown;
    capacity_ = wanted;
    return true;
  }

  char* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

void write_out(const Text& text) {
  const char* const path = options().stats_path;
  std::FILE* const file = *path != 0 ? std::fopen(path, "w") : stderr;
  if (file == nullptr) {
    log_line(LogLevel::error, "STRETTO_STATS: cannot write %s", path);
    return;
  }
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file == stderr ? std::fflush(file) : std::fclose(file)) != 0 || !whole) {
    log_line(LogLevel::error, "STRETTO_STATS: writing %s failed", *path != 0 ? path : "to standard error");
  }
}

using ull = unsigned long long;
constexpr std::size_t kPiece = 500;  // of long text: Text::add cuts long arguments

// ---- JSON: every rank its own object ----

void json_counters(Text& out, const Counters& counters, const State* state) {
  out.add("\"collectives\":{");
  const char* comma = "";
  for (int c = 0; c < kCollectives; c++) {
    const Counter& counter = counters.of[c];
    if (calls_of(counter) == 0) continue;
    out.add("%s\"%s\":{\"calls\":{", comma, kCollectiveNames[c]);
    comma = ",";
    for (int p = 0; p < kPaths; p++) out.add("%s\"%s\":%llu", p != 0 ? "," : "", kPathNames[p], ull{counter.calls[p]});
    out.add("},\"bytes\":%llu,\"ns\":%llu", ull{counter.bytes}, ull{counter.ns});
    const char* const reason = state != nullptr ? decline_reason(*state, static_cast<Collective>(c)) : nullptr;
    if (reason != nullptr) out.add(",\"declined\":\"%s\"", reason);
    out.add("}");
  }
  out.add("}");
}

struct Listing {
  Text* out;
  const char* comma;
};

void json_refused(Text& out, const engine::Refused& refused) {
  if (refused.rank < 0) return;
  out.add("\"single_copy_refused\":{\"rank\":%d,\"error\":\"%s\",\"call\":%llu},", refused.rank, refused.error,
          ull{refused.call});
}

engine::Refused refused_on(const State& state) {
  return state.engine != nullptr ? engine::comm_refused(*state.engine) : engine::Refused{};
}

void json_communicator(void* context, const State& state) {
  auto* const listing = static_cast<Listing*>(context);
  listing->out->add("%s\n   {\"id\":%llu,\"size\":%d,\"rank\":%d,\"served\":%s,", listing->comma, ull{state.serial},
                    state.size, state.rank, state.engine != nullptr ? "true" : "false");
  listing->comma = ",";
  json_refused(*listing->out, refused_on(state));
  json_counters(*listing->out, state.counters, &state);
  listing->out->add("}");
}

void json_bins(Text& out, const overlap::Timeline& timeline, const char* name,
               std::uint64_t overlap::Timeline::Bin::* what) {
  out.add(",\"%s\":[", name);
  for (std::size_t i = 0; i < timeline.used(); ++i) out.add("%s%llu", i != 0 ? "," : "", ull{timeline.bin(i).*what});
  out.add("]");
}

// A text between quotes.
template <std::size_t n>
struct Quoted {
  char text[2 * n];
  explicit Quoted(const char (&plain)[n]) {
    std::size_t length = 0;
    for (const char* c = plain; *c != 0; ++c) {
      if (*c == '"' || *c == '\\') text[length++] = '\\';
      text[length++] = static_cast<unsigned char>(*c) < 0x20 ? '?' : *c;
    }
    text[length] = 0;
  }
};

void json_site(void* context, const overlap::Sites::Site& site) {
  auto* const listing = static_cast<Listing*>(context);
  listing->out->add("%s\n   {\"op\":\"%s\",\"at\":\"%s\"", listing->comma, site.key.name, Quoted(site.place).text);
  listing->out->add(
      ",\"bytes\":%llu,\"calls\":%llu,\"early\":%llu,\"in_call_ns\":%llu,\"late_ns\":%llu,"
      "\"waited_ns\":%llu,\"waits\":%llu,\"first_ns\":%llu,\n    \"timeline\":{\"bin_ns\":%llu",
      ull{site.key.bytes}, ull{site.counts.calls}, ull{site.counts.early}, ull{site.counts.in_call_ns},
      ull{site.counts.late_ns}, ull{site.counts.waited_ns}, ull{site.counts.waits}, ull{site.counts.first_ns},
      ull{site.timeline.bin_ns()});
  json_bins(*listing->out, site.timeline, "in_call_ns", &overlap::Timeline::Bin::in_call_ns);
  json_bins(*listing->out, site.timeline, "late_ns", &overlap::Timeline::Bin::late_ns);
  json_bins(*listing->out, site.timeline, "waited_ns", &overlap::Timeline::Bin::waited_ns);
  listing->out->add("}}");
  listing->comma = ",";
}

// Calls that may return early, if there were any.
void json_overlap(Text& out) {
  Text sites;
  Listing listing = {&sites, ""};
  overlap_each_site(json_site, &listing);
  if (sites.size() == 0) return;
  out.add(",\n  \"overlap\":[");
  for (std::size_t at = 0; at < sites.size(); at += kPiece)
    out.add("%.*s", static_cast<int>(std::min(kPiece, sites.size() - at)), sites.data() + at);
  out.add("]");
}

void json_rank(Text& out) {
  out.add("{\"rank\":%d,\"caller_lookups\":%llu,\n  \"communicators\":[", world().rank,
          ull{g_caller_lookups.load(std::memory_order_relaxed)});
  Listing listing = {&out, ""};
  communicators_each(json_communicator, &listing);
  out.add("],\n  \"freed\":[");
  const char* comma = "";
  for (const Summary* s = g_freed; s != nullptr; s = s->next) {
    out.add("%s\n   {\"size\":%d,\"communicators\":%llu,", comma, s->size, ull{s->communicators});
    if (s->reason != nullptr) out.add("\"declined\":\"%s\",", s->reason);
    comma = ",";
    json_refused(out, s->refused);
    json_counters(out, s->counters, nullptr);
    out.add("}");
  }
  out.add("]");
  json_overlap(out);
  out.add("}");
}

void json_head(Text& out, int ranks) {
  out.add("{\"schema\":\"stretto.stats/1\",\"stretto\":\"%s\",\"abi\":\"%s\",\"ranks\":%d,\"per_rank\":[\n ",
          STRETTO_VERSION, vendor::kAbi, ranks);
}

// Rank 0 gathers the objects of all ranks.
void json_gathered() {
  Text mine;
  json_rank(mine);
  const Constants& c = host().constants;
  const int size = world().size;
  const bool root = world().rank == 0;
  const int length = static_cast<int>(mine.size());
  auto* const lengths = static_cast<int*>(std::calloc(2 * static_cast<std::size_t>(size), sizeof(int)));
  if (lengths == nullptr) std::abort();  // a few bytes a rank, and the other ranks wait already
  host().Gather(&length, 1, c.int_, lengths, 1, c.int_, 0, c.comm_world);
  std::size_t total = 0;
  for (int r = 0; root && r < size; r++) {
    lengths[size + r] = static_cast<int>(total);
    total += static_cast<std::size_t>(lengths[r]);
  }
  auto* const all = static_cast<char*>(std::malloc(total + 1));
  if (all == nullptr) std::abort();
  host().Gatherv(mine.data(), length, c.byte, all, lengths, lengths + size, c.byte, 0, c.comm_world);
  if (root) {
    Text out;
    json_head(out, size);
    for (int r = 0; r < size; r++) {
      for (int at = 0; at < lengths[r]; at += static_cast<int>(kPiece))
        out.add("%.*s", std::min(static_cast<int>(kPiece), lengths[r] - at), all + lengths[size + r] + at);
      out.add("%s\n ", r + 1 < size ? "," : "");
    }
    out.add("]}\n");
    write_out(out);
  }
  std::free(all);
  std::free(lengths);
}

// ---- Text ----

void text_counters(Text& out, const Counters& counters, const State* state) {
  for (int c = 0; c < kCollectives; c++) {
    const Counter& counter = counters.of[c];
    if (calls_of(counter) == 0) continue;
    out.add("    %-12s", kCollectiveNames[c]);
    for (int p = 0; p < kPaths; p++) out.add(" %10llu", ull{counter.calls[p]});
    out.add(" %10s %10s", format_amount(counter.bytes).text, format_time(counter.ns).text);
    const char* const reason = state != nullptr ? decline_reason(*state, static_cast<Collective>(c)) : nullptr;
    if (reason != nullptr) out.add("  %s", reason);
    out.add("\n");
  }
}

void text_refused(Text& out, const engine::Refused& refused) {
  if (refused.rank < 0) return;
  out.add("    single copy was refused to rank %d: %s, ", refused.rank, refused.error);
  if (refused.call == 0) {
    out.add("from the start\n");
  } else {
    out.add("in call %llu\n", ull{refused.call});
  }
}

void text_communicator(void* context, const State& state) {
  std::uint64_t calls = 0;
  for (const Counter& counter : state.counters.of) calls += calls_of(counter);
  if (calls == 0) return;
  Text& out = *static_cast<Text*>(context);
  out.add("  communicator %llu, %d ranks\n", ull{state.serial}, state.size);
  text_refused(out, refused_on(state));
  text_counters(out, state.counters, &state);
}

void text_head(Text& out, const char* whose) {
  out.add("stretto statistics, %s\n    %-12s", whose, "collective");
  for (const char* path : kPathNames) out.add(" %10s", path);
  out.add(" %10s %10s\n", "bytes", "time");
}

void text_site(void* context, const overlap::Sites::Site& site) {
  const overlap::SiteCounts& counts = site.counts;
  const auto each = [](std::uint64_t ns, std::uint64_t calls) { return format_time(calls != 0 ? ns / calls : 0); };
  static_cast<Text*>(context)->add(
      "    %s of %s%s%s: %llu of %llu calls returned early, after %s on average; their data were there %s later, of "
      "which "
      "the program waited %s, from %s on in %llu calls\n",
      site.key.name, format_amount(site.key.bytes).text, site.place[0] != 0 ? " at " : "", site.place,
      ull{counts.early}, ull{counts.calls}, each(counts.in_call_ns, counts.calls).text,
      each(counts.late_ns, counts.early).text, each(counts.waited_ns, counts.early).text,
      each(counts.first_ns, counts.waits).text, ull{counts.waits});
}

void text_communicators(Text& out) {
  communicators_each(text_communicator, &out);
  for (const Summary* s = g_freed; s != nullptr; s = s->next) {
    out.add("  %llu freed communicators of %d ranks%s%s\n", ull{s->communicators}, s->size,
            s->reason != nullptr ? ": " : "", s->reason != nullptr ? s->reason : "");
    text_refused(out, s->refused);
    text_counters(out, s->counters, nullptr);
  }
  Text sites;
  overlap_each_site(text_site, &sites);
  if (sites.size() == 0) return;
  out.add("  calls that may return before their data are there, on this rank\n");
  for (std::size_t at = 0; at < sites.size(); at += kPiece)
    out.add("%.*s", static_cast<int>(std::min(kPiece, sites.size() - at)), sites.data() + at);
}

void sum_communicator(void* context, const State& state) { add(*static_cast<Counters*>(context), state.counters); }

Counters own_total() {
  Counters sum = {};
  communicators_each(sum_communicator, &sum);
  for (const Summary* s = g_freed; s != nullptr; s = s->next) add(sum, s->counters);
  return sum;
}

// Rank 0 shows the sums over all ranks, and its own communicators.
void text_gathered() {
  const Counters mine = own_total();
  const Constants& c = host().constants;
  const auto size = static_cast<std::size_t>(world().size);
  const bool root = world().rank == 0;
  auto* const all = static_cast<Counters*>(std::malloc(size * sizeof mine));
  if (all == nullptr) std::abort();  // the other ranks wait already
  host().Gather(&mine, sizeof mine, c.byte, all, sizeof mine, c.byte, 0, c.comm_world);
  if (root) {
    Counters sum = {};
    for (std::size_t r = 0; r < size; r++) add(sum, all[r]);
    Text out;
    text_head(out, "sums over all ranks, then rank 0 by communicator");
    text_counters(out, sum, nullptr);
    text_communicators(out);
    write_out(out);
  }
  std::free(all);
}

void alone() {
  Text out;
  if (options().stats() == StatsFormat::json) {
    json_head(out, 1);
    json_rank(out);
    out.add("]}\n");
  } else {
    text_head(out, "this process");
    text_communicators(out);
  }
  write_out(out);
}

}  // namespace

const char* decline_reason(const State& state, Collective collective) {
  if ((state.scheduled >> static_cast<int>(collective) & 1) != 0) return nullptr;
  if (state.engine == nullptr) return state.reason;
  return (state.served >> static_cast<int>(collective) & 1) != 0 ? nullptr : "left to the MPI by an option";
}

void stats_fold(const State& state) {
  Summary* s = g_freed;
  while (s != nullptr && (s->size != state.size || s->reason != state.reason)) s = s->next;
  if (s == nullptr) {
    s = static_cast<Summary*>(std::calloc(1, sizeof(Summary)));
    if (s == nullptr) return;
    s->size = state.size;
    s->refused = {};
    s->reason = state.reason;
    s->next = g_freed;
    g_freed = s;
  }
  s->communicators++;
  if (s->refused.rank < 0) s->refused = refused_on(state);
  add(s->counters, state.counters);
}

void stats_report(bool gather) {
  if (options().stats() == StatsFormat::off) return;
  if (!gather) return alone();
  if (options().stats() == StatsFormat::json) return json_gathered();
  text_gathered();
}

}  // namespace stretto::mpi
