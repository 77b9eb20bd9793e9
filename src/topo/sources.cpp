// SPDX-License-Identifier: BSD-3-Clause
#include "topo/sources.hpp"

#include <cerrno>

namespace stretto::topo {
namespace {

// Hands the text of the file that an option names to `parse(text, bytes, error)`.
template <class Parse>
void read_file(const Options& options, Option option, OptionsReport& report, Parse parse) {
  const char* const name = option_row(option).name;
  const char* const path = options.text(option);
  if (*path == 0) return;
  Array<char> text;
  FileError wrong;
  const int error = file_text(path, &text);
  if (error != 0) {
    report.add(LogLevel::error, "cannot read %.300s: %s (%s)", path, strerrordesc_np(error), name);
  } else if (!parse(text.data(), text.size(), &wrong)) {
    report.add(LogLevel::error, "%.200s:%u:%u: %s", path, wrong.line, wrong.column, wrong.what);
  }
}

}  // namespace

int file_text(const char* path, Array<char>* text) {
  constexpr std::size_t kFirstBytes = 64 << 10, kMostBytes = 64 << 20;
  std::size_t bytes = 0;
  int error = EFBIG;
  for (std::size_t capacity = kFirstBytes; error == EFBIG && capacity <= kMostBytes; capacity *= 4) {
    error = text->resize(capacity, 0) ? sys::file_read(path, text->data(), capacity, &bytes) : ENOMEM;
  }
  (void)text->resize(error == 0 ? bytes : 0, 0);
  return error;
}

void Sources::read(const Options& options, OptionsReport& report) {
  LevelError wrong;
  if (*options.hierarchy != 0 && !parse_levels(options.hierarchy, &levels, &wrong)) {
    report.add(LogLevel::error, "STRETTO_HIERARCHY: \"%.80s\", column %u: %s", options.hierarchy, wrong.column,
               wrong.what);
  }
  read_file(options, Option::placement, report,
            [&](const char* text, std::size_t bytes, FileError* error) { return placement.parse(text, bytes, error); });
  read_file(options, Option::topology, report,
            [&](const char* text, std::size_t bytes, FileError* error) { return network.parse(text, bytes, error); });
}

Locality Sources::locality(int rank) const {
  if (!placement.empty()) return placement.locality(rank);
  char name[sys::kHostNameBytes];
  sys::host_name(name, sizeof name);
  Locality locality = find_locality(sys::cpu_place(), sys::host_id(), name, network.nodes() != 0 ? &network : nullptr);
  locality.nics = sys::nic_place();
  return locality;
}

}  // namespace stretto::topo
