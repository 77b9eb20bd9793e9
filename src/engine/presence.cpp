// SPDX-License-Identifier: BSD-3-Clause
#include "engine/presence.hpp"

#include <cstring>

#include "sys/sys.hpp"

namespace stretto::engine {
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

void presence_put(shm::Segment& segment, const Settings& settings) {
  kv::Table table;
  if (table.create_in(segment) != Status::ok) return;
  char host[sys::kHostNameBytes];
  sys::host_name(host, sizeof host);
  const bool whole = put_number(table, "job", settings.job) && put_number(table, "rank", settings.job_rank) &&
                     put_number(table, "ranks", settings.job_ranks) && put_text(table, "version", settings.version) &&
                     put_text(table, "host", host);
  if (!whole) return;
  table.commit();
  segment.ledger().pulse.table.store_release(table.view().header);  // pairs with the onlooker's load
}

bool presence_read(const kv::TableView& table, Presence* presence) {
  return table.is_valid() && read_number(table, "job", &presence->job) && read_number(table, "rank", &presence->rank) &&
         read_number(table, "ranks", &presence->ranks) && read_text(table, "version", presence->version) &&
         read_text(table, "host", presence->host);
}

}  // namespace stretto::engine
