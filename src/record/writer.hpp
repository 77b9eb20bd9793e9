// SPDX-License-Identifier: BSD-3-Clause
// Writes the recording of one rank (format.hpp). One thread at a time calls it.
//
// A call costs a look at the term that was expected next, or else at a table; two times; and a few
// stores into the file's memory. What a process holds beside is bounded: a table of the terms, and
// the last kHistory of them.
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "record/format.hpp"
#include "record/times.hpp"

namespace stretto::record {

// What a rank says of itself.
struct About {
  int rank = 0, ranks = 1;
  double bound = 0.01;
  const char* host = "";
  const char* mpi = "";
  const char* program = "";
  const char* processors = "";
};

class Writer {
 public:
  // Returns 0 or errno, as all functions that return int.
  int open(const char* path, const About& about);
  // The times are of another clock, which all ranks have in common: a tick is a nanosecond, and
  // these are the first and the last.
  void set_clock(std::uint64_t first_ns, std::uint64_t last_ns);
  // The file is complete. No more calls.
  void finish();
  // What has gone wrong with the file; 0: nothing. Nothing is written any more then.
  [[nodiscard]] int failure() const { return failure_; }

  // The number of a term: `size` words of role, count and values as the definition has them.
  std::uint32_t term(const std::int64_t* words, std::size_t size);
  // The next call. Times in ticks of the counter. `processor`: of the gap; negative: not known.
  void call(std::uint32_t term, std::uint64_t gap, std::uint64_t duration, double processor = -1);

  void define(Definition kind, const std::int64_t* values, std::size_t size);
  // The same with a text behind the number.
  void define(Definition kind, std::uint64_t number, const char* text);

 private:
  static constexpr std::uint32_t kHistory = 1u << 15;  // terms that a copy may reach back
  static constexpr std::uint32_t kPairs = 1u << 14;
  static constexpr std::uint32_t kMostTerms = 1u << 16;  // known at a time
  static constexpr std::uint32_t kCopyFrom = 8;          // terms as expected, before they become a copy
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  struct Open {  // a stream
    Chunk* chunk = nullptr;
    std::uint8_t* at = nullptr;
    std::uint8_t* end = nullptr;
  };
  struct Term {
    std::uint64_t hash;
    std::uint32_t first, size;  // its words
    TimeWriter::Expected gap, duration;
    std::uint64_t calls, gap_ticks, duration_ticks, longest_gap, longest_duration;
  };
  struct Times {
    TimeWriter writer;
    std::uint8_t* run = nullptr;  // the byte that counts times as expected
  };

  bool next_chunk(Stream stream);
  bool need(Stream stream, std::size_t bytes);
  void put(Stream stream, const std::uint8_t* bytes, std::size_t size);
  void advance(Stream stream, std::size_t bytes);
  void put_varint(Stream stream, std::uint64_t value);
  void put_term(std::uint32_t term);
  void put_time(Stream stream, Times& times, TimeWriter::Expected& expected, std::uint64_t ticks);
  void put_definition(Definition kind, const std::uint8_t* bytes, std::size_t size);
  void mark_time();
  void put_totals();
  void forget_terms();
  bool grow_places();
  [[nodiscard]] bool has_words(std::uint32_t place, const std::int64_t* words, std::size_t size) const;
  Open& of(Stream stream) { return streams_[static_cast<int>(stream)]; }

  int file_ = -1;
  int failure_ = 0;
  bool has_other_clock_ = false;
  Header* header_ = nullptr;
  std::uint64_t file_bytes_ = 0;
  std::uint8_t* free_ = nullptr;  // chunks that are mapped and have no stream
  std::uint8_t* free_end_ = nullptr;
  Open streams_[kStreams] = {};

  Array<std::int64_t> words_;
  Array<Term> terms_;
  Array<std::uint32_t> places_;  // of terms by hash, open addressing; 0: none
  std::uint32_t first_term_ = 0;

  Array<std::uint32_t> history_;
  Array<std::uint64_t> pairs_;  // where two terms have followed one another last, plus 1
  std::uint64_t count_ = 0;
  std::uint64_t expected_at_ = kNowhere;
  std::uint32_t previous_ = 0;
  std::uint32_t matched_ = 0;
  std::uint8_t* copy_length_ = nullptr;  // of the copy that grows

  Times gaps_, durations_;
  std::uint64_t last_processor_ = 0;  // number of the call of the last word on its processor
  Array<std::uint8_t> scratch_;
};

}  // namespace stretto::record
