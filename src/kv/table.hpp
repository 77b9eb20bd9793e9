// SPDX-License-Identifier: BSD-3-Clause
// What one process has put: a hash table in its own segment, which it alone writes and everybody reads without a lock.
//
// Entries are written once and never moved or changed; a newer value of a key is a new entry that names the older one.
// The index, an array of entries' offsets with open addressing, is replaced by a larger one when it fills up; readers
// that are still in the old one miss what came later, as if they had read sooner.
//
// Generations. What is put belongs to the next generation, and readers see it when the owner commits, all at once. A
// reader takes the newest entry of a key whose generation is committed.
//
// Order: the owner writes an entry, then stores its offset into the index (release) [link]; the reader loads the offset
// (acquire) and sees all of it. `committed` is stored after the links of its generation (release) and loaded before
// them (acquire): who sees a generation committed finds all its entries.
//
// Readers trust nothing: every offset and length is checked against the mapping before it is followed, on a copy. Along
// a chain of older entries generations get smaller, so it ends. The writer's pages are reserved before they are
// written.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "shm/atomic.hpp"
#include "shm/segment.hpp"

namespace stretto::kv {

inline constexpr std::uint32_t kWildcard = 0xfffffffeu;  // rank of what belongs to the whole job

// Whose value: namespace, rank and key. The texts are the caller's.
struct Name {
  const char* nspace;
  const char* key;
  std::uint32_t rank;
  std::uint16_t nspace_bytes, key_bytes;
  std::uint64_t hash;
};
// False: a text is empty or too long.
bool name_make(const char* nspace, std::uint32_t rank, const char* key, Name* name);
// What else lies under that namespace and rank.
Name name_beside(const Name& name, const char* key);

struct Value {
  const void* data = nullptr;
  std::uint32_t bytes = 0;
  std::uint16_t type = 0;  // means something to those who put and get
  std::uint16_t scope = 0;
};

using Word = shm::Atomic<std::uint64_t>;  // of what lies in memory

struct TableHeader {
  Word stamp;      // of the layout: sizes of what lies here
  Word index;      // offset of the current index
  Word committed;  // generation
};

// A table as its readers see it. Plain data; the mapping is the caller's.
struct TableView {
  const char* base = nullptr;
  std::size_t bytes = 0;
  std::uint64_t header = 0;  // offset

  static constexpr std::uint64_t kNewest = ~std::uint64_t{0};
  [[nodiscard]] bool is_valid() const;
  // The committed value of this name, or, up to kNewest, any.
  bool find(const Name& name, Value* value, std::uint64_t up_to = 0) const;
};

class Table {
 public:
  // In a segment of its own of at most `bytes`, of which only what is used is backed by memory.
  Status create(std::size_t bytes);
  // Beside other things in a segment of this process, with which it goes.
  Status create_in(shm::Segment& segment);
  void destroy() { own_.destroy(); }
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  Status put(const Name& name, const Value& value);
  void commit();
  [[nodiscard]] bool has_uncommitted() const { return pending_ != 0; }

  [[nodiscard]] const shm::Segment& segment() const { return *segment_; }
  [[nodiscard]] TableView view() const { return {segment_->base(), segment_->bytes(), header_}; }

 private:
  TableHeader& header() { return *reinterpret_cast<TableHeader*>(segment_->base() + header_); }
  std::uint64_t allocate(std::size_t bytes);
  Status make_room();
  void link(std::uint64_t entry);

  shm::Segment own_;
  shm::Segment* segment_ = &own_;
  std::uint64_t header_ = 0;
  std::uint64_t chunk_ = 0, chunk_left_ = 0;  // entries are cut from blocks
  std::uint64_t used_ = 0;                    // places of the index
  std::uint64_t pending_ = 0;                 // entries not committed yet
};

}  // namespace stretto::kv
