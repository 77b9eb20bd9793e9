// SPDX-License-Identifier: BSD-3-Clause
// The option table, and everything that follows from it alone. A new option is a name in enum
// Option and a row here. STRETTO_TEST_UPDATE=1 and the unit test OptionsDocument then renew
// docs/options.md.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/ascii.hpp"
#include "base/options.hpp"
#include "base/tuning.hpp"
#include "base/units.hpp"

namespace stretto {
namespace {

constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kMi = kKi * 1024;
constexpr std::int64_t kGi = kMi * 1024;
constexpr std::int64_t kOverlapOff = 0, kOverlapOn = 1, kOverlapAuto = 2;  // in the order of the choices

consteval OptionRow row(Option id, OptionKind kind, const char* name, std::int64_t fallback, const char* help) {
  OptionRow made{id, kind, false, {}, fallback, 0, 0, 1, "", help};
  for (int i = 0; name[i]; ++i) made.name[i] = name[i];
  return made;
}
consteval OptionRow choice(Option id, const char* name, const char* choices, std::int64_t fallback, const char* help) {
  OptionRow made = row(id, OptionKind::choice, name, fallback, help);
  made.choices = choices;
  return made;
}
consteval OptionRow number(Option id, OptionKind kind, const char* name, std::int64_t fallback, std::int64_t least,
                           std::int64_t most, std::int64_t multiple, const char* help) {
  OptionRow made = row(id, kind, name, fallback, help);
  made.least = least;
  made.most = most;
  made.multiple = multiple;
  return made;
}
consteval OptionRow collective(int op) {
  OptionRow made =
      choice(static_cast<Option>(static_cast<int>(Option::first_collective) + op), "STRETTO_", "auto|mpi|schedule", 0,
             "who serves this collective. auto: Stretto where it is faster. mpi: always the MPI. schedule: Stretto by "
             "messages over the levels of the hierarchy, also within a node");
  int at = 8;
  for (const char* c = kCollectiveNames[op]; *c; ++c)
    made.name[at++] = *c == '_' ? *c : static_cast<char>(*c - 'a' + 'A');
  return made;
}

consteval OptionRow with_choices(OptionRow made, const char* choices) {
  made.choices = choices;
  return made;
}
consteval OptionRow with_former(OptionRow made, const char* former) {
  made.former = former;
  return made;
}
consteval OptionRow environment_only(OptionRow made) {
  made.environment_only = true;
  return made;
}

// The first row, and those that follow the collectives'.
constexpr OptionRow kSwitch =
    row(Option::stretto, OptionKind::flag, "STRETTO", 1, "off: Stretto passes every call to the MPI, untouched");
constexpr OptionRow kRows[] = {
    number(Option::slots, OptionKind::integer, "STRETTO_SLOTS", 0, 0, 64, 1,
           "payload slots of a lane. With more slots a sender can run further ahead of its slowest reader. "
           "0: as many as twice the processor's L2 cache holds, at most 2 MiB"),
    number(Option::slot_bytes, OptionKind::size, "STRETTO_SLOT_BYTES", 32 * kKi, 4 * kKi, 4 * kMi, 64,
           "bytes of a payload slot. No fragment of a pipelined message is longer"),
    number(Option::fragment_bytes, OptionKind::size, "STRETTO_FRAGMENT_BYTES", 0, 0, 4 * kMi, 64,
           "bytes of the fragments of a pipelined message. 0: Stretto chooses by the message's length, the "
           "collective and the processor"),
    number(Option::segment_bytes, OptionKind::size, "STRETTO_SEGMENT_BYTES", 256 * kMi, 16 * kMi, 64 * kGi, 4096,
           "address space of a process's shared segment. The process takes memory as it uses it, and peers map the "
           "part that is in use. The segment is shorter where the address space is limited (ulimit -v)"),
    choice(Option::single_copy, "STRETTO_SINGLE_COPY", "auto|off|always", 0,
           "whether readers copy long messages straight out of the sender's memory. auto: where it is "
           "faster. always: all messages that do not fit into records. off: never"),
    choice(Option::streaming, "STRETTO_STREAMING", "auto|off|always", 0,
           "whether messages are copied past the caches, by non-temporal stores. auto: on processors where it was "
           "measured "
           "to be faster (AMD). Senders then do so for readers whose caches are far. Readers do so for messages that "
           "fill a "
           "rank's share of the L3 cache, and from 64 KiB on where ranks share processors. always: all messages. off: "
           "none"),
    choice(Option::wait, "STRETTO_WAIT", "auto|spin|yield|nap", 0,
           "how a rank waits. auto: spin if every rank of the node has a processor, otherwise yield. spin: the rank "
           "keeps its processor at first. yield: it soon lets other processes run. nap: it soon sleeps"),
    choice(Option::kind, "STRETTO_KIND", "auto|on|off", 0,
           "whether Stretto waits in the MPI's place in MPI_Recv, MPI_Send, MPI_Wait, MPI_Probe and their like: "
           "between two tests it gives the processor away. auto: where the ranks of the node have fewer processors, "
           "in functions in which the MPI keeps the processor. Each rank decides alone"),
    with_choices(
        number(
            Option::tiers, OptionKind::word_or_integer, "STRETTO_TIERS", kTiersAuto, kTiersOff, 1 << 30, 1,
            "from how many ranks of one node on a communicator has tiers and rails: groups of the ranks that share "
            "an L3 cache or a socket. Reductions, Barrier and Bcasts then go from group to group. auto: from 9 ranks "
            "on, if each has a processor. off: no tiers. Off on one rank is off on all, else the highest number "
            "counts"),
        "off|auto"),
    with_choices(
        number(
            Option::agree, OptionKind::word_or_integer, "STRETTO_AGREE", kAgreeAuto, kAgreeFirst, 256, 1,
            "when the members of a communicator agree on what serves it. Until then the MPI serves their calls. first: "
            "before the first collective, in which every rank then waits for all others. A number: after so many "
            "collectives "
            "in which every rank waits for all others anyway (Barrier, Allreduce, Allgather, Alltoall, "
            "Reduce_scatter), or "
            "after 257 of any kind. auto: after 1 of them on MPI_COMM_WORLD and 4 on other communicators, but as first "
            "with "
            "STRETTO_CHECK=2 or 3. If ranks differ, first counts, then auto, then the least number"),
        "first|auto"),
    number(Option::watchdog, OptionKind::integer, "STRETTO_WATCHDOG", 0, 0, 86'400, 1,
           "seconds after which Stretto explains a call that has not ended: which ranks wait, which are "
           "missing, and what these did last. 0: never"),
    number(Option::timeout, OptionKind::integer, "STRETTO_TIMEOUT", 0, 0, 86'400, 1,
           "seconds after which a collective that has not ended ends the job: the process that waits aborts. After "
           "half of them the watchdog explains the call, if STRETTO_WATCHDOG says nothing else. 0: never"),
    number(Option::check, OptionKind::integer, "STRETTO_CHECK", 1, 0, 3, 1,
           "how Stretto finds ranks that contradict each other. 0: not at all. 1: where it costs nothing. Ranks that "
           "wait or read then find a wrong collective, root, operation, datatype or count, and ranks that are gone. "
           "2: all ranks also compare their calls before they begin, and the datatypes of every message. 3: Stretto "
           "also runs the MPI's own collective and compares the results"),
    with_choices(
        row(Option::hierarchy, OptionKind::text, "STRETTO_HIERARCHY", 0,
            "the levels whose groups schedules use. auto: all levels that split something. Names: only these levels. "
            "-name: "
            "not this level. name:2: each of its domains in two parts. ?8: groups of at most 8 ranks. none: no groups"),
        "auto, none, or levels: core, l2, l3, numa, socket, node, leaf, switch2, ..."),
    row(Option::topology, OptionKind::path, "STRETTO_TOPOLOGY", 0,
        "a file that says to which switches the nodes are connected: lines `node switch [switch ...]`, or "
        "Slurm's topology.conf"),
    row(Option::placement, OptionKind::path, "STRETTO_PLACEMENT", 0,
        "a file that says where the ranks are. Stretto then does not find it out itself. Lines are `ranks: "
        "level=number ...`, or `all: node:2 socket:2 core:4`"),
    row(Option::rules, OptionKind::path, "STRETTO_RULES", 0,
        "a file of rules, which `stretto tune` writes. They say what serves a call, by its ranks, nodes and length. "
        "off: no rules. If it is not set: openmpi.rules or mpich.rules in ~/.config/stretto, if that exists"),
    with_former(
        choice(
            Option::tcp, "STRETTO_TCP", "auto|off|always", 0,
            "whether short messages between nodes go by TCP connections of Stretto or by the MPI's messages. auto: by "
            "connections on communicators that are used often, where they are measured to be faster. always: by "
            "connections from the first call on. off: by the MPI's messages. Off on one rank is off on all. "
            "STRETTO_SOCKETS is the same"),
        "STRETTO_SOCKETS"),
    with_choices(
        number(
            Option::overlap, OptionKind::word_or_integer, "STRETTO_OVERLAP", 0, 0, std::int64_t{1} << 40, 1,
            "whether collectives between nodes (Bcast, and Gather, Scatter, Allgather and Alltoall with their v forms) "
            "may "
            "return before their data are there. The buffers are guarded, and who touches data that are not there yet "
            "waits for them. on: calls in which a rank receives 256 KiB or more, until the ranks measure that the "
            "program "
            "gets slower by it. auto: the same, once they measure that it gets faster. A number: all calls from so "
            "many "
            "bytes on, whatever that costs. Off on one rank is off on all, and auto is auto on all"),
        "off|on|auto"),
    choice(Option::overlap_guard, "STRETTO_OVERLAP_GUARD", "auto|user|segv", 0,
           "how buffers of calls that have returned early are guarded. auto: by kernel faults where the "
           "system grants them, otherwise as user. user: by faults of this process, and by catching its "
           "system calls, which needs no privilege. segv: by SIGSEGV, and by catching system calls; it "
           "needs no userfaultfd. user and segv serve programs with one thread"),
    with_choices(
        row(Option::fabric, OptionKind::text, "STRETTO_FABRIC", 0,
            "by which network long messages of Stretto's own connections between nodes go (STRETTO_OVERLAP and calls "
            "with requests). auto: by libfabric, if it is installed and a card for it is here, such as InfiniBand, "
            "Slingshot or EFA. off: by TCP. A name: by this provider of libfabric, where there is one. Ranks may "
            "differ"),
        "auto, off, or a provider of libfabric: verbs, cxi, efa, opx, tcp, ..."),
    choice(Option::reproducible, "STRETTO_REPRODUCIBLE", "off|mpi|rank", 0,
           "the last digits of sums and products of floating-point numbers, and the results of user-defined "
           "operations. off: they are the same in every run on the same placement. mpi: they are the MPI's own, "
           "because the MPI serves these calls. rank: Stretto combines from left to right in rank order, so they are "
           "the same on any placement. Between nodes this takes time. If ranks differ, rank counts, then mpi"),
    choice(Option::nonblocking, "STRETTO_NONBLOCKING", "off|auto|on", 1,
           "whether Stretto serves nonblocking and persistent collectives (MPI_Ibcast, MPI_Bcast_init and the like). "
           "auto: "
           "where it was measured to be faster: beside MPICH, on one node, on communicators that make such calls. on: "
           "where "
           "it can. off: the MPI serves them. Off on one rank is off on all, else auto on one rank is auto on all"),
    with_choices(row(Option::stats, OptionKind::output, "STRETTO_STATS", 0,
                     "statistics at MPI_Finalize, or of a job that was stopped, on standard error or in a file. "
                     "In the name of FILE %u is the user, %h the host, %d the date, %t the time, %j the "
                     "batch system's job and %s its step, %p the process of rank 0. Its folders are made"),
                 "off|text|json"),
    row(Option::record, OptionKind::path, "STRETTO_RECORD", 0,
        "a file for the recording of each rank's calls; the rank's number is added to its name. In the name %u is the "
        "user, %h the host, %d the date, %t the time, %j the batch system's job, %s its step. Its folders are made"),
    number(Option::record_bound, OptionKind::integer, "STRETTO_RECORD_BOUND", 1, 0, 50, 1,
           "how far times of a recording may be off, in per cent of the last 512. 0: each time is kept"),
    row(Option::explain, OptionKind::flag, "STRETTO_EXPLAIN", 0,
        "rank 0 of each communicator says what serves it. Between nodes it also says how each "
        "collective goes at its first use, and why"),
    choice(Option::log, "STRETTO_LOG", "error|warn|info|debug", 1, "what Stretto writes to standard error"),
    row(Option::pmix, OptionKind::flag, "STRETTO_PMIX", 1,
        "on: libstretto-pmix.so keeps what PMIx_Get has brought and shares it on the node. off: it "
        "passes every call on"),
    environment_only(row(Option::config, OptionKind::path, "STRETTO_CONFIG", 0,
                         "the settings file that Stretto reads in place of stretto.toml in the working directory")),
};

consteval auto make_table() {
  std::array<OptionRow, kOptions> table{kSwitch};
  for (int op = 0; op < kCollectives; ++op) table[1 + op] = collective(op);
  std::copy(std::begin(kRows), std::end(kRows), table.begin() + 1 + kCollectives);
  return table;
}

constexpr std::array<OptionRow, kOptions> kTable = make_table();

consteval bool rows_follow_the_enum() {
  for (int i = 0; i < kOptions; ++i) {
    if (static_cast<int>(kTable[i].id) != i || kTable[i].help == nullptr) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

// Copies the index-th choice of "a|b|c".
void copy_choice(const char* choices, std::int64_t index, char* text, std::size_t capacity) {
  for (; index > 0; --index) choices = std::strchr(choices, '|') + 1;
  std::snprintf(text, capacity, "%.*s", static_cast<int>(std::strcspn(choices, "|")), choices);
}

void spell(const OptionRow& row, std::int64_t value, const char* path, char* text, std::size_t capacity) {
  switch (row.kind) {
    case OptionKind::flag: std::snprintf(text, capacity, "%s", value ? "on" : "off"); break;
    case OptionKind::integer: std::snprintf(text, capacity, "%lld", static_cast<long long>(value)); break;
    case OptionKind::word_or_integer:
      if (value < row.least + option_words(row))
        copy_choice(row.choices, value - row.least, text, capacity);
      else
        std::snprintf(text, capacity, "%lld", static_cast<long long>(value));
      break;
    case OptionKind::size:
      std::snprintf(text, capacity, "%s", format_size(static_cast<std::uint64_t>(value)).text);
      break;
    case OptionKind::choice: copy_choice(row.choices, value, text, capacity); break;
    case OptionKind::output: {
      char format[16];
      copy_choice(row.choices, value, format, sizeof format);
      std::snprintf(text, capacity, "%s%s%s", format, *path ? ":" : "", path);
      break;
    }
    case OptionKind::path:
    case OptionKind::text: std::snprintf(text, capacity, "%s", path); break;
  }
}

void spell_origin(const Options& options, Option option, char* text, std::size_t capacity) {
  const Options::Origin& origin = options.origin[static_cast<int>(option)];
  switch (origin.from) {
    case Options::From::fallback: std::snprintf(text, capacity, "default"); break;
    case Options::From::environment: std::snprintf(text, capacity, "environment"); break;
    case Options::From::file: std::snprintf(text, capacity, "%s:%u", options.config_path, origin.line); break;
  }
}

}  // namespace

std::int64_t option_words(const OptionRow& row) {
  return 1 + std::count(row.choices, row.choices + std::strlen(row.choices), '|');
}

const OptionRow& option_row(Option option) { return kTable[static_cast<int>(option)]; }

Options::Options()
    : stats_path{},
      config_path{},
      topology_path{},
      placement_path{},
      rules_path{},
      record_path{},
      hierarchy{},
      fabric{} {
  for (int i = 0; i < kOptions; ++i) value[i] = kTable[i].fallback;
}

namespace {

template <class Holds>
std::uint32_t collectives_whose(const Options& options, Holds holds) {
  std::uint32_t set = 0;
  for (int op = 0; op < kCollectives; ++op) {
    const auto choice = static_cast<ServeChoice>(options.value[static_cast<int>(Option::first_collective) + op]);
    if (holds(choice)) set |= std::uint32_t{1} << op;
  }
  return set;
}

}  // namespace

int Options::tiers_from_ranks() const {
  const std::int64_t chosen = get(Option::tiers);
  if (chosen == kTiersAuto) return kTuning.tiers_from_ranks;
  return chosen == kTiersOff ? std::numeric_limits<int>::max() : static_cast<int>(chosen);
}

std::uint64_t Options::overlap_bytes() const {
  constexpr std::int64_t kLeast = 4096;
  const std::int64_t chosen = get(Option::overlap);
  if (chosen == kOverlapOff) return 0;
  if (chosen == kOverlapOn || chosen == kOverlapAuto) return kTuning.overlap_bytes;
  return static_cast<std::uint64_t>(std::max(chosen, kLeast));
}

bool Options::overlap_measures() const { return get(Option::overlap) <= kOverlapAuto; }
bool Options::overlap_tries() const { return get(Option::overlap) == kOverlapAuto; }

const char* Options::fabric_provider() const {
  if (strcasecmp(fabric, "off") == 0) return nullptr;
  return strcasecmp(fabric, "auto") == 0 ? "" : fabric;
}

std::uint32_t Options::wanted() const {
  return collectives_whose(*this, [](ServeChoice choice) { return choice != ServeChoice::mpi; });
}

std::uint32_t Options::scheduled() const {
  return collectives_whose(*this, [](ServeChoice choice) { return choice == ServeChoice::schedule; });
}

char* Options::text_place(Option option) {
  switch (option) {
    case Option::stats: return stats_path;
    case Option::config: return config_path;
    case Option::topology: return topology_path;
    case Option::placement: return placement_path;
    case Option::rules: return rules_path;
    case Option::record: return record_path;
    case Option::hierarchy: return hierarchy;
    case Option::fabric: return fabric;
    default: return nullptr;
  }
}

const char* Options::text(Option option) const {
  const char* const place = const_cast<Options*>(this)->text_place(option);
  return place ? place : "";
}

void option_key(const OptionRow& row, char* text, std::size_t capacity) { option_key(row.name, text, capacity); }

void option_key(const char* name, char* text, std::size_t capacity) {
  constexpr std::size_t kPrefix = sizeof "STRETTO_" - 1;
  const char* from = std::strlen(name) < kPrefix ? name : name + kPrefix;
  std::size_t at = 0;
  for (; from[at] && at + 1 < capacity; ++at) {
    text[at] = lower(from[at]);
  }
  text[at] = 0;
}

void option_allowed(const OptionRow& row, char* text, std::size_t capacity) {
  switch (row.kind) {
    case OptionKind::flag: std::snprintf(text, capacity, "on, off"); break;
    case OptionKind::integer:
      std::snprintf(text, capacity, "%lld to %lld", static_cast<long long>(row.least),
                    static_cast<long long>(row.most));
      break;
    case OptionKind::size:
      std::snprintf(text, capacity, "%s to %s, a multiple of %lld",
                    format_size(static_cast<std::uint64_t>(row.least)).text,
                    format_size(static_cast<std::uint64_t>(row.most)).text, static_cast<long long>(row.multiple));
      break;
    case OptionKind::word_or_integer:
    case OptionKind::choice: {
      std::size_t at = 0;
      for (const char* c = row.choices; *c && at + 3 < capacity; ++c) {
        if (*c != '|')
          text[at++] = *c;
        else
          text[at++] = ',', text[at++] = ' ';
      }
      text[at] = 0;
      if (row.kind == OptionKind::choice) break;
      std::snprintf(text + at, capacity - at, ", or %lld to %lld",
                    static_cast<long long>(row.least + option_words(row)), static_cast<long long>(row.most));
      break;
    }
    case OptionKind::output:
      std::snprintf(text, capacity,
                    "off, text, json, text:FILE, json:FILE, or a FILE with a / in its name (JSON if it ends in .json)");
      break;
    case OptionKind::path: std::snprintf(text, capacity, "a path of less than %zu bytes", kOptionPathBytes); break;
    case OptionKind::text: std::snprintf(text, capacity, "%s", row.choices); break;
  }
}

void option_spell(const Options& options, Option option, char* text, std::size_t capacity) {
  spell(option_row(option), options.get(option), options.text(option), text, capacity);
}

void options_describe(const Options& options, void (*each)(void*, const OptionDescription&), void* context) {
  for (const OptionRow& row : kTable) {
    char key[sizeof row.name];
    char value[kOptionPathBytes + 24];
    char fallback[64];
    char allowed[160];
    char origin[kOptionPathBytes + 24];
    option_key(row, key, sizeof key);
    option_spell(options, row.id, value, sizeof value);
    spell(row, row.fallback, "", fallback, sizeof fallback);
    option_allowed(row, allowed, sizeof allowed);
    spell_origin(options, row.id, origin, sizeof origin);
    each(context, {row.name, row.environment_only ? "" : key, value, fallback, allowed, origin, row.help});
  }
}

}  // namespace stretto
