// SPDX-License-Identifier: BSD-3-Clause
#include "kv/remote_tables.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kv/deadline.hpp"
#include "sys/sys.hpp"

namespace stretto::kv {
namespace {

// The store refuses keys with this beginning from ranks.
constexpr char kRecordKey[] = "pmix.stretto.brought";

// The naps of a get that waits for its key. After each nap it asks again, and the other node sends
// all that the rank has.
constexpr std::uint64_t kLongestNapNs = 100'000'000;
std::uint64_t nap_after(std::uint64_t waited_ns, std::uint64_t left_ns) {
  return std::min(left_ns, std::clamp(waited_ns / 8, kShortestNapNs, kLongestNapNs));
}

}  // namespace

Status RemoteTables::open(const char* path, const char* nspace, std::uint32_t rank, const Places& places,
                          const RemoteExchange& exchange, std::size_t table_bytes) {
  if (std::strlen(nspace) >= sizeof nspace_) return Status::invalid;
  std::strcpy(nspace_, nspace);
  rank_ = rank;
  exchange_ = exchange;
  Status status = copy_places(places);
  if (status == Status::ok) status = node_.open(path);
  if (status == Status::ok) status = table_.create(table_bytes);
  if (status == Status::ok) status = record(rank, 0, kAnyAge);
  if (status == Status::ok) sent_record_ = kept(rank);
  if (status == Status::ok) status = node_.join(rank, table_);
  if (status == Status::ok) status = send();
  if (status != Status::ok) close();
  return status;
}

Status RemoteTables::copy_places(const Places& places) {
  here_ = static_cast<std::uint32_t*>(std::malloc(places.count_here * sizeof *here_));
  first_ = static_cast<std::uint32_t*>(std::malloc(places.ranks * sizeof *first_));
  mine_ = static_cast<bool*>(std::calloc(places.ranks, sizeof *mine_));
  bundled_ = static_cast<std::uint64_t*>(std::calloc(places.count_here, sizeof *bundled_));
  if (!here_ || !first_ || !mine_ || !bundled_) return Status::no_memory;
  std::copy_n(places.here, places.count_here, here_);
  std::copy_n(places.first, places.ranks, first_);
  places_ = {places.ranks, here_, places.count_here, first_};
  // Deals the other nodes out to the ranks here.
  const auto place = static_cast<unsigned>(std::lower_bound(here_, here_ + places.count_here, rank_) - here_);
  unsigned nodes = 0;
  for (std::uint32_t r = 0; r < places.ranks; ++r) {
    if (has(r)) mine_[r] = first_[r] == r ? nodes++ % places.count_here == place : mine_[first_[r]];
  }
  return Status::ok;
}

void RemoteTables::close() {
  node_.close();
  table_.destroy();
  std::free(here_);
  std::free(first_);
  std::free(mine_);
  std::free(bundled_);
  here_ = first_ = nullptr;
  mine_ = nullptr;
  bundled_ = nullptr;
  sent_record_ = nullptr;
  exchange_ = RemoteExchange{};
}

bool RemoteTables::has(std::uint32_t rank) const {
  return is_open() && rank < places_.ranks && !std::binary_search(here_, here_ + places_.count_here, rank);
}

Status RemoteTables::send() {
  std::size_t bytes = 0;
  const char* const data = outgoing_.seal(&bytes);
  if (!data) return Status::no_memory;
  const Status status = exchange_.send(exchange_.context, sent_, data, bytes);
  if (status != Status::ok) return status;
  keep(data, bytes);
  ++sent_;
  outgoing_.clear();
  return Status::ok;
}

// Keeps a batch for bundles. A batch that does not fit is missing in them, and others ask for it.
void RemoteTables::keep(const void* data, std::size_t bytes) {
  const SentKey key(sent_);
  Name name;
  lock();
  const Value batch{data, static_cast<std::uint32_t>(bytes), 0, 0};
  if (!full_ && bytes == batch.bytes && name_make(nspace_, rank_, key.text, &name) &&
      table_.put(name, batch) == Status::ok)
    table_.commit();
  sent_record_->batches.store_release(sent_ + 1);  // pairs with add_sent()
  unlock();
}

Name RemoteTables::record_of(std::uint32_t rank) const {
  Name name{};
  (void)name_make(nspace_, rank, kRecordKey, &name);
  return name;
}

std::uint64_t RemoteTables::oldest_good() {
  lock();
  const std::uint64_t fences = out_of_step_ ? kNever : fences_;
  unlock();
  return fences;
}

std::uint64_t RemoteTables::age() {
  lock();
  const std::uint64_t fences = out_of_step_ ? kAnyAge : fences_;
  unlock();
  return fences;
}

RemoteTables::Record* RemoteTables::kept(std::uint32_t rank) const {
  Value value;
  return table_.view().find(record_of(rank), &value) ? static_cast<Record*>(const_cast<void*>(value.data)) : nullptr;
}

std::uint64_t RemoteTables::batches_of(std::uint32_t rank) const {
  const Record* const record = kept(rank);
  return record ? record->batches.load_relaxed() : 0;
}

// Finds the value in the table that has most of the rank, among those that are not too old. It asks
// this process's own table first.
bool RemoteTables::find(const Name& name, std::uint64_t as_of, Value* value) {
  const Name record_name = record_of(name.rank);
  std::uint64_t most = 0;
  bool found = false;
  const auto look = [&](const TableView& view) {
    Value record, there;
    if (!view.find(record_name, &record) || record.bytes != sizeof(Record)) return;
    const auto* const kept = static_cast<const Record*>(record.data);
    if (kept->fences.load_acquire() < as_of || !view.find(name, &there)) return;
    const std::uint64_t batches = kept->batches.load_relaxed();
    if (found && batches <= most) return;
    found = true;
    most = batches;
    *value = there;
  };
  lock();
  look(table_.view());
  for (unsigned i = 0; i < node_.entries() && !(found && as_of != kAnyAge); ++i) {
    const TableView* const view = node_.is_mine(i) ? nullptr : node_.table_of(i);
    if (view) look(*view);
  }
  unlock();
  return found;
}

// What was complete as of a fence remains so with more batches.
Status RemoteTables::record(std::uint32_t rank, std::uint64_t batches, std::uint64_t fences) {
  if (Record* const old = kept(rank)) {
    fences = std::max(fences, old->fences.load_relaxed());
    if (old->batches.load_relaxed() == batches) {
      old->fences.store_release(fences);  // pairs with find()
      return Status::ok;
    }
  }
  Record fresh{};
  fresh.batches.store_relaxed(batches);
  fresh.fences.store_relaxed(fences);
  const Status status = table_.put(record_of(rank), {&fresh, sizeof fresh, 0, 0});
  if (status == Status::ok) table_.commit();
  return status;
}

Outcome RemoteTables::unpack(std::uint32_t rank, std::uint64_t number, const void* data, std::size_t bytes) {
  const auto* const batch = static_cast<const char*>(data);
  const auto is_good = [](const char* key, const Value&) { return std::strcmp(key, kRecordKey) != 0; };
  if (!batch_read(batch, bytes, is_good)) return Outcome::failed;
  const auto put = [&](const char* key, const Value& value) {
    Name name;
    return !name_make(nspace_, rank, key, &name) || table_.put(name, value) == Status::ok;
  };
  lock();
  if (batches_of(rank) == number) {  // otherwise another thread was faster
    full_ = full_ || !batch_read(batch, bytes, put) || record(rank, number + 1, kAnyAge) != Status::ok;
  }
  const bool full = full_;
  unlock();
  return full ? Outcome::no_memory : Outcome::found;
}

Outcome RemoteTables::none_after(std::uint32_t rank, std::uint64_t batches, std::uint64_t as_of) {
  if (batches == 0) return Outcome::not_found;  // the rank has not come yet
  lock();
  // This cannot fail: the record exists and is renewed.
  if (batches_of(rank) == batches) (void)record(rank, batches, as_of);
  unlock();
  return Outcome::found;
}

// Found: the batch was unpacked.
Outcome RemoteTables::ask(std::uint32_t rank, std::uint64_t number, std::uint64_t timeout_ns) {
  Fetched batch;
  const Outcome outcome = exchange_.ask(exchange_.context, rank, number, timeout_ns, &batch);
  if (outcome != Outcome::found) return outcome;
  const Outcome unpacked = unpack(rank, number, batch.data, batch.bytes);
  std::free(batch.data);
  return unpacked;
}

// Not found: from `*number` on, this process has no more batches.
Outcome RemoteTables::unpack_here(std::uint32_t rank, std::uint64_t* number) {
  for (;; ++*number) {
    Fetched batch;
    Outcome outcome = exchange_.look(exchange_.context, rank, *number, &batch);
    if (outcome == Outcome::found) outcome = unpack(rank, *number, batch.data, batch.bytes);
    std::free(batch.data);
    if (outcome != Outcome::found) return outcome;
  }
}

Outcome RemoteTables::bring_each(std::uint32_t rank, std::uint64_t number, std::uint64_t as_of,
                                 std::uint64_t timeout_ns) {
  const Deadline deadline(timeout_ns);
  for (;; ++number) {
    const Outcome outcome = ask(rank, number, deadline.left_ns());
    if (outcome == Outcome::not_found) return none_after(rank, number, as_of);
    if (outcome != Outcome::found) return outcome;
  }
}

// Found: this process's table has all that was committed before the call.
Outcome RemoteTables::bring(std::uint32_t rank, std::uint64_t timeout_ns) {
  const Deadline deadline(timeout_ns);
  const std::uint64_t as_of = age();
  lock();
  std::uint64_t number = batches_of(rank);
  const bool relies = answers_whole_;
  unlock();
  Outcome outcome = relies ? Outcome::not_found : unpack_here(rank, &number);
  const std::uint64_t next = number;
  if (outcome == Outcome::not_found) outcome = ask(rank, kNobodys, deadline.left_ns());
  if (outcome == Outcome::not_found) outcome = unpack_here(rank, &number);
  // `found` is a failure here, because nobody uses this number.
  if (outcome != Outcome::not_found) return outcome == Outcome::found ? Outcome::failed : outcome;
  if (!relies && number == next) return bring_each(rank, number, as_of, deadline.left_ns());
  lock();
  answers_whole_ = true;
  unlock();
  return none_after(rank, number, as_of);
}

Outcome RemoteTables::get(const Name& name, std::uint64_t timeout_ns, bool refresh, Value* value) {
  if (timeout_ns == 0) return find(name, kAnyAge, value) ? Outcome::found : Outcome::not_found;
  const Deadline deadline(timeout_ns);
  for (bool ask = refresh;; ask = false) {
    if (!ask && find(name, oldest_good(), value)) return Outcome::found;
    const std::uint64_t left = deadline.left_ns();
    if (left == 0) return Outcome::timed_out;
    const Outcome outcome = bring(name.rank, left);
    if (outcome == Outcome::found && find_own(name, value)) return Outcome::found;
    if (outcome > Outcome::timed_out) return outcome;
    sys::nap_ns(nap_after(deadline.waited_ns(), deadline.left_ns()));
  }
}

bool RemoteTables::find_own(const Name& name, Value* value) {
  lock();
  const bool found = table_.view().find(name, value);
  unlock();
  return found;
}

Outcome RemoteTables::fence(std::uint64_t timeout_ns) {
  const Outcome met = exchange_.fence(exchange_.context, timeout_ns);
  lock();
  out_of_step_ = out_of_step_ || met != Outcome::found;
  ++fences_;
  unlock();
  return met;
}

bool RemoteTables::table_of(std::uint32_t rank, TableView* view) {
  for (unsigned i = 0; i < node_.entries(); ++i) {
    if (!node_.was_taken(i) || node_.rank_of(i) != rank) continue;
    const TableView* const other = node_.is_mine(i) ? nullptr : node_.table_of(i);
    if (!other && !node_.is_mine(i)) continue;
    *view = other ? *other : table_.view();
    return true;
  }
  return false;
}

}  // namespace stretto::kv
