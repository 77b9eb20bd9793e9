// SPDX-License-Identifier: BSD-3-Clause
// A recorded job: the recordings of its ranks (src/record/format.hpp), each in a file of its own,
// or all in one file that `stretto-model job pack` has made.
//
// The packed file: "STRETJOB", version, method (0: stored, 1: zstd), bytes before packing (8). Then
// as one block: the number of ranks (8), the ranks' headers, the lengths of each rank's streams
// (8 each), and the streams, those of one kind together. So what is alike on many ranks lies close
// together, and packs well.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "record/reader.hpp"

namespace stretto::modelling {

class JobFile {
 public:
  // Ends the program if a file cannot be read, ranks are missing, or they are of several jobs.
  explicit JobFile(const std::vector<std::string>& names);

  [[nodiscard]] int ranks() const { return static_cast<int>(recordings_.size()); }
  [[nodiscard]] const record::Recording& of(int rank) const { return *recordings_[static_cast<std::size_t>(rank)]; }
  // All ranks are on one host, or the recording says so.
  [[nodiscard]] bool has_one_clock() const;
  // When each rank left MPI_Init, in seconds from the first. 0 where clocks differ.
  [[nodiscard]] std::vector<double> starts() const;
  // Writes all into one file. Returns how many bytes it has.
  std::uint64_t pack(const std::string& name) const;

 private:
  void take_packed(const std::string& name);
  void take_rank(const std::string& name);
  void add(std::unique_ptr<record::Recording> recording, const std::string& name);

  std::vector<std::vector<std::uint8_t>> bytes_;
  std::vector<std::unique_ptr<record::Recording>> recordings_;  // by rank
};

}  // namespace stretto::modelling
