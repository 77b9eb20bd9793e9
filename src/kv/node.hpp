// SPDX-License-Identifier: BSD-3-Clause
// Where the processes of one job on one node find each other's tables: a small file of seats, mapped by all.
//
// A member writes nothing but its own seat: who it is, its rank, and where its segment can be opened
// (/proc/<pid>/fd/<n>). Nobody believes a seat: the segment behind it must bear the random identity that the seat
// announces, is mapped read-only, and everything in it is checked (table.hpp). So a member that writes nonsense, here
// or there, hides its own data and does no other harm.
//
// A member that dies or leaves makes room for others; who has its segment mapped may go on reading it.
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

  // In the file `path`, which is made if it is not there.
  Status open(const char* path);
  // Takes a seat for this process and announces its table. Unavailable: all seats are taken by the living.
  Status join(std::uint32_t rank, const Table& table);
  void leave();
  void close();
  [[nodiscard]] bool is_member() const { return seat_ != nullptr; }

  // The table of seat i, attached on the way; null: nobody is there, or it cannot be attached. Seats beyond seats() are
  // empty.
  const TableView* table_of(unsigned i);
  [[nodiscard]] unsigned seats() const;
  [[nodiscard]] bool is_mine(unsigned i) const { return &seat(i) == seat_; }
  [[nodiscard]] std::uint32_t rank_of(unsigned i) const {
    return static_cast<std::uint32_t>(seat(i).rank.load_acquire());
  }
  [[nodiscard]] bool was_taken(unsigned i) const { return seat(i).owner.load_acquire() != 0; }
  [[nodiscard]] bool is_alive(unsigned i) const;

  // How often this member has reached a barrier, and another has.
  void reach_barrier();
  [[nodiscard]] std::uint64_t barriers() const;
  [[nodiscard]] std::uint64_t barriers_of(unsigned i) const { return seat(i).barriers.load_acquire(); }

 private:
  struct Seat {
    alignas(shm::kLineBytes) Word owner;  // process id and start time; 0: free
    Word announced;                       // identity of the segment; 0: not yet
    Word rank, descriptor, bytes, table;
    alignas(shm::kLineBytes) Word barriers;
  };
  struct Header {
    alignas(shm::kLineBytes) Word stamp;
    Word high;  // seats beyond were never taken
  };
  struct Attached {
    std::uint64_t announced = 0;
    bool good = false;
    shm::Attachment attachment;
    TableView view;
  };
  static constexpr std::size_t kBytes = sizeof(Header) + kMostMembers * sizeof(Seat);

  Header& header() { return *reinterpret_cast<Header*>(base_); }
  [[nodiscard]] const Header& header() const { return *reinterpret_cast<const Header*>(base_); }
  [[nodiscard]] Seat& seat(unsigned i) const { return reinterpret_cast<Seat*>(base_ + sizeof(Header))[i]; }
  Seat* take_seat();
  bool attach(Attached& attached, const Seat& from, std::uint64_t announced);

  char* base_ = nullptr;
  Seat* seat_ = nullptr;
  Attached* attached_ = nullptr;  // one for each seat
};

}  // namespace stretto::kv
