// SPDX-License-Identifier: BSD-3-Clause
// The values that one process has put: a hash table in its own segment. Only the owner writes it.
// Everybody reads it without a lock.
//
// Entries are written once and never moved or changed. A newer value of a key is a new entry that
// names the older one. The index is an array of entries' offsets with open addressing. When it
// fills up, the owner replaces it with a larger one. Readers that are still in the old index miss
// what came later, as if they had read sooner.
//
// Generations. What is put belongs to the next generation. Readers see it when the owner commits,
// all at once. A reader takes the newest entry of a key whose generation is committed.
//
// Order: the owner writes an entry, then stores its offset into the index (release) [link]. The
// reader loads the offset (acquire) and sees the whole entry. The owner stores `committed` after
// the links of its generation (release). The reader loads it before them (acquire). A reader that
// sees a generation committed therefore finds all its entries.
//
// Readers trust nothing. They check every offset and length against the mapping before they follow
// it, and check a copy. Along a chain of older entries generations get smaller, so the chain ends.
// The owner's pages are reserved before it writes them.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "shm/atomic.hpp"
#include "shm/segment.hpp"

namespace stretto::kv {

inline constexpr std::uint32_t kWildcard = 0xfffffffeu;  // rank of values that belong to the whole job

// The name of a value: namespace, rank and key. The caller owns the texts.
struct Name {
  const char* nspace;
  const char* key;
  std::uint32_t rank;
  std::uint16_t nspace_bytes, key_bytes;
  std::uint64_t hash;
};
// False: a text is empty or too long.
bool name_make(const char* nspace, std::uint32_t rank, const char* key, Name* name);
// The name of another key under the same namespace and rank.
Name name_beside(const Name& name, const char* key);

struct Value {
  const void* data = nullptr;
  std::uint32_t bytes = 0;
  std::uint16_t type = 0;  // defined by those who put and get
  std::uint16_t scope = 0;
};

using Word = shm::Atomic<std::uint64_t>;  // a word of shared memory

struct TableHeader {
  Word stamp;      // of the layout: sizes of the structures in memory
  Word index;      // offset of the current index
  Word committed;  // the last committed generation
};

// A table as its readers see it. It is plain data; the caller owns the mapping.
struct TableView {
  const char* base = nullptr;
  std::size_t bytes = 0;
  std::uint64_t header = 0;  // offset

  static constexpr std::uint64_t kNewest = ~std::uint64_t{0};
  [[nodiscard]] bool is_valid() const;
  // The committed value of this name. With `up_to`, the newest value up to that generation;
  // kNewest: any value.
  bool find(const Name& name, Value* value, std::uint64_t up_to = 0) const;
};

class Table {
 public:
  // Makes the table in a segment of its own of at most `bytes` bytes. Only the used part is backed
  // by memory.
  Status create(std::size_t bytes);
  // Makes the table beside other things in a segment of this process. It goes when the segment
  // goes.
  Status create_in(shm::Segment& segment);
  void destroy() { own_.destroy(); }
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  Status put(const Name& name, const Value& value);
  void commit();

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
  std::uint64_t chunk_ = 0, chunk_left_ = 0;  // small entries come from chunks
  std::uint64_t used_ = 0;                    // used places of the index
  std::uint64_t pending_ = 0;                 // uncommitted entries
};

}  // namespace stretto::kv
