// SPDX-License-Identifier: BSD-3-Clause
// Reads the recording of one rank (format.hpp), whatever it holds: a file of a process that was
// killed has an incomplete end, and any other file is refused with a reason.
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "record/format.hpp"

namespace stretto::record {

// Bytes of the file.
struct Span {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
};

// The values of one role of a term.
struct Values {
  const std::int64_t* data = nullptr;
  std::size_t size = 0;

  explicit operator bool() const { return data != nullptr; }
  [[nodiscard]] std::int64_t one(std::int64_t otherwise = 0) const { return size == 1 ? data[0] : otherwise; }
  const std::int64_t* begin() const { return data; }
  const std::int64_t* end() const { return data + size; }
};

// Exactly what the calls of a term have taken, in ticks.
struct Totals {
  std::uint64_t calls = 0, gap = 0, duration = 0, longest_gap = 0, longest_duration = 0;
};

struct Communicator {
  std::int64_t id = 0, flags = 0, rank = 0, size = 0, remote_size = 0;
  std::uint32_t first_member = 0;    // in Recording::members: those of the own group, then the remote ones
  std::uint32_t first_neighbor = 0;  // in Recording::members: sources, then destinations
  std::uint32_t sources = 0, destinations = 0;
};

struct Text {
  std::uint64_t number = 0;
  const char* text = nullptr;  // not terminated
  std::size_t size = 0;
};

class Recording {
 public:
  // Takes the streams of a file apart. The bytes must stay. False: failure() says why.
  bool read(Span file);
  // The same of a header and streams that are whole already.
  bool read(const Header& header, const Span (&streams)[kStreams]);
  [[nodiscard]] const char* failure() const { return failure_; }

  [[nodiscard]] const Header& header() const { return header_; }
  [[nodiscard]] Span stream(Stream of) const { return streams_[static_cast<int>(of)]; }
  [[nodiscard]] double seconds_a_tick() const { return seconds_a_tick_; }
  [[nodiscard]] std::uint32_t terms() const { return static_cast<std::uint32_t>(first_word_.size() - 1); }
  [[nodiscard]] Values values(std::uint32_t term, Role role) const;
  [[nodiscard]] Text function(std::uint32_t term) const;
  [[nodiscard]] Text place(std::uint32_t term) const;  // empty: unknown
  [[nodiscard]] const Array<Communicator>& communicators() const { return communicators_; }
  [[nodiscard]] const Communicator* communicator(std::int64_t id) const;
  // Ranks in MPI_COMM_WORLD, -1 for foreign ones; and neighbours.
  [[nodiscard]] const Array<std::int32_t>& members() const { return members_; }
  [[nodiscard]] const Array<Text>& functions() const { return functions_; }
  [[nodiscard]] const Array<Text>& places() const { return places_; }
  // Without calls: the process was killed.
  [[nodiscard]] Totals totals(std::uint32_t term) const { return totals_[term]; }
  // The longest distance of a copy.
  [[nodiscard]] std::uint64_t reach() const { return reach_; }

 private:
  bool fail(const char* why);
  bool join(Span file);
  bool define();
  bool add_term(Span words);
  bool add_text(Array<Text>& to, Span bytes);
  bool add_communicator(Span bytes);
  bool add_neighbors(Span bytes);
  void add_totals();
  bool measure();

  const char* failure_ = nullptr;
  Header header_{};
  Span streams_[kStreams] = {};
  Array<std::uint8_t> joined_;  // streams of a file
  Array<std::int64_t> words_;
  Array<std::uint64_t> first_word_;  // of each term, and one more
  Array<Text> functions_, places_;
  Array<Communicator> communicators_;
  Array<std::int32_t> members_;
  Array<Totals> totals_;
  double seconds_a_tick_ = 0;
  std::uint64_t reach_ = 0;
};

// The calls of a recording, one after the other.
class Calls {
 public:
  explicit Calls(const Recording& recording);

  struct Call {
    std::uint32_t term = 0;
    double gap = 0, duration = 0;  // seconds
    double processor = -1;         // of the gap; negative: not known
  };
  // False: there are no more calls, or no memory.
  bool next(Call* call);

 private:
  bool next_term(std::uint32_t* term);
  struct Times {
    Span left;
    std::uint32_t run = 0;
    Array<float> expected;  // by term
  };
  bool next_time(Times& times, std::uint32_t term, double* seconds) const;

  const Recording* recording_;
  Span tokens_, processor_;
  std::uint64_t copies_ = 0, distance_ = 0, count_ = 0, next_processor_ = 0;
  double processor_ticks_ = 0;
  Array<std::uint32_t> history_;  // a power of two above reach()
  Times gaps_, durations_;
};

}  // namespace stretto::record
