// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a job tell each other, where many ranks have the same to tell.
//
// Each rank tells a hash of its record to all. Then the lowest rank that has a record tells it: one
// rank of a node tells what all ranks of the node have in common. A process receives 8 bytes a rank
// and one record for each that differs.
//
// Two records with the same hash are as unlikely as an error of the memory, but they are found: the
// rank whose record is not the one that was told says so.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/bootstrap.hpp"
#include "sys/hash.hpp"
#include "topo/numbering.hpp"

namespace stretto::topo {

struct RecordExchange {
  Bootstrap ranks;
  // Of `count` ranks, in ascending order, each gives `bytes` bytes. All ranks get count * bytes.
  // Collective over all ranks. False: the host failed. The context is that of `ranks`.
  bool (*told_by)(void* context, const int* tellers, int count, const void* mine, void* all, std::size_t bytes);
};

// Ranks set all bytes of a record, also those that belong to no field.
template <class Record>
class Records {
 public:
  // Collective. False: this rank has no memory, or the host failed, or the hashes of two records
  // are alike. The ranks may differ.
  bool gather(const RecordExchange& exchange, const Record& mine) {
    const Bootstrap& ranks = exchange.ranks;
    const auto size = static_cast<std::size_t>(ranks.size);
    const std::uint64_t own = hash(mine);
    Array<std::uint64_t> hashes;
    // Some bytes a rank, without which this rank cannot send its own: the other ranks wait for it.
    if (!hashes.resize(size, 0) || !of_.resize(size, 0)) std::abort();
    bool fine = ranks.allgather(ranks.context, &own, hashes.data(), sizeof own);
    Numbering numbers;
    Array<int> first;
    for (int r = 0; r < ranks.size; ++r) {
      const std::uint64_t theirs = hashes[static_cast<std::size_t>(r)];
      const int number = numbers.number(static_cast<std::int32_t>(theirs >> 32), static_cast<std::int32_t>(theirs));
      of_[static_cast<std::size_t>(r)] = number;
      if (number == static_cast<int>(first.size())) first.push(r);
    }
    if (numbers.failed() || first.failed() || !records_.resize(first.size(), mine)) std::abort();
    fine = fine && exchange.told_by(ranks.context, first.data(), static_cast<int>(first.size()), &mine, records_.data(),
                                    sizeof(Record));
    return fine && std::memcmp(&of(ranks.rank), &mine, sizeof mine) == 0;
  }

  [[nodiscard]] int count() const { return static_cast<int>(records_.size()); }
  [[nodiscard]] int number(int rank) const { return of_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Record& of(int rank) const { return records_[static_cast<std::size_t>(number(rank))]; }
  [[nodiscard]] const Record* begin() const { return records_.begin(); }
  [[nodiscard]] const Record* end() const { return records_.end(); }

 private:
  static std::uint64_t hash(const Record& record) {
    const std::uint64_t hash = sys::hash(&record, sizeof record);
    const std::uint64_t mixed = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    return mixed ^ mixed >> 29;
  }

  Array<int> of_;  // the number of each rank's record
  Array<Record> records_;
};

}  // namespace stretto::topo
