// SPDX-License-Identifier: BSD-3-Clause
#include "kv/elsewhere.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kv/deadline.hpp"
#include "sys/sys.hpp"

namespace stretto::kv {
namespace {

constexpr char kRecordKey[] = "pmix.stretto.brought";  // no rank can put it

// A get that waits for its key asks again; each time the other node sends all that the rank has.
constexpr std::uint64_t kShortestNapNs = 1'000'000, kLongestNapNs = 100'000'000;
std::uint64_t nap_after(std::uint64_t waited_ns, std::uint64_t left_ns) {
  return std::min(left_ns, std::clamp(waited_ns / 8, kShortestNapNs, kLongestNapNs));
}

}  // namespace

Status Elsewhere::open(const char* path, const char* nspace, std::uint32_t rank, const Places& places, const Road& road,
                       std::size_t table_bytes) {
  if (std::strlen(nspace) >= sizeof nspace_) return Status::invalid;
  here_ = static_cast<std::uint32_t*>(std::malloc(places.count_here * sizeof *here_));
  if (!here_) return Status::no_memory;
  std::copy_n(places.here, places.count_here, here_);
  places_ = {places.ranks, here_, places.count_here};
  place_here_ = static_cast<unsigned>(std::lower_bound(here_, here_ + places.count_here, rank) - here_);
  std::strcpy(nspace_, nspace);
  road_ = road;
  Status status = node_.open(path);
  if (status == Status::ok) status = table_.create(table_bytes);
  if (status == Status::ok) status = node_.join(rank, table_);
  if (status == Status::ok) status = send();
  if (status != Status::ok) close();
  return status;
}

void Elsewhere::close() {
  node_.close();
  table_.destroy();
  std::free(here_);
  here_ = nullptr;
  road_ = Road{};
}

bool Elsewhere::has(std::uint32_t rank) const {
  return is_open() && rank < places_.ranks && !std::binary_search(here_, here_ + places_.count_here, rank);
}

Status Elsewhere::send() {
  std::size_t bytes = 0;
  const char* const data = outgoing_.seal(&bytes);
  if (!data) return Status::no_memory;
  const Status status = road_.send(road_.context, sent_, data, bytes);
  if (status != Status::ok) return status;
  ++sent_;
  outgoing_.clear();
  return Status::ok;
}

Name Elsewhere::record_of(std::uint32_t rank) const {
  Name name{};
  (void)name_make(nspace_, rank, kRecordKey, &name);
  return name;
}

std::uint64_t Elsewhere::oldest_good() {
  lock();
  const std::uint64_t fences = out_of_step_ ? kNever : fences_;
  unlock();
  return fences;
}

std::uint64_t Elsewhere::parcels_of(std::uint32_t rank) const {
  Value value;
  return table_.view().find(record_of(rank), &value) ? static_cast<const Record*>(value.data)->parcels.load_relaxed() : 0;
}

// In the table that has most of the rank, of those that are not too old. One's own is the first to be asked.
bool Elsewhere::find(const Name& name, std::uint64_t as_of, Value* value) {
  const Name record_name = record_of(name.rank);
  std::uint64_t most = 0;
  bool found = false;
  const auto look = [&](const TableView& view) {
    Value record, there;
    if (!view.find(record_name, &record) || record.bytes != sizeof(Record)) return;
    const auto* const kept = static_cast<const Record*>(record.data);
    if (kept->fences.load_acquire() < as_of || !view.find(name, &there)) return;
    const std::uint64_t parcels = kept->parcels.load_relaxed();
    if (found && parcels <= most) return;
    found = true;
    most = parcels;
    *value = there;
  };
  lock();
  look(table_.view());
  for (unsigned i = 0; i < node_.seats() && !(found && as_of != kAnyAge); ++i) {
    const TableView* const view = node_.is_mine(i) ? nullptr : node_.table_of(i);
    if (view) look(*view);
  }
  unlock();
  return found;
}

// What was complete as of a fence stays so with more parcels.
Status Elsewhere::record(std::uint32_t rank, std::uint64_t parcels, std::uint64_t fences) {
  const Name name = record_of(rank);
  Value value;
  if (table_.view().find(name, &value)) {
    auto& old = *static_cast<Record*>(const_cast<void*>(value.data));  // in our own segment
    fences = std::max(fences, old.fences.load_relaxed());
    if (old.parcels.load_relaxed() == parcels) {
      old.fences.store_release(fences);  // pairs with find()
      return Status::ok;
    }
  }
  Record fresh{};
  fresh.parcels.store_relaxed(parcels);
  fresh.fences.store_relaxed(fences);
  const Status status = table_.put(name, {&fresh, sizeof fresh, 0, 0});
  if (status == Status::ok) table_.commit();
  return status;
}

Outcome Elsewhere::unpack(std::uint32_t rank, std::uint64_t number, const Fetched& parcel) {
  const auto is_good = [](const char* key, const Value&) { return std::strcmp(key, kRecordKey) != 0; };
  if (!parcel_read(parcel.data, parcel.bytes, is_good)) return Outcome::failed;
  const auto put = [&](const char* key, const Value& value) {
    Name name;
    return !name_make(nspace_, rank, key, &name) || table_.put(name, value) == Status::ok;
  };
  lock();
  if (parcels_of(rank) == number) {  // otherwise another thread was quicker
    full_ = full_ || !parcel_read(parcel.data, parcel.bytes, put) || record(rank, number + 1, kAnyAge) != Status::ok;
  }
  const bool full = full_;
  unlock();
  return full ? Outcome::no_memory : Outcome::found;
}

Outcome Elsewhere::none_after(std::uint32_t rank, std::uint64_t parcels, std::uint64_t as_of) {
  if (parcels == 0) return Outcome::not_found;  // it has not come yet
  lock();
  if (parcels_of(rank) == parcels) (void)record(rank, parcels, as_of);  // which is there, and renewed
  unlock();
  return Outcome::found;
}

// Found: this process' table has all that was committed before the call.
Outcome Elsewhere::bring(std::uint32_t rank, std::uint64_t timeout_ns) {
  const Deadline deadline(timeout_ns);
  lock();
  const std::uint64_t as_of = out_of_step_ ? kAnyAge : fences_;
  std::uint64_t number = parcels_of(rank);
  unlock();
  for (;; ++number) {
    Fetched parcel;
    Outcome outcome = road_.fetch(road_.context, rank, number, deadline.left_ns(), &parcel);
    if (outcome == Outcome::not_found) return none_after(rank, number, as_of);
    if (outcome == Outcome::found) {
      outcome = unpack(rank, number, parcel);
      std::free(parcel.data);
    }
    if (outcome != Outcome::found) return outcome;
  }
}

Outcome Elsewhere::get(const Name& name, std::uint64_t timeout_ns, bool refresh, Value* value) {
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

bool Elsewhere::find_own(const Name& name, Value* value) {
  lock();
  const bool found = table_.view().find(name, value);
  unlock();
  return found;
}

// With data collection the node's processes share the work: each brings what some of the others have committed.
Outcome Elsewhere::fence(bool collect, std::uint64_t timeout_ns) {
  const Deadline deadline(timeout_ns);
  const Outcome met = road_.fence(road_.context, collect, timeout_ns);
  lock();
  out_of_step_ = out_of_step_ || met != Outcome::found;
  ++fences_;
  unlock();
  if (met != Outcome::found || !collect) return met;
  unsigned turn = 0;
  for (std::uint32_t rank = 0; rank < places_.ranks; ++rank) {
    if (!has(rank) || turn++ % places_.count_here != place_here_) continue;
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
