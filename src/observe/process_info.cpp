// SPDX-License-Identifier: BSD-3-Clause
#include "observe/process_info.hpp"

#include <cstring>

#include "sys/sys.hpp"

namespace stretto::observe {
namespace {

constexpr const char* kSpace = "stretto";

kv::Name name_of(const char* key) {
  kv::Name name;
  (void)kv::name_make(kSpace, kv::kWildcard, key, &name);
  return name;
}

bool put_number(kv::Table& table, const char* key, std::uint64_t number) {
  return table.put(name_of(key), {&number, sizeof number}) == Status::ok;
}

bool put_text(kv::Table& table, const char* key, const char* text) {
  return table.put(name_of(key), {text, static_cast<std::uint32_t>(std::strlen(text))}) == Status::ok;
}

bool read_number(const kv::TableView& table, const char* key, std::uint64_t* number) {
  kv::Value value;
  if (!table.find(name_of(key), &value) || value.bytes != sizeof *number) return false;
  std::memcpy(number, value.data, sizeof *number);
  return true;
}

// Cut to its place.
template <std::size_t n>
bool read_text(const kv::TableView& table, const char* key, char (&text)[n]) {
  kv::Value value;
  if (!table.find(name_of(key), &value)) return false;
  const std::size_t bytes = value.bytes < n - 1 ? value.bytes : n - 1;
  std::memcpy(text, value.data, bytes);
  text[bytes] = 0;
  return true;
}

}  // namespace

void process_info_put(shm::Segment& segment, const ProcessInfo& info) {
  kv::Table table;
  if (table.create_in(segment) != Status::ok) return;
  const bool whole = put_number(table, "job", info.job) && put_number(table, "rank", info.rank) &&
                     put_number(table, "ranks", info.ranks) && put_text(table, "version", info.version) &&
                     put_text(table, "host", info.host);
  if (!whole) return;
  table.commit();
  segment.ledger().activity.table.store_release(table.view().header);  // pairs with the observer's load
}

bool process_info_read(const kv::TableView& table, ProcessInfo* process_info) {
  return table.is_valid() && read_number(table, "job", &process_info->job) &&
         read_number(table, "rank", &process_info->rank) && read_number(table, "ranks", &process_info->ranks) &&
         read_text(table, "version", process_info->version) && read_text(table, "host", process_info->host);
}

}  // namespace stretto::observe
