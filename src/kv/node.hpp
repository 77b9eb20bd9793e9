// SPDX-License-Identifier: BSD-3-Clause
// How the processes of one job on one node find each other's tables: by a small file of entries,
// which all of them map.
//
// A member writes only its own entry: its identity, its rank, and where its segment can be opened
// (/proc/<pid>/fd/<n>). Readers do not trust an entry. The segment behind it must bear the random
// identity that the entry announces, and readers map it read-only and check everything in it
// (table.hpp). A member that writes nonsense into its entry or segment therefore hides its own data
// and does no other harm.
//
// A member that dies or leaves makes room for others. Processes that have mapped its segment may go
// on reading it.
//
// Not thread-safe: callers hold a lock of their process.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "kv/table.hpp"

namespace stretto::kv {

class Node {
 public:
  static constexpr unsigned kMostMembers = 1024;

  // Uses the file `path`, and makes it if it does not exist.
  Status open(const char* path);
  // Takes an entry for this process and announces its table. Unavailable: living processes have all
  // entries.
  Status join(std::uint32_t rank, const Table& table);
  void leave();
  void close();
  [[nodiscard]] bool is_member() const { return entry_ != nullptr; }

  // The table of entry i, which this call attaches if need be. null: nobody is there, or the table
  // cannot be attached. Entries beyond entries() are empty.
  const TableView* table_of(unsigned i);
  [[nodiscard]] unsigned entries() const;
  [[nodiscard]] bool is_mine(unsigned i) const { return &entry(i) == entry_; }
  [[nodiscard]] std::uint32_t rank_of(unsigned i) const {
    return static_cast<std::uint32_t>(entry(i).rank.load_acquire());
  }
  [[nodiscard]] bool was_taken(unsigned i) const { return entry(i).owner.load_acquire() != 0; }
  [[nodiscard]] bool is_alive(unsigned i) const;

  // How often this member, and another one, has reached a barrier.
  void reach_barrier();
  [[nodiscard]] std::uint64_t barriers() const;
  [[nodiscard]] std::uint64_t barriers_of(unsigned i) const { return entry(i).barriers.load_acquire(); }

 private:
  struct Entry {
    alignas(shm::kLineBytes) Word owner;  // process id and start time; 0: free
    Word announced;                       // identity of the segment; 0: not yet
    Word rank, descriptor, bytes, table;
    alignas(shm::kLineBytes) Word barriers;
  };
  struct Header {
    alignas(shm::kLineBytes) Word stamp;
    Word high;  // no member ever took an entry from this number on
  };
  struct Attached {
    std::uint64_t announced = 0;
    bool good = false;
    shm::Attachment attachment;
    TableView view;
  };
  static constexpr std::size_t kBytes = sizeof(Header) + kMostMembers * sizeof(Entry);

  Header& header() { return *reinterpret_cast<Header*>(base_); }
  [[nodiscard]] const Header& header() const { return *reinterpret_cast<const Header*>(base_); }
  [[nodiscard]] Entry& entry(unsigned i) const { return reinterpret_cast<Entry*>(base_ + sizeof(Header))[i]; }
  Entry* take_entry();
  bool attach(Attached& attached, const Entry& from, std::uint64_t announced);

  char* base_ = nullptr;
  Entry* entry_ = nullptr;
  Attached* attached_ = nullptr;  // one for each entry
};

}  // namespace stretto::kv
