// SPDX-License-Identifier: BSD-3-Clause
// Parts of a buffer whose data have come, and which are to go home together. Neighbours become one
// run, because what the kernel does for a move it does once a run: above all, it interrupts each
// other processor that runs a thread of the process.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::overlap {

struct ReadyRun {
  std::uint64_t offset = 0, bytes = 0;
  [[nodiscard]] std::uint64_t end() const { return offset + bytes; }
  bool operator==(const ReadyRun&) const = default;
};

// Of one cover; parts do not overlap. For one thread.
class ReadyRuns {
 public:
  static constexpr std::size_t kMost = 64;
  [[nodiscard]] bool empty() const { return count_ == 0; }
  void clear() { count_ = 0; }
  // False: there is no room, and all is as before.
  bool add(const ReadyRun& part) {
    ReadyRun* joined = nullptr;
    for (std::size_t i = 0; i < count_; ++i) {
      ReadyRun& run = runs_[i];
      if (run.end() != part.offset && part.end() != run.offset) continue;
      if (joined == nullptr) {
        run = {run.offset < part.offset ? run.offset : part.offset, run.bytes + part.bytes};
        joined = &run;
      } else {  // the part fills the gap between two
        *joined = {joined->offset < run.offset ? joined->offset : run.offset, joined->bytes + run.bytes};
        run = runs_[--count_];
        return true;
      }
    }
    if (joined != nullptr) return true;
    if (count_ == kMost) return false;
    runs_[count_++] = part;
    return true;
  }
  // A run of at least so many bytes, which is here no more. False: there is none.
  bool take(std::uint64_t least_bytes, ReadyRun* taken) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (runs_[i].bytes < least_bytes) continue;
      *taken = runs_[i];
      runs_[i] = runs_[--count_];
      return true;
    }
    return false;
  }

 private:
  ReadyRun runs_[kMost];
  std::size_t count_ = 0;
};

}  // namespace stretto::overlap
