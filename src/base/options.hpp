// SPDX-License-Identifier: BSD-3-Clause
// What a user can set. One table (options_table.cpp) names every option, its kind, its range and
// its help line. The documentation, the checks and the messages come from that table.
//
// An option is an environment variable (STRETTO_SLOTS=16) or a line of stretto.toml (slots = 16).
// The environment wins over the file, and the file over the default. The file is the one that
// STRETTO_CONFIG names, or stretto.toml in the working directory. An empty variable counts as not
// set. An unknown name is a warning that suggests a similar name. A bad value is an error that
// names the option, the value, its origin and what is allowed. The option then keeps its default.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/collective.hpp"
#include "base/log.hpp"
#include "base/status.hpp"

namespace stretto {

enum class Option : std::uint8_t {
  stretto,
  first_collective,  // one for each Collective, in that order
  last_collective = first_collective + kCollectives - 1,
  slots,
  slot_bytes,
  fragment_bytes,
  segment_bytes,
  single_copy,
  streaming,
  wait,
  kind,
  tiers,
  agree,
  watchdog,
  timeout,
  check,
  hierarchy,
  topology,
  placement,
  rules,
  tcp,
  overlap,
  overlap_guard,
  fabric,
  reproducible,
  nonblocking,
  stats,
  record,
  record_bound,
  explain,
  log,
  pmix,
  config,
  count_
};
inline constexpr int kOptions = static_cast<int>(Option::count_);

enum class OptionKind : std::uint8_t {
  flag,  // on, off
  integer,
  word_or_integer,  // one of `choices`, which count from `least` on; or an integer beyond them
  size,             // bytes, with K, M, G
  choice,
  output,  // off, text, json, text:FILE, json:FILE, or a path
  path,
  text,  // any text: the part that reads it judges it
};

struct OptionRow {
  Option id;
  OptionKind kind;
  bool environment_only;     // not allowed in stretto.toml
  char name[32];             // STRETTO_SLOT_BYTES; slot_bytes in the file
  std::int64_t fallback;     // the default: a number, or the index of a choice
  std::int64_t least, most;  // of integer, word_or_integer and size
  std::int64_t multiple;     // of size
  const char* choices;       // choice, word_or_integer and output: "auto|mpi"; text: what is allowed, in words
  const char* help;
  const char* former = nullptr;  // an earlier name, which still works; it counts where `name` is not set
};
const OptionRow& option_row(Option option);

inline constexpr std::size_t kOptionPathBytes = 1024;
inline constexpr std::size_t kOptionTextBytes = 256;

enum class StatsFormat : std::uint8_t { off, text, json };  // in the order of STRETTO_STATS's choices
enum class WaitChoice : std::uint8_t { automatic, spin, yield, nap };
enum class KindChoice : std::uint8_t { automatic, on, off };
enum class ServeChoice : std::uint8_t { automatic, mpi, schedule };  // of each collective
enum class SingleCopyChoice : std::uint8_t { automatic, off, always };
enum class StreamingChoice : std::uint8_t { automatic, off, always };
// STRETTO_TIERS: larger values are a number of ranks.
enum TiersChoice : std::int8_t { kTiersOff = -1, kTiersAuto = 0 };
// STRETTO_AGREE: when the members of a communicator agree on what serves it. Larger values are a
// number of calls.
enum AgreeChoice : std::int8_t { kAgreeFirst = -1, kAgreeAuto = 0 };
enum class TcpChoice : std::uint8_t { automatic, off, always };
enum class OverlapGuardChoice : std::uint8_t { automatic, user, segv };
enum class ReproducibleChoice : std::uint8_t { off, mpi, rank };     // the strictest last
enum class NonblockingChoice : std::uint8_t { off, automatic, on };  // of all ranks the first counts

struct Options {
  enum class From : std::uint8_t { fallback, environment, file };
  struct Origin {
    From from = From::fallback;
    unsigned line = 0;  // of the file
  };

  std::int64_t value[kOptions];
  Origin origin[kOptions];
  char stats_path[kOptionPathBytes];   // "": standard error
  char config_path[kOptionPathBytes];  // the file that was read, "" if none
  char topology_path[kOptionPathBytes];
  char placement_path[kOptionPathBytes];
  char rules_path[kOptionPathBytes];   // "": where `stretto tune` puts the rules; "off": none
  char record_path[kOptionPathBytes];  // "": no recording
  char hierarchy[kOptionTextBytes];    // "": auto
  char fabric[kOptionTextBytes];       // "": auto

  Options();  // the defaults

  [[nodiscard]] std::int64_t get(Option option) const { return value[static_cast<int>(option)]; }
  [[nodiscard]] bool enabled() const { return get(Option::stretto) != 0; }
  // The collectives that are not left to the MPI, as a bit set by Collective.
  [[nodiscard]] std::uint32_t wanted() const;
  // The collectives that go by schedules wherever their ranks are, as a bit set.
  [[nodiscard]] std::uint32_t scheduled() const;
  [[nodiscard]] unsigned slots() const { return static_cast<unsigned>(get(Option::slots)); }
  [[nodiscard]] std::size_t slot_bytes() const { return static_cast<std::size_t>(get(Option::slot_bytes)); }
  [[nodiscard]] std::size_t fragment_bytes() const { return static_cast<std::size_t>(get(Option::fragment_bytes)); }
  [[nodiscard]] std::size_t segment_bytes() const { return static_cast<std::size_t>(get(Option::segment_bytes)); }
  [[nodiscard]] SingleCopyChoice single_copy() const { return static_cast<SingleCopyChoice>(get(Option::single_copy)); }
  [[nodiscard]] StreamingChoice streaming() const { return static_cast<StreamingChoice>(get(Option::streaming)); }
  [[nodiscard]] TcpChoice tcp() const { return static_cast<TcpChoice>(get(Option::tcp)); }
  // STRETTO_OVERLAP: from how many bytes of a call on; 0: off.
  [[nodiscard]] std::uint64_t overlap_bytes() const;
  [[nodiscard]] bool overlap_tries() const;  // STRETTO_OVERLAP=auto
  // Whether connections that are slower than the MPI are not used: not if the length is given.
  [[nodiscard]] bool overlap_measures() const;
  [[nodiscard]] OverlapGuardChoice overlap_guard() const {
    return static_cast<OverlapGuardChoice>(get(Option::overlap_guard));
  }
  // STRETTO_FABRIC: null: off; "": auto.
  [[nodiscard]] const char* fabric_provider() const;
  [[nodiscard]] ReproducibleChoice reproducible() const {
    return static_cast<ReproducibleChoice>(get(Option::reproducible));
  }
  [[nodiscard]] NonblockingChoice nonblocking() const {
    return static_cast<NonblockingChoice>(get(Option::nonblocking));
  }
  [[nodiscard]] WaitChoice wait() const { return static_cast<WaitChoice>(get(Option::wait)); }
  [[nodiscard]] KindChoice kind() const { return static_cast<KindChoice>(get(Option::kind)); }
  // From how many ranks of a node on a communicator has tiers.
  [[nodiscard]] int tiers_from_ranks() const;
  [[nodiscard]] int agree() const { return static_cast<int>(get(Option::agree)); }
  [[nodiscard]] unsigned watchdog_seconds() const { return static_cast<unsigned>(get(Option::watchdog)); }
  [[nodiscard]] unsigned timeout_seconds() const { return static_cast<unsigned>(get(Option::timeout)); }
  [[nodiscard]] int check() const { return static_cast<int>(get(Option::check)); }
  [[nodiscard]] StatsFormat stats() const { return static_cast<StatsFormat>(get(Option::stats)); }
  [[nodiscard]] int record_bound() const { return static_cast<int>(get(Option::record_bound)); }  // per cent
  [[nodiscard]] bool explain() const { return get(Option::explain) != 0; }
  [[nodiscard]] bool pmix() const { return get(Option::pmix) != 0; }
  [[nodiscard]] LogLevel log() const { return static_cast<LogLevel>(get(Option::log)); }
  // The text or path of an option that has one, otherwise "".
  [[nodiscard]] const char* text(Option option) const;
  char* text_place(Option option);  // null if the option has no text
};

// Remarks about the settings that were read. options_log() prints them.
struct OptionsReport {
  static constexpr int kMessages = 12;
  struct Message {
    LogLevel level;
    char text[400];
  };
  Message messages[kMessages];
  int count = 0;
  int left_out = 0;  // messages that found no place
  int errors = 0;    // among all messages

  [[gnu::format(printf, 3, 4)]] void add(LogLevel level, const char* format, ...);
};

// Reads the settings. Returns invalid if one of them is wrong; the others hold. With STRETTO=off in
// the environment nothing is an error: Stretto must not stop a user who wants to know whether
// Stretto is at fault. Uses the heap only while it reads the file.
Status options_load(Options& options, OptionsReport& report);
// The same with the caller's environment ("NAME=value", null-terminated) and working directory.
Status options_load_from(Options& options, OptionsReport& report, const char* const* environment,
                         const char* directory);
void options_log(const OptionsReport& report);

// The description of one option, for `stretto info`.
struct OptionDescription {
  const char* name;  // STRETTO_SLOT_BYTES
  const char* key;   // slot_bytes; "" if the option is not allowed in the file
  const char* value;
  const char* default_value;
  const char* allowed;  // "4K to 4M, a multiple of 64"
  const char* origin;   // "default", "environment", "/home/me/stretto.toml, line 3"
  const char* help;
};
void options_describe(const Options& options, void (*each)(void* context, const OptionDescription& option),
                      void* context);

// How many words `row.choices` has.
std::int64_t option_words(const OptionRow& row);
// option_allowed() writes what is allowed for an option ("2 to 64"). option_spell() writes how a
// value is spelled. Both cut the text to `capacity`.
void option_allowed(const OptionRow& row, char* text, std::size_t capacity);
void option_spell(const Options& options, Option option, char* text, std::size_t capacity);
// The option's name in stretto.toml: STRETTO_SLOTS becomes slots, STRETTO becomes stretto. `name`
// may also be a former one.
void option_key(const OptionRow& row, char* text, std::size_t capacity);
void option_key(const char* name, char* text, std::size_t capacity);

}  // namespace stretto
