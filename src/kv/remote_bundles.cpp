// SPDX-License-Identifier: BSD-3-Clause
// The bundles of a fence that collects: what the first rank of a node sends of all its node's
// batches, and how other nodes take it apart.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "kv/deadline.hpp"
#include "kv/remote_tables.hpp"
#include "sys/sys.hpp"

namespace stretto::kv {
namespace {

// The key of a rank's batch in a bundle.
struct PlaceKey {
  char text[64];
  PlaceKey(std::uint32_t rank, std::uint64_t number) {
    std::snprintf(text, sizeof text, "%" PRIu32 ".%" PRIu64, rank, number);
  }
};
bool place_key_read(const char* key, std::uint64_t* rank, std::uint64_t* number) {
  char* end = nullptr;
  *rank = std::strtoull(key, &end, 10);
  if (*end != '.') return false;
  *number = std::strtoull(end + 1, &end, 10);
  return *end == 0;
}

}  // namespace

SentKey::SentKey(std::uint64_t number) { std::snprintf(text, sizeof text, "pmix.stretto.sent.%" PRIu64, number); }

void RemoteTables::add_sent(unsigned place, CommitBatch* bundle) {
  const std::uint32_t rank = here_[place];
  std::uint64_t& next = bundled_[place];
  TableView view;
  Value found;
  if (!table_of(rank, &view) || !view.find(record_of(rank), &found) || found.bytes != sizeof(Record)) return;
  const std::uint64_t sent = static_cast<const Record*>(found.data)->batches.load_acquire();  // pairs with keep()
  for (; next < sent; ++next) {
    const SentKey key(next);
    Name name;
    if (!name_make(nspace_, rank, key.text, &name) || !view.find(name, &found) ||
        !bundle->add(PlaceKey(rank, next).text, found))
      return;
  }
  (void)bundle->add(PlaceKey(rank, sent).text, {});
}

// If this fails, other nodes ask for its ranks one by one.
void RemoteTables::send_bundle(std::uint64_t number) {
  CommitBatch bundle;
  lock();
  for (unsigned i = 0; i < places_.count_here; ++i) add_sent(i, &bundle);
  unlock();
  std::size_t bytes = 0;
  const char* const data = bundle.seal(&bytes);
  if (data) (void)exchange_.send(exchange_.context, number, data, bytes);
}

void RemoteTables::bring_bundle(std::uint32_t first, std::uint64_t number, std::uint64_t timeout_ns) {
  Fetched bundle;
  if (exchange_.ask(exchange_.context, first, number, timeout_ns, &bundle) != Outcome::found) return;
  const std::uint64_t as_of = age();
  const auto take = [&](const char* key, const Value& batch) {
    std::uint64_t rank = 0, batch_number = 0;
    if (!place_key_read(key, &rank, &batch_number) || rank >= places_.ranks || first_[rank] != first) return false;
    const auto from = static_cast<std::uint32_t>(rank);
    (void)(batch.bytes == 0 ? none_after(from, batch_number, as_of)
                            : unpack(from, batch_number, batch.data, batch.bytes));
    return true;
  };
  (void)batch_read(bundle.data, bundle.bytes, take);
  std::free(bundle.data);
}

bool RemoteTables::is_complete(std::uint32_t rank) {
  lock();
  const Record* const record = kept(rank);
  const bool complete = record && record->fences.load_relaxed() >= fences_;
  unlock();
  return complete;
}

Outcome RemoteTables::collect(std::uint64_t timeout_ns) {
  const Deadline deadline(timeout_ns);
  lock();
  const std::uint64_t number = kBundles | fences_;
  unlock();
  if (rank_ == here_[0]) send_bundle(number);
  const Outcome met = fence(deadline.left_ns());
  if (met != Outcome::found) return met;
  for (std::uint32_t rank = 0; rank < places_.ranks; ++rank) {
    if (mine_[rank] && first_[rank] == rank) bring_bundle(rank, number, deadline.left_ns());
  }
  for (std::uint32_t rank = 0; rank < places_.ranks; ++rank) {
    if (!mine_[rank] || is_complete(rank)) continue;
    Outcome outcome = bring(rank, deadline.left_ns());
    while (outcome == Outcome::timed_out && deadline.left_ns() != 0) {
      sys::nap_ns(kShortestNapNs);
      outcome = bring(rank, deadline.left_ns());
    }
    if (outcome != Outcome::found) return outcome;
  }
  return Outcome::found;
}

}  // namespace stretto::kv
