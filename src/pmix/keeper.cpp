// SPDX-License-Identifier: BSD-3-Clause
#include "pmix/keeper.hpp"

#include <cstdlib>
#include <cstring>

#include "kv/store.hpp"
#include "pmix/values.hpp"
#include "sys/sys.hpp"

namespace stretto::pmix {

// Before a value's bytes in the table. Only the owner looks at `fences`; it may renew both in place.
struct Keeper::Kept {
  kv::Word stamp;   // how fresh it is
  kv::Word fences;  // good for its owner under this fence
};

namespace {

constexpr std::uint64_t kAlways = ~std::uint64_t{0};
constexpr std::size_t kTableBytes = std::size_t{256} << 20;  // of addresses; memory as needed

}  // namespace

bool Keeper::open(const pmix_proc_t& self) {
  if (table_.create(kTableBytes) != Status::ok) return false;
  full_ = false;
  fences_ = 1;
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

void Keeper::close() {
  if (shares_) node_.close();
  shares_ = false;
  table_.destroy();
  std::free(scratch_);
  scratch_ = nullptr;
  scratch_bytes_ = 0;
}

Keeper::Asked Keeper::asking() const {
  lock();
  const Asked asked{sys::now_ns(), fences_};
  unlock();
  return asked;
}

void Keeper::fenced() {
  lock();
  ++fences_;
  fenced_at_ns_ = sys::now_ns();
  unlock();
}

Counts Keeper::counts() {
  lock();
  const Counts counts = counts_;
  unlock();
  return counts;
}

pmix_value_t* Keeper::find(const kv::Name& name, Kind kind) {
  lock();
  pmix_value_t* value = find_own(name, kind);
  count(value ? &Counts::own : &Counts::missed);
  if (!value && shares_ && (value = find_shared(name, kind)) != nullptr) {
    --counts_.missed;
    count(&Counts::shared);
  }
  unlock();
  return value;
}

pmix_value_t* Keeper::find_own(const kv::Name& name, Kind kind) {
  kv::Value value;
  if (!table_.view().find(name, &value, kv::TableView::kNewest)) return nullptr;
  const auto* const kept = static_cast<const Kept*>(value.data);
  if (kind == Kind::modex && kept->fences.load_relaxed() != fences_) return nullptr;
  return value_make(value.type, kept + 1, value.bytes - sizeof(Kept));
}

// Found in another's table, it is kept in one's own, so that the next get finds it at once.
pmix_value_t* Keeper::find_shared(const kv::Name& name, Kind kind) {
  for (unsigned i = 0; i < node_.seats(); ++i) {
    if (node_.is_mine(i)) continue;
    const kv::TableView* const view = node_.table_of(i);
    kv::Value value;
    if (!view || !view->find(name, &value) || value.bytes < sizeof(Kept)) continue;
    const auto* const kept = static_cast<const Kept*>(value.data);
    const std::uint64_t stamp = kept->stamp.load_acquire();
    if (kind == Kind::modex && stamp < fenced_at_ns_) continue;
    pmix_value_t* const made = value_make(value.type, kept + 1, value.bytes - sizeof(Kept));
    kv::Value packed;
    if (made && value_pack(*made, &packed)) keep(name, stamp, packed);  // our copy: the other may change under us
    if (made) return made;
  }
  return nullptr;
}

void Keeper::keep(const kv::Name& name, std::uint64_t stamp, const kv::Value& value) {
  kv::Value old;
  if (table_.view().find(name, &old, kv::TableView::kNewest) && old.type == value.type && old.bytes == value.bytes + sizeof(Kept) &&
      std::memcmp(static_cast<const char*>(old.data) + sizeof(Kept), value.data, value.bytes) == 0) {
    auto* const kept = static_cast<Kept*>(const_cast<void*>(old.data));  // in our own segment
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

// When this process first asked for anything of that rank, or last for a refresh: kept under a key that no rank can put.
std::uint64_t Keeper::first_asked(const kv::Name& name, const Asked& asked, bool refresh) {
  kv::Name first;
  char nspace[PMIX_MAX_NSLEN + 1];
  std::memcpy(nspace, name.nspace, name.nspace_bytes);
  nspace[name.nspace_bytes] = 0;
  if (!kv::name_make(nspace, name.rank, "pmix.stretto.first", &first)) return 0;
  kv::Value value;
  if (!refresh && table_.view().find(first, &value, kv::TableView::kNewest)) {
    return static_cast<const Kept*>(value.data)->stamp.load_relaxed();
  }
  keep(first, asked.at_ns, {"", 1, PMIX_STRING, 0});
  return full_ ? 0 : asked.at_ns;
}

void Keeper::learn(const kv::Name& name, Question question, Asked asked, const pmix_value_t& value) {
  kv::Value packed;
  if (!value_pack(value, &packed)) return;
  lock();
  const std::uint64_t stamp = question.kind == Kind::job ? kAlways : first_asked(name, asked, question.refresh);
  if (question.kind == Kind::job || asked.fences == fences_) keep(name, stamp, packed);
  unlock();
}

}  // namespace stretto::pmix
