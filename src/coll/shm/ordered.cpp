// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/ordered.hpp"

#include <algorithm>

#include "coll/shm/paths.hpp"

namespace stretto::coll_shm {

namespace {

// The bytes [begin, end) of a region's data; both are between elements.
Region part(const Region& region, std::uint64_t begin, std::uint64_t end) {
  if (!region.layout || region.layout->size == 0) return region;
  const std::uint64_t size = region.layout->size;
  return {address_at(region.base, static_cast<std::ptrdiff_t>(begin / size) * region.layout->extent),
          (end - begin) / size, region.layout};
}

// A piece of contributions in private memory: `grown` op= each contribution in turn. The function's
// second operand is its result, so the two change places.
class Piece {
 public:
  Piece(const FunctionArgs& o, const FunctionOp& operation)
      : operation_(operation), grown_(o.grown), arrived_(o.arrived) {}

  // The next contribution has `bytes` bytes. `first`: it is the first one.
  void start(std::uint64_t bytes, bool first) {
    first_ = first;
    stream_.start(part(first ? grown_ : arrived_, 0, bytes));
    bytes_ = bytes;
  }
  [[nodiscard]] std::uint64_t wants() const { return stream_.left(); }
  void add(const char* data, std::size_t bytes) { stream_.unpack(data, bytes); }
  void add_all(const Region& contribution) { region_copy(part(first_ ? grown_ : arrived_, 0, bytes_), contribution); }
  void combine() {
    if (first_ || bytes_ == 0) return;
    operation_.fold(operation_.context, grown_.base, arrived_.base, bytes_ / grown_.layout->size);
    const Region result = arrived_;
    arrived_ = grown_;
    grown_ = result;
  }
  [[nodiscard]] Region result() const { return part(grown_, 0, bytes_); }

 private:
  const FunctionOp& operation_;
  Region grown_;
  Region arrived_;
  Stream stream_;
  std::uint64_t bytes_ = 0;
  bool first_ = true;
};

// As in combine.hpp, but a function needs the ranks' pieces one by one, in its own memory.
class FunctionCombiner {
 public:
  FunctionCombiner(shm::Team& team, From from, int first, int last, const Region& own, const Region& out,
                   std::uint64_t bytes, std::uint64_t piece_bytes, const FunctionArgs& o, const FunctionOp& operation)
      : team_(team),
        from_(from),
        first_(first),
        last_(last),
        own_(own),
        out_(out),
        bytes_(bytes),
        piece_bytes_(piece_bytes),
        allowed_(bytes),
        rank_(first),
        piece_(o, operation),
        done_(first == last) {
    for (int r = first; r < last; ++r) team.states()[r].reader.start();
    begin();
  }

  void allow(std::uint64_t bytes) { allowed_ = bytes; }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] std::uint64_t combined() const { return combined_; }
  [[nodiscard]] bool misses(int rank) const {
    return !done_ && rank == rank_ && rank != last_ &&
           coll_shm::misses(team_.states()[rank].reader, queue_of(team_, from_, rank));
  }

  bool step(shm::Call& call) {
    if (rank_ == last_) return store();
    if (rank_ == team_.rank()) {
      piece_.add_all(part(own_, combined_, combined_ + now_));
      next_rank();
      return true;
    }
    shm::InQueue& queue = queue_of(team_, from_, rank_);
    shm::Reader& reader = team_.states()[rank_].reader;
    if (!reader.poll(call, queue)) return false;
    if (!reader.failed() && reader.message_bytes() != bytes_) {
      call.report_length(rank_, reader.message_bytes(), bytes_);
    }
    if (call.status() != Status::ok) return true;
    const std::size_t bytes =
        reader.bytes() < piece_.wants() ? reader.bytes() : static_cast<std::size_t>(piece_.wants());
    piece_.add(reader.data(), bytes);
    if (bytes != 0) reader.take(queue, bytes);
    if (piece_.wants() == 0) next_rank();
    return true;
  }

 private:
  void begin() {
    const std::uint64_t left = bytes_ - combined_;
    now_ = left < piece_bytes_ ? left : piece_bytes_;
    rank_ = first_;
    piece_.start(now_, true);
  }

  void next_rank() {
    piece_.combine();
    if (++rank_ != last_) return piece_.start(now_, false);
    store();
  }

  bool store() {
    if (allowed_ < combined_ + now_) return false;
    region_copy(part(out_, combined_, combined_ + now_), piece_.result());
    combined_ += now_;
    done_ = combined_ == bytes_;
    if (!done_) begin();
    return true;
  }

  shm::Team& team_;
  From from_;
  int first_;
  int last_;
  Region own_;
  Region out_;
  std::uint64_t bytes_;
  std::uint64_t piece_bytes_;
  std::uint64_t allowed_;
  int rank_;  // the rank whose contribution to this piece comes next
  std::uint64_t combined_ = 0;
  std::uint64_t now_ = 0;  // length of this piece
  Piece piece_;
  bool done_;
};

class FunctionLink {
 public:
  FunctionLink(const FunctionArgs& o, const FunctionOp& operation, const Region& forward, std::uint64_t piece_bytes,
               bool exclusive)
      : o_(o), forward_(forward), piece_bytes_(piece_bytes), exclusive_(exclusive), piece_(o, operation) {
    start();
  }

  void pass(const char* prefix, std::size_t bytes) {
    while (bytes != 0) {
      const std::size_t now = bytes < piece_.wants() ? bytes : static_cast<std::size_t>(piece_.wants());
      piece_.add(prefix, now);
      prefix += now;
      bytes -= now;
      if (piece_.wants() == 0) finish();
    }
  }
  [[nodiscard]] std::uint64_t ready() const { return ready_; }

 private:
  void start() {
    const std::uint64_t left = o_.own.bytes() - ready_;
    now_ = left < piece_bytes_ ? left : piece_bytes_;
    piece_.start(now_, true);
  }

  // In place, the prefix lies over what it grows by.
  void finish() {
    const std::uint64_t end = ready_ + now_;
    const Region prefix = piece_.result();
    piece_.start(now_, false);
    if (!exclusive_ || forward_.layout) piece_.add_all(part(o_.own, ready_, end));
    if (exclusive_) region_copy(part(o_.out, ready_, end), prefix);
    if (!exclusive_ || forward_.layout) piece_.combine();
    if (!exclusive_) region_copy(part(o_.out, ready_, end), piece_.result());
    if (exclusive_ && forward_.layout) region_copy(part(forward_, ready_, end), piece_.result());
    ready_ = end;
    start();
  }

  const FunctionArgs& o_;
  Region forward_;  // what the successor gets; empty at the end of the chain
  std::uint64_t piece_bytes_;
  bool exclusive_;
  Piece piece_;
  std::uint64_t now_ = 0;
  std::uint64_t ready_ = 0;
};

// Slices and pieces begin between elements. A piece is one fragment, or a few if an element is
// longer than a slot.
class FunctionParts {
 public:
  using Combiner = FunctionCombiner;
  using Link = FunctionLink;

  FunctionParts(const shm::Team& team, const FunctionArgs& o, const FunctionOp& operation)
      : o_(o),
        operation_(operation),
        size_(o.own.layout && o.own.layout->size != 0 ? o.own.layout->size : 1),
        most_bytes_(team.fragment_bytes(~std::uint64_t{0})) {}

  [[nodiscard]] FunctionParts with(const Region& own, const Region& out) const {
    FunctionParts other = *this;
    other.o_.own = own;
    other.o_.out = out;
    return other;
  }
  [[nodiscard]] static bool in_order() { return true; }
  [[nodiscard]] bool rounds() const { return operation_.rounds; }
  void join(const Region& out, const Region& left, const Region& right) const {
    Piece piece(o_, operation_);
    const std::uint64_t total = bytes(), most = most_piece_bytes();
    for (std::uint64_t at = 0, now = 0; at < total; at += now) {
      now = std::min(total - at, most);
      piece.start(now, true);
      for (const Region* operand : {&left, &right}) {
        piece.add_all(part(*operand, at, at + now));
        piece.combine();
        if (operand == &left) piece.start(now, false);
      }
      region_copy(part(out, at, at + now), piece.result());
    }
  }

  [[nodiscard]] std::uint64_t bytes() const { return o_.own.bytes(); }
  [[nodiscard]] bool in_place() const { return o_.own.base == o_.out.base; }
  [[nodiscard]] bool good() const { return o_.good; }
  [[nodiscard]] static int least_ranks_to_split() { return kRanksToSplitByFunction; }
  [[nodiscard]] std::uint64_t begin(int rank, int ranks) const { return bytes() / size_ * rank / ranks * size_; }
  [[nodiscard]] shm::Cut cut(const shm::Team& team, std::uint64_t bytes, bool busy) const {
    const std::size_t wanted = std::min<std::size_t>(team.fragment_bytes(bytes, busy), most_piece_bytes());
    if (size_ > most_bytes_) return {wanted, size_};
    return {size_ > wanted ? size_ : wanted / size_ * size_, 0};
  }
  [[nodiscard]] Region own(std::uint64_t begin, std::uint64_t end) const { return part(o_.own, begin, end); }
  [[nodiscard]] Region out(std::uint64_t begin, std::uint64_t end) const { return part(o_.out, begin, end); }
  [[nodiscard]] Combiner combiner(shm::Team& team, From from, int first, int last, std::uint64_t at,
                                  const Region& to) const {
    const std::uint64_t bytes = to.bytes();
    return {team, from, first, last, part(o_.own, at, at + bytes), to, bytes, piece_bytes(team), o_, operation_};
  }
  static bool combine_whole(shm::Call&, From, std::uint64_t, const Region&) { return false; }
  [[nodiscard]] Link link(const Region& forward, bool exclusive) const {
    return {o_, operation_, forward, most_piece_bytes(), exclusive};
  }

 private:
  [[nodiscard]] std::uint64_t piece_bytes(const shm::Team& team) const {
    const shm::Cut fragment = slice_cut(team, *this);
    return fragment.period_bytes == 0 ? fragment.fragment_bytes : most_piece_bytes();
  }
  [[nodiscard]] std::uint64_t most_piece_bytes() const { return elements_at_once(size_) * size_; }

  FunctionArgs o_;
  const FunctionOp& operation_;
  std::size_t size_;          // of an element's data
  std::uint64_t most_bytes_;  // of a fragment
};

}  // namespace

void reduce_ordered(shm::Call& call, const FunctionArgs& o, const FunctionOp& operation, int root,
                    const Selection& selection) {
  reduce_parts(call, FunctionParts(call.team(), o, operation), root, selection);
}

void allreduce_ordered(shm::Call& call, const FunctionArgs& o, const FunctionOp& operation,
                       const Selection& selection) {
  allreduce_parts(call, FunctionParts(call.team(), o, operation), selection);
}

void reduce_scatter_ordered(shm::Call& call, const FunctionArgs& o, const FunctionOp& operation,
                            const std::uint64_t* begins, const Selection& selection) {
  const FunctionParts parts(call.team(), o, operation);
  const std::uint64_t size = o.own.layout ? o.own.layout->size : 0;
  reduce_scatter_parts(call, parts, [&](int rank) { return begins[rank] * size; }, selection);
}

void scan_ordered(shm::Call& call, const FunctionArgs& o, const FunctionOp& operation, bool exclusive,
                  const Selection& selection) {
  scan_parts(call, FunctionParts(call.team(), o, operation), exclusive, selection);
}

}  // namespace stretto::coll_shm
