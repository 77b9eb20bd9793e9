// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/value_cache.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kv/store.hpp"
#include "pmix/values.hpp"
#include "sys/sys.hpp"

namespace stretto::pmix {

// Stands before a value's bytes in the table. Only the owner reads `fences`. The owner may renew
// both words in place.
struct ValueCache::Kept {
  kv::Word stamp;   // how fresh it is
  kv::Word fences;  // the value is good for its owner after this fence and before the next
};

// What is noted about a rank: a text with a stamp. A stamp of 0 means that nothing is noted.
struct ValueCache::Note {
  kv::Name name;
  kv::Value text;
  std::uint64_t stamp;
};

namespace {

constexpr std::uint64_t kAlways = ~std::uint64_t{0};
constexpr std::size_t kTableBytes = std::size_t{256} << 20;  // address space; memory as needed

// Notes about a rank lie among its values, under keys that no rank can put.
// stamped when this process's library first asked, or last asked for a refresh
constexpr const char* kFirst = "pmix.stretto.first";
// The key whose value another process's table gave. It is stamped 0 once the library has caught up.
constexpr const char* kBorrowed = "pmix.stretto.borrowed";

}  // namespace

bool ValueCache::open(const pmix_proc_t& self) {
  if (table_.create(kTableBytes) != Status::ok) return false;
  full_ = false;
  fences_ = 1;
  refreshed_ = 0;
  fenced_at_ns_ = sys::now_ns();
  const char* const directory = std::getenv("PMIX_SERVER_TMPDIR");
  char path[1024];
  shares_ = directory && kv::Store::path_of(directory, "pmix", path, sizeof path) && node_.open(path) == Status::ok;
  if (shares_ && node_.join(self.rank, table_) != Status::ok) {
    node_.close();
    shares_ = false;
  }
  return true;
}

void ValueCache::close() {
  if (shares_) node_.close();
  shares_ = false;
  table_.destroy();
  std::free(scratch_);
  scratch_ = nullptr;
  scratch_bytes_ = 0;
}

ValueCache::Asked ValueCache::asking() const {
  lock();
  const Asked asked{sys::now_ns(), fences_};
  unlock();
  return asked;
}

void ValueCache::fenced() {
  lock();
  drop_all();
  unlock();
}

void ValueCache::drop_all() {
  ++fences_;
  fenced_at_ns_ = sys::now_ns();
}

Counts ValueCache::counts() {
  lock();
  const Counts counts = counts_;
  unlock();
  return counts;
}

pmix_value_t* ValueCache::find(const kv::Name& name, Kind kind) {
  lock();
  const std::uint64_t least = kind == Kind::modex ? least_stamp(name) : 0;
  pmix_value_t* value = find_own(name, kind, least);
  count(value ? &Counts::own : &Counts::missed);
  if (!value && shares_ && (value = find_shared(name, kind, least)) != nullptr) {
    --counts_.missed;
    count(&Counts::shared);
  }
  unlock();
  return value;
}

// The least stamp of a value that may answer. If this process has refreshed a rank since its last
// fence, a kept value with a lower stamp is older than what the refresh brought.
std::uint64_t ValueCache::least_stamp(const kv::Name& name) const {
  return refreshed_ == fences_ ? note(kv::name_beside(name, kFirst)).stamp : 0;
}

pmix_value_t* ValueCache::find_own(const kv::Name& name, Kind kind, std::uint64_t least) {
  kv::Value value;
  if (!table_.view().find(name, &value, kv::TableView::kNewest)) return nullptr;
  const auto* const kept = static_cast<const Kept*>(value.data);
  if (kind == Kind::modex && (kept->fences.load_relaxed() != fences_ || kept->stamp.load_relaxed() < least))
    return nullptr;
  return value_make(value.type, kept + 1, value.bytes - sizeof(Kept));
}

// Keeps a value that it finds in another process's table in this process's own, so that the next
// get finds it at once.
pmix_value_t* ValueCache::find_shared(const kv::Name& name, Kind kind, std::uint64_t least) {
  for (unsigned i = 0; i < node_.entries(); ++i) {
    if (node_.is_mine(i)) continue;
    const kv::TableView* const view = node_.table_of(i);
    kv::Value value;
    if (!view || !view->find(name, &value) || value.bytes < sizeof(Kept)) continue;
    const auto* const kept = static_cast<const Kept*>(value.data);
    const std::uint64_t stamp = kept->stamp.load_acquire();
    if (kind == Kind::modex && stamp < std::max(fenced_at_ns_, least)) continue;
    pmix_value_t* const made = value_make(value.type, kept + 1, value.bytes - sizeof(Kept));
    if (!made) continue;
    if (kind == Kind::modex && !borrow(name)) {
      value_release(made);
      break;
    }
    kv::Value packed;
    if (value_pack(*made, &packed)) keep(name, stamp, packed);  // packs the copy: the original may change
    return made;
  }
  return nullptr;
}

void ValueCache::keep(const kv::Name& name, std::uint64_t stamp, const kv::Value& value) {
  kv::Value old;
  if (table_.view().find(name, &old, kv::TableView::kNewest) && old.type == value.type &&
      old.bytes == value.bytes + sizeof(Kept) &&
      std::memcmp(static_cast<const char*>(old.data) + sizeof(Kept), value.data, value.bytes) == 0) {
    auto* const kept = static_cast<Kept*>(const_cast<void*>(old.data));  // in this process's own segment
    kept->fences.store_relaxed(fences_);
    kept->stamp.store_release(stamp);
    return;
  }
  const std::size_t bytes = sizeof(Kept) + value.bytes;
  if (full_ || bytes > 0xffffffffu) return;
  if (bytes > scratch_bytes_) {
    void* const larger = std::realloc(scratch_, bytes);
    if (!larger) return;
    scratch_ = static_cast<char*>(larger);
    scratch_bytes_ = bytes;
  }
  Kept kept{};
  kept.stamp.store_relaxed(stamp);
  kept.fences.store_relaxed(fences_);
  std::memcpy(scratch_, &kept, sizeof kept);
  if (value.bytes != 0) std::memcpy(scratch_ + sizeof kept, value.data, value.bytes);
  full_ = table_.put(name, {scratch_, static_cast<std::uint32_t>(bytes), value.type, 0}) != Status::ok;
  table_.commit();
}

ValueCache::Note ValueCache::note(const kv::Name& name) const {
  Note note{name, {"", 1, PMIX_STRING, 0}, 0};
  kv::Value value;
  if (table_.view().find(name, &value, kv::TableView::kNewest)) {
    const auto* const kept = static_cast<const Kept*>(value.data);
    note.text = {kept + 1, static_cast<std::uint32_t>(value.bytes - sizeof(Kept)), value.type, 0};
    note.stamp = kept->stamp.load_relaxed();
  }
  return note;
}

std::uint64_t ValueCache::first_asked(const kv::Name& name, const Asked& asked, bool refresh) {
  const Note first = note(kv::name_beside(name, kFirst));
  if (!refresh && first.stamp) return first.stamp;
  keep(first.name, std::max(first.stamp, asked.at_ns), first.text);
  return full_ ? 0 : asked.at_ns;
}

// Notes the key that another process's table has answered. False: there was no room for the note.
bool ValueCache::borrow(const kv::Name& name) {
  const Note borrowed = note(kv::name_beside(name, kBorrowed));
  if (!borrowed.stamp) keep(borrowed.name, 1, {name.key, name.key_bytes, PMIX_STRING, 0});
  return borrowed.stamp || !full_;
}

bool ValueCache::is_behind(const pmix_proc_t& proc, char (&key)[PMIX_MAX_KEYLEN + 1]) const {
  kv::Name name;
  if (!kv::name_make(proc.nspace, proc.rank, kBorrowed, &name)) return false;
  lock();
  const Note borrowed = note(name);
  const bool is = borrowed.stamp && borrowed.text.bytes < sizeof key;
  if (is) {
    std::memcpy(key, borrowed.text.data, borrowed.text.bytes);
    key[borrowed.text.bytes] = 0;
  }
  unlock();
  return is;
}

void ValueCache::learn(const kv::Name& name, Query query, Asked asked, const pmix_value_t& value) {
  kv::Value packed;
  const bool packs = value_pack(value, &packed);
  if (!packs && !query.refresh) return;
  lock();
  // Another thread's refresh may have come between query and answer.
  const std::uint64_t stamp =
      query.kind == Kind::job ? kAlways : std::min(first_asked(name, asked, query.refresh), asked.at_ns);
  if (packs && (query.kind == Kind::job || asked.fences == fences_)) keep(name, stamp, packed);
  if (query.refresh) {
    refreshed_ = fences_;
    if (full_) drop_all();
    const Note borrowed = note(kv::name_beside(name, kBorrowed));
    if (borrowed.stamp) keep(borrowed.name, 0, borrowed.text);  // the same text, so it is renewed in place
  }
  unlock();
}

}  // namespace stretto::pmix
