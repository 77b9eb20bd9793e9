// SPDX-License-Identifier: BSD-3-Clause
#include "kv/table.hpp"

#include <cstring>

namespace stretto::kv {
namespace {

struct Entry {
  std::uint64_t hash;
  std::uint64_t previous;  // offset of the older value; 0: none
  std::uint64_t generation;
  std::uint32_t rank;
  std::uint32_t value_bytes;
  std::uint16_t nspace_bytes, key_bytes;
  std::uint16_t type, scope;
  // Value, namespace and key follow.
};

// A place holds an entry's offset and, above it, bits of the hash. A reader therefore seldom looks
// at entries with other names.
struct Index {
  std::uint64_t count;  // places, a power of two
  Word places[];
};
constexpr unsigned kOffsetBits = 40;
constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kOffsetBits) - 1;
constexpr std::uint64_t tag_of(std::uint64_t hash) { return hash & ~kOffsetMask; }

constexpr std::uint64_t kStamp = 0x53744b7600000000u | sizeof(TableHeader) << 20 | sizeof(Entry) << 8 | sizeof(Index);
constexpr std::uint64_t kFirstPlaces = 256;
constexpr std::size_t kChunkBytes = 16 << 10;

constexpr std::size_t round_up(std::size_t bytes) { return (bytes + 7) & ~std::size_t{7}; }

std::size_t index_bytes(std::uint64_t count) { return sizeof(Index) + count * sizeof(Word); }
std::size_t text_bytes(const Entry& e) { return std::size_t{e.value_bytes} + e.nspace_bytes + e.key_bytes; }

std::uint64_t mixed(std::uint64_t h, std::uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

std::uint64_t hash_text(std::uint64_t h, const char* text, std::size_t bytes) {
  for (; bytes >= 8; bytes -= 8, text += 8) {
    std::uint64_t word;
    std::memcpy(&word, text, 8);
    h = mixed(h, word);
  }
  std::uint64_t rest = bytes;
  for (std::size_t i = 0; i < bytes; ++i) rest = rest << 8 | static_cast<unsigned char>(text[i]);
  return mixed(h, rest);
}

// Copies an entry for a reader, and finds its texts. False: it does not lie in the mapping.
bool entry_at(const TableView& view, std::uint64_t offset, Entry* entry, const char** text) {
  if (offset % 8 != 0 || offset > view.bytes || view.bytes - offset < sizeof(Entry)) return false;
  std::memcpy(entry, view.base + offset, sizeof *entry);
  *text = view.base + offset + sizeof(Entry);
  return view.bytes - offset - sizeof(Entry) >= text_bytes(*entry);
}

bool matches(const Entry& e, const char* text, const Name& name) {
  return e.hash == name.hash && e.rank == name.rank && e.nspace_bytes == name.nspace_bytes &&
         e.key_bytes == name.key_bytes && std::memcmp(text + e.value_bytes, name.nspace, name.nspace_bytes) == 0 &&
         std::memcmp(text + e.value_bytes + e.nspace_bytes, name.key, name.key_bytes) == 0;
}

// The reader's index, checked. null: it does not lie in the mapping.
const Index* index_of(const TableView& view, std::uint64_t offset, std::uint64_t* count) {
  if (offset % 8 != 0 || offset > view.bytes || view.bytes - offset < sizeof(Index)) return nullptr;
  const auto* index = reinterpret_cast<const Index*>(view.base + offset);
  *count = index->count;
  if (*count == 0 || (*count & (*count - 1)) != 0 || *count > view.bytes / sizeof(Word)) return nullptr;
  return view.bytes - offset >= index_bytes(*count) ? index : nullptr;
}

Name named(const char* nspace, std::size_t nspace_bytes, std::uint32_t rank, const char* key, std::size_t key_bytes) {
  return {nspace,
          key,
          rank,
          static_cast<std::uint16_t>(nspace_bytes),
          static_cast<std::uint16_t>(key_bytes),
          hash_text(hash_text(rank, key, key_bytes), nspace, nspace_bytes)};
}

}  // namespace

bool name_make(const char* nspace, std::uint32_t rank, const char* key, Name* name) {
  constexpr std::size_t kMostBytes = 1024;
  const std::size_t nspace_bytes = strnlen(nspace, kMostBytes), key_bytes = strnlen(key, kMostBytes);
  if (nspace_bytes == 0 || key_bytes == 0 || nspace_bytes == kMostBytes || key_bytes == kMostBytes) return false;
  *name = named(nspace, nspace_bytes, rank, key, key_bytes);
  return true;
}

Name name_beside(const Name& name, const char* key) {
  return named(name.nspace, name.nspace_bytes, name.rank, key, std::strlen(key));
}

bool TableView::is_valid() const {
  return header % 8 == 0 && header <= bytes && bytes - header >= sizeof(TableHeader) &&
         reinterpret_cast<const TableHeader*>(base + header)->stamp.load_acquire() == kStamp;
}

bool TableView::find(const Name& name, Value* value, std::uint64_t up_to) const {
  const auto* head = reinterpret_cast<const TableHeader*>(base + header);
  if (up_to == 0) up_to = head->committed.load_acquire();  // pairs with commit()
  std::uint64_t count = 0;
  const Index* index = index_of(*this, head->index.load_acquire(), &count);
  if (!index) return false;
  for (std::uint64_t probe = 0; probe < count; ++probe) {
    const std::uint64_t place = index->places[(name.hash + probe) & (count - 1)].load_acquire();  // pairs with link()
    if (place == 0) return false;
    if (tag_of(place) != tag_of(name.hash)) continue;
    Entry entry;
    const char* text = nullptr;
    if (!entry_at(*this, place & kOffsetMask, &entry, &text)) return false;
    if (!matches(entry, text, name)) continue;
    while (entry.generation > up_to) {
      const std::uint64_t generation = entry.generation;
      if (entry.previous == 0 || !entry_at(*this, entry.previous, &entry, &text)) return false;
      if (entry.generation >= generation || !matches(entry, text, name)) return false;
    }
    *value = {text, entry.value_bytes, entry.type, entry.scope};
    return true;
  }
  return false;
}

Status Table::create(std::size_t bytes) {
  if (const Status status = own_.create(bytes, 0); status != Status::ok) return status;
  const Status status = create_in(own_);
  if (status != Status::ok) destroy();
  return status;
}

Status Table::create_in(shm::Segment& segment) {
  segment_ = &segment;
  header_ = segment_->block_allocate(sizeof(TableHeader));
  const std::uint64_t index = header_ == 0 ? 0 : segment_->block_allocate(index_bytes(kFirstPlaces));
  if (index == 0) return Status::no_memory;
  reinterpret_cast<Index*>(segment_->base() + index)->count = kFirstPlaces;
  header().index.store_release(index);
  header().committed.store_release(0);
  header().stamp.store_release(kStamp);
  return Status::ok;
}

std::uint64_t Table::allocate(std::size_t bytes) {
  bytes = round_up(bytes);
  if (bytes > kChunkBytes / 4) return segment_->block_allocate(bytes);
  if (bytes > chunk_left_) {
    chunk_ = segment_->block_allocate(kChunkBytes);
    chunk_left_ = chunk_ == 0 ? 0 : kChunkBytes;
    if (chunk_ == 0) return 0;
  }
  const std::uint64_t offset = chunk_;
  chunk_ += bytes;
  chunk_left_ -= bytes;
  return offset;
}

// Replaces the index with one of twice the size before it is more than three quarters full.
Status Table::make_room() {
  const auto* old = reinterpret_cast<const Index*>(segment_->base() + header().index.load_relaxed());
  if ((used_ + 1) * 4 <= old->count * 3) return Status::ok;
  const std::uint64_t count = old->count * 2;
  const std::uint64_t offset = segment_->block_allocate(index_bytes(count));
  if (offset == 0) return Status::no_memory;
  auto* index = reinterpret_cast<Index*>(segment_->base() + offset);
  index->count = count;
  for (std::uint64_t i = 0; i < old->count; ++i) {
    const std::uint64_t place = old->places[i].load_relaxed();
    if (place == 0) continue;
    std::uint64_t at = reinterpret_cast<const Entry*>(segment_->base() + (place & kOffsetMask))->hash;
    while (index->places[at & (count - 1)].load_relaxed() != 0) ++at;
    index->places[at & (count - 1)].store_relaxed(place);
  }
  header().index.store_release(offset);
  return Status::ok;
}

void Table::link(std::uint64_t offset) {
  auto* entry = reinterpret_cast<Entry*>(segment_->base() + offset);
  auto* index = reinterpret_cast<Index*>(segment_->base() + header().index.load_relaxed());
  const char* text = reinterpret_cast<const char*>(entry + 1);
  const Name name{text + entry->value_bytes,
                  text + entry->value_bytes + entry->nspace_bytes,
                  entry->rank,
                  entry->nspace_bytes,
                  entry->key_bytes,
                  entry->hash};
  for (std::uint64_t at = entry->hash;; ++at) {
    Word& place = index->places[at & (index->count - 1)];
    const std::uint64_t there = place.load_relaxed();
    if (there != 0) {
      const std::uint64_t older = there & kOffsetMask;
      const auto* other = reinterpret_cast<const Entry*>(segment_->base() + older);
      if (!matches(*other, reinterpret_cast<const char*>(other + 1), name)) continue;
      entry->previous = other->generation == entry->generation ? other->previous : older;
    } else {
      ++used_;
    }
    place.store_release(tag_of(entry->hash) | offset);  // pairs with find()
    return;
  }
}

Status Table::put(const Name& name, const Value& value) {
  if (const Status status = make_room(); status != Status::ok) return status;
  const std::uint64_t offset = allocate(sizeof(Entry) + std::size_t{value.bytes} + name.nspace_bytes + name.key_bytes);
  if (offset == 0) return Status::no_memory;
  auto* entry = reinterpret_cast<Entry*>(segment_->base() + offset);
  *entry = {name.hash,      0,           header().committed.load_relaxed() + 1,
            name.rank,      value.bytes, name.nspace_bytes,
            name.key_bytes, value.type,  value.scope};
  char* text = reinterpret_cast<char*>(entry + 1);
  if (value.bytes != 0) std::memcpy(text, value.data, value.bytes);
  std::memcpy(text + value.bytes, name.nspace, name.nspace_bytes);
  std::memcpy(text + value.bytes + name.nspace_bytes, name.key, name.key_bytes);
  ++pending_;
  link(offset);
  return Status::ok;
}

void Table::commit() {
  if (pending_ == 0) return;
  pending_ = 0;
  header().committed.store_release(header().committed.load_relaxed() + 1);  // pairs with find()
}

}  // namespace stretto::kv
