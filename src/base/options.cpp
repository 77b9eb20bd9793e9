// SPDX-License-Identifier: BSD-3-Clause
// Reads the settings: environment, then file, then defaults.
#include "base/options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/ascii.hpp"
#include "base/options_file.hpp"
#include "base/units.hpp"
#include "sys/sys.hpp"

extern char** environ;

namespace stretto {
namespace {

constexpr std::size_t kFileBytes = 64 * 1024;  // a larger file is not a settings file
constexpr const char* kDefaultFile = "stretto.toml";

// Names that others read: the fault-injecting build, the command line, the tests (STRETTO_TEST_*),
// and users of an environment module.
constexpr const char* kNamesOfOthers[] = {"STRETTO_FAULT", "STRETTO_MPI_VENVS", "STRETTO_PYTHON", "STRETTO_ROOT"};
constexpr const char* kTestPrefix = "STRETTO_TEST_";

bool known_to_others(const char* name, std::size_t length) {
  for (const char* other : kNamesOfOthers) {
    if (std::strlen(other) == length && std::memcmp(other, name, length) == 0) return true;
  }
  return std::strncmp(name, kTestPrefix, std::strlen(kTestPrefix)) == 0;
}

// ---- values ----

bool equal(const char* text, std::size_t length, const char* word) {
  return std::strlen(word) == length && strncasecmp(text, word, length) == 0;
}

const char* take_flag(const char* text, std::int64_t* value) {
  const std::size_t length = std::strlen(text);
  for (const char* word : {"on", "true", "yes", "1"}) {
    if (equal(text, length, word)) return *value = 1, nullptr;
  }
  for (const char* word : {"off", "false", "no", "0"}) {
    if (equal(text, length, word)) return *value = 0, nullptr;
  }
  return "not a switch";
}

const char* take_number(const OptionRow& row, const char* text, std::int64_t* value) {
  std::int64_t found = 0;
  if (row.kind == OptionKind::size) {
    std::uint64_t bytes = 0;
    if (!parse_size(text, std::strlen(text), &bytes)) return "not a size";
    found = static_cast<std::int64_t>(bytes);
  } else if (!parse_integer(text, std::strlen(text), &found)) {
    return "not a whole number";
  }
  if (found < row.least) return "too small";
  if (found > row.most) return "too large";
  if (found % row.multiple != 0) return "not a multiple";
  *value = found;
  return nullptr;
}

const char* take_choice(const char* choices, const char* text, std::size_t length, std::int64_t* value) {
  std::int64_t index = 0;
  for (const char* at = choices;; ++at, ++index) {
    const std::size_t word = std::strcspn(at, "|");
    if (word == length && strncasecmp(at, text, length) == 0) return *value = index, nullptr;
    at += word;
    if (*at == 0) return "not a choice";
  }
}

const char* take_word_or_number(const OptionRow& row, const char* text, std::int64_t* value) {
  std::int64_t index = 0;
  if (take_choice(row.choices, text, std::strlen(text), &index) == nullptr) return *value = row.least + index, nullptr;
  OptionRow numbers = row;
  numbers.least += option_words(row);
  const char* const wrong = take_number(numbers, text, value);
  return wrong != nullptr && !parse_integer(text, std::strlen(text), &index) ? "not a choice" : wrong;
}

const char* copy_text(const char* from, char* to, std::size_t capacity) {
  const std::size_t length = std::strlen(from);
  if (length >= capacity) return "too long";
  std::memcpy(to, from, length + 1);
  return nullptr;
}

const char* take_output(const OptionRow& row, const char* text, std::int64_t* value, char* path) {
  const std::size_t format = std::strcspn(text, ":");
  std::int64_t found = 0;
  if (take_choice(row.choices, text, format, &found) == nullptr) {
    const char* file = text[format] ? text + format + 1 : "";
    if (text[format] && (found == 0 || *file == 0)) return "not a file";
    if (const char* wrong = copy_text(file, path, kOptionPathBytes)) return wrong;
    *value = found;
    return nullptr;
  }
  if (!std::strchr(text, '/')) return "not a choice";
  if (const char* wrong = copy_text(text, path, kOptionPathBytes)) return wrong;
  const std::size_t length = std::strlen(text);
  const bool json = length > 5 && std::strcmp(text + length - 5, ".json") == 0;
  *value = static_cast<std::int64_t>(json ? StatsFormat::json : StatsFormat::text);
  return nullptr;
}

// Sets the option. Returns null, or what is wrong with the text.
const char* take(Options& options, const OptionRow& row, const char* text) {
  std::int64_t& value = options.value[static_cast<int>(row.id)];
  switch (row.kind) {
    case OptionKind::flag: return take_flag(text, &value);
    case OptionKind::integer:
    case OptionKind::size: return take_number(row, text, &value);
    case OptionKind::word_or_integer: return take_word_or_number(row, text, &value);
    case OptionKind::choice: return take_choice(row.choices, text, std::strlen(text), &value);
    case OptionKind::output: return take_output(row, text, &value, options.stats_path);
    case OptionKind::path: return copy_text(text, options.text_place(row.id), kOptionPathBytes);
    case OptionKind::text: return copy_text(text, options.text_place(row.id), kOptionTextBytes);
  }
  return nullptr;
}

// ---- similar names ----

// The Levenshtein distance of two names, computed in one row of the table.
unsigned distance(const char* a, const char* b) {
  constexpr std::size_t kMost = 48;
  const std::size_t columns = std::strlen(b);
  if (columns >= kMost || std::strlen(a) >= kMost) return kMost;
  unsigned row[kMost];
  for (std::size_t j = 0; j <= columns; ++j) row[j] = static_cast<unsigned>(j);
  for (std::size_t i = 0; a[i]; ++i) {
    unsigned diagonal = row[0];
    row[0] = static_cast<unsigned>(i) + 1;
    for (std::size_t j = 0; j < columns; ++j) {
      const unsigned replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row[columns];
}

// The option whose key is nearest to `key`, if one is near.
const OptionRow* nearest(const char* key, bool in_file) {
  const OptionRow* best = nullptr;
  const auto letters = static_cast<unsigned>(std::strlen(key));
  unsigned least = std::min(std::max(2u, letters / 3), letters / 2) + 1;  // in a short word at most half may be wrong
  for (int i = 0; i < kOptions; ++i) {
    const OptionRow& row = option_row(static_cast<Option>(i));
    if (in_file && row.environment_only) continue;
    char other[sizeof row.name];
    option_key(row, other, sizeof other);
    const unsigned steps = distance(key, other);
    if (steps < least) {
      least = steps;
      best = &row;
    }
  }
  return best;
}

// The name without STRETTO_ and in small letters, as it would stand in the file.
void to_key(const char* name, std::size_t length, char* key, std::size_t capacity) {
  constexpr std::size_t kPrefix = 8;
  if (length > kPrefix && strncasecmp(name, "STRETTO_", kPrefix) == 0) {
    name += kPrefix;
    length -= kPrefix;
  }
  length = std::min(length, capacity - 1);
  for (std::size_t i = 0; i < length; ++i) {
    key[i] = name[i] == '-' ? '_' : lower(name[i]);
  }
  key[length] = 0;
}

// ---- the environment ----

struct Allowed {
  char text[160];
  explicit Allowed(const OptionRow& row) { option_allowed(row, text, sizeof text); }
};

const char* find_in(const char* const* environment, const char* name) {
  const std::size_t length = std::strlen(name);
  for (; *environment; ++environment) {
    if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
      return *environment + length + 1;
  }
  return nullptr;
}

void read_environment(Options& options, OptionsReport& report, const char* const* environment) {
  for (int i = 0; i < kOptions; ++i) {
    const OptionRow& row = option_row(static_cast<Option>(i));
    const char* name = row.name;
    const char* text = find_in(environment, name);
    if ((!text || !*text) && row.former != nullptr) text = find_in(environment, name = row.former);
    if (!text || !*text) continue;
    if (const char* wrong = take(options, row, text)) {
      report.add(LogLevel::error, "%s: \"%.80s\" (environment) is %s; allowed: %s", name, text, wrong,
                 Allowed(row).text);
    }
    options.origin[i].from = Options::From::environment;  // also of a wrong value: the file must not replace it
  }
}

bool is_option(const char* name, std::size_t length) {
  for (int i = 0; i < kOptions; ++i) {
    const OptionRow& row = option_row(static_cast<Option>(i));
    for (const char* const known : {&row.name[0], row.former}) {
      if (known != nullptr && std::strlen(known) == length && std::memcmp(known, name, length) == 0) return true;
    }
  }
  return false;
}

void report_unknown_variables(OptionsReport& report, const char* const* environment) {
  for (; *environment; ++environment) {
    const char* name = *environment;
    const std::size_t length = std::strcspn(name, "=");
    if (std::strncmp(name, "STRETTO_", 8) != 0 || is_option(name, length) || known_to_others(name, length)) continue;
    char key[64];
    to_key(name, length, key, sizeof key);
    if (const OptionRow* near = nearest(key, false)) {
      report.add(LogLevel::warn, "%.*s (environment) is not an option; did you mean %s?",
                 static_cast<int>(std::min<std::size_t>(length, 80)), name, near->name);
    } else {
      report.add(LogLevel::warn, "%.*s (environment) is not an option",
                 static_cast<int>(std::min<std::size_t>(length, 80)), name);
    }
  }
}

// ---- the file ----

struct FileReader {
  Options& options;
  OptionsReport& report;
  const char* path;
  bool seen[kOptions];
};

bool is_key_of(const char* name, const char* key) {
  char own[sizeof(OptionRow::name)];
  if (name != nullptr) option_key(name, own, sizeof own);
  return name != nullptr && std::strcmp(own, key) == 0;
}

const OptionRow* row_of_key(const char* key) {
  for (int i = 0; i < kOptions; ++i) {
    const OptionRow& row = option_row(static_cast<Option>(i));
    if (!row.environment_only && (is_key_of(row.name, key) || is_key_of(row.former, key))) return &row;
  }
  return nullptr;
}

void unknown_key(FileReader& reader, const FileEntry& entry) {
  char key[64];
  to_key(entry.key, std::strlen(entry.key), key, sizeof key);
  char suggestion[sizeof(OptionRow::name)] = "";
  if (const OptionRow* near = nearest(key, true)) option_key(*near, suggestion, sizeof suggestion);
  reader.report.add(LogLevel::warn, "%.200s:%u:%u: %s is not an option%s%s%s", reader.path, entry.line, entry.column,
                    entry.key, *suggestion ? "; did you mean " : "", suggestion, *suggestion ? "?" : "");
}

const char* take_entry(void* context, const FileEntry& entry) {
  auto& reader = *static_cast<FileReader*>(context);
  const OptionRow* row = row_of_key(entry.key);
  if (!row) {
    unknown_key(reader, entry);
    return nullptr;
  }
  const int index = static_cast<int>(row->id);
  if (reader.seen[index]) return "this key stands here a second time";
  reader.seen[index] = true;
  Options::Origin& origin = reader.options.origin[index];
  if (origin.from == Options::From::environment) return nullptr;
  if (const char* wrong = take(reader.options, *row, entry.value)) {
    reader.report.add(LogLevel::error, "%.200s:%u:%u: %s: \"%.80s\" is %s; allowed: %s", reader.path, entry.line,
                      entry.column, entry.key, entry.value, wrong, Allowed(*row).text);
    return nullptr;
  }
  origin = {Options::From::file, entry.line};
  return nullptr;
}

void parse_file(Options& options, OptionsReport& report, const char* path, const char* text, std::size_t bytes) {
  FileReader reader{options, report, path, {}};
  FileError error;
  if (parse_settings(text, bytes, take_entry, &reader, &error)) return;
  report.add(LogLevel::error, "%.200s:%u:%u: %s", path, error.line, error.column, error.what);
}

// The default settings file need not exist. A working directory that this user may not search
// counts as one without it.
bool is_absent(const char* directory, int error) {
  return error == ENOENT || (error == EACCES && !sys::directory_searchable(directory));
}

void read_settings_file(Options& options, OptionsReport& report, const char* directory) {
  const bool named = options.config_path[0] != 0;
  char path[kOptionPathBytes];
  const char* file = named ? options.config_path : kDefaultFile;
  const bool absolute = file[0] == '/';
  const int length = std::snprintf(path, sizeof path, "%s%s%s", absolute ? "" : directory, absolute ? "" : "/", file);
  options.config_path[0] = 0;
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) {
    report.add(LogLevel::error, "the path of the settings file is too long: %.200s", path);
    return;
  }
  auto* text = static_cast<char*>(std::malloc(kFileBytes));
  if (!text) {
    report.add(LogLevel::error, "no memory to read %.200s", path);
    return;
  }
  std::size_t bytes = 0;
  const int error = sys::file_read(path, text, kFileBytes - 1, &bytes);
  if (error == 0) {
    std::memcpy(options.config_path, path, static_cast<std::size_t>(length) + 1);
    parse_file(options, report, path, text, bytes);
  } else if (named || !is_absent(directory, error)) {
    report.add(LogLevel::error, "cannot read %.200s: %s%s", path,
               error == EFBIG ? "more than 64K are no settings file" : strerrordesc_np(error),
               named ? " (STRETTO_CONFIG)" : "");
  }
  std::free(text);
}

// A user who switches Stretto off in the environment gets warnings, not errors.
Status verdict(const Options& options, OptionsReport& report) {
  const bool off = !options.enabled() && options.origin[0].from == Options::From::environment;
  if (off) {
    for (int i = 0; i < report.count; ++i) report.messages[i].level = LogLevel::warn;
    report.errors = 0;
  }
  return report.errors == 0 ? Status::ok : Status::invalid;
}

}  // namespace

void OptionsReport::add(LogLevel level, const char* format, ...) {
  if (level == LogLevel::error) ++errors;
  if (count == kMessages) {
    ++left_out;
    return;
  }
  Message& message = messages[count++];
  message.level = level;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(message.text, sizeof message.text, format, arguments);
  va_end(arguments);
}

Status options_load_from(Options& options, OptionsReport& report, const char* const* environment,
                         const char* directory) {
  new (&options) Options;  // in place: a copy would need several KiB of a stack that may be small
  report.count = report.left_out = report.errors = 0;
  read_environment(options, report, environment);
  report_unknown_variables(report, environment);
  read_settings_file(options, report, directory);
  return verdict(options, report);
}

Status options_load(Options& options, OptionsReport& report) {
  static constexpr const char* kNone[] = {nullptr};
  return options_load_from(options, report, environ ? environ : kNone, ".");
}

void options_log(const OptionsReport& report) {
  for (int i = 0; i < report.count; ++i) log_line(report.messages[i].level, "%s", report.messages[i].text);
  if (report.left_out) log_line(LogLevel::warn, "%d more remarks on the settings", report.left_out);
}

}  // namespace stretto
