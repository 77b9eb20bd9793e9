// SPDX-License-Identifier: BSD-3-Clause
// Reduce, Allreduce, Reduce_scatter(_block), Scan and Exscan of dense elements by a kernel (the rest: ordered.cpp).
//
//   slices     every rank sends slice d of its vector to rank d, which combines all contributions to it: each rank copies
//              in (P-1)/P of its vector and combines m/P of P contributions. Reduce_scatter is that; Allreduce publishes
//              each slice as it grows; Reduce sends it to the root
//   flat       short Allreduce and Scan: everybody publishes all it has and combines what everybody published. One line
//              transfer deep
//   root       short Reduce, or two ranks: all send to the root, which combines
//   chain      long Scan: a rank waits for the prefix of its predecessor, piece by piece, and passes its own on
#include "coll/direct/reduce.hpp"

#include <cstdlib>
#include <cstring>

#include "base/profile.hpp"
#include "coll/direct/direct.hpp"

namespace stretto::coll::direct {

namespace {

Region plain(const char* base, std::uint64_t bytes) { return {const_cast<char*>(base), bytes, &kPlainByte}; }

// Slices of a vector begin at multiples of 64 bytes: no element is split, no line shared.
struct Slices {
  std::uint64_t bytes;
  int size;
  [[nodiscard]] std::uint64_t begin(int rank) const {
    constexpr std::uint64_t kUnit = 64;
    const std::uint64_t units = (bytes + kUnit - 1) / kUnit;
    const std::uint64_t at = units * rank / size * kUnit;
    return at < bytes ? at : bytes;
  }
  [[nodiscard]] std::uint64_t length(int rank) const { return begin(rank + 1) - begin(rank); }
};

// Steps the messages that go out through channels, in one order for all ranks: by position, then by destination; all are
// cut alike. Returns whether one moved.
//
// Why in order. A combiner takes a byte only when all ranks have sent it, so a slot may wait for other ranks' slots. Look
// at the rank whose next fragment comes first in this order: all that precedes it has been sent by everybody, so it will be
// combined, and the slots it lies in become free, all that this rank holds among them. So this rank goes on. Dealt
// in any order, three ranks with one slot left each can wait for one another.
bool step_in_order(shm::Call& call) {
  shm::Team& team = call.team();
  int next = -1;
  std::uint64_t position = ~std::uint64_t{0};
  for (int r = 0; r < team.size(); ++r) {
    const shm::Outgoing& out = team.states()[r].out;
    if (r == team.rank() || out.done() || out.written() >= position) continue;
    next = r;
    position = out.written();
  }
  return next >= 0 && team.states()[next].out.step(call, team.member(next).to);
}

// Publishes all of `vector` on the board, while `combiner` combines what everybody published. `rest` steps what else the
// call has to read.
template <class Rest, class RestDone>
void publish_and_combine(shm::Call& call, const Vector& vector, Combiner& combiner, Rest rest, RestDone rest_done) {
  shm::Outgoing mine;
  mine.start(vector.good ? plain(vector.own, vector.bytes) : kNothing, !vector.good);
  run(
      call,
      [&] {
        bool moved = !mine.done() && mine.step(call, call.team().board());
        if (vector.own == vector.out && vector.good) combiner.allow(mine.written());
        if (!combiner.done() && combiner.step(call)) moved = true;
        return rest() || moved;
      },
      [&] { return mine.done() && combiner.done() && rest_done(); });
}

bool is_short(std::uint64_t bytes) { return bytes <= kProfile.flat_reduce_bytes; }

void start_slices(shm::Team& team, const Vector& vector, const Slices& slices) {
  const std::size_t fragment = team.fragment_bytes(slices.bytes / team.size());
  for (int r = 0; r < team.size(); ++r) {
    if (r == team.rank()) continue;
    const Region slice = vector.good ? plain(vector.own + slices.begin(r), slices.length(r)) : kNothing;
    team.states()[r].out.start(slice, !vector.good, fragment);
  }
}

// Memory for a part of a result that has no place in the user's.
class Aside {
 public:
  Aside(shm::Call& call, std::uint64_t bytes) : memory_(static_cast<char*>(std::malloc(bytes == 0 ? 1 : bytes))) {
    if (!memory_) call.fail(Status::no_memory);
  }
  ~Aside() { std::free(memory_); }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  [[nodiscard]] char* get() const { return memory_; }

 private:
  char* memory_;
};

void allreduce_flat(shm::Call& call, const Vector& v, const Reduction& reduction) {
  Combiner all(call.team(), From::boards, 0, call.team().size(), v.own, v.out, v.bytes, reduction, v.good);
  publish_and_combine(call, v, all, [] { return false; }, [] { return true; });
}

void allreduce_slices(shm::Call& call, const Vector& v, const Reduction& reduction) {
  shm::Team& team = call.team();
  const Slices slices{v.bytes, team.size()};
  const std::uint64_t begin = slices.begin(team.rank());
  start_slices(team, v, slices);
  Combiner slice(team, From::channels, 0, team.size(), v.own + begin, v.out + begin, slices.length(team.rank()),
                 reduction, v.good);
  shm::Outgoing board;
  board.start(v.good ? plain(v.out + begin, slices.length(team.rank())) : kNothing, !v.good);
  for (int r = 0; r < team.size(); ++r) {
    if (r == team.rank()) continue;
    team.states()[r].in.start(v.good ? plain(v.out + slices.begin(r), slices.length(r)) : kNothing, !v.good);
  }
  // In place, slice r of the result comes in over what this rank sends to r. That is in order: r publishes a byte of its
  // slice only after it has read that byte of our contribution.
  run(
      call,
      [&] {
        bool moved = step_in_order(call);
        if (!slice.done() && slice.step(call)) moved = true;
        board.allow(slice.combined());
        if (!board.done() && board.step(call, team.board())) moved = true;
        return step_incoming(call, From::boards) || moved;
      },
      [&] { return outgoing_done(team) && slice.done() && board.done() && incoming_done(team); });
}

void reduce_at_root(shm::Call& call, const Vector& v, const Reduction& reduction, int root) {
  shm::Team& team = call.team();
  if (team.rank() != root) {
    shm::Outgoing message;
    message.start(v.good ? plain(v.own, v.bytes) : kNothing, !v.good);
    return send_all(call, message, team.member(root).to);
  }
  Combiner all(team, From::channels, 0, team.size(), v.own, v.out, v.bytes, reduction, v.good);
  run(call, [&] { return all.step(call); }, [&] { return all.done(); });
}

// Slices, combined by their owners, follow the contributions through the owners' channels to the root.
void reduce_slices(shm::Call& call, const Vector& v, const Reduction& reduction, int root) {
  shm::Team& team = call.team();
  const Slices slices{v.bytes, team.size()};
  const std::uint64_t begin = slices.begin(team.rank());
  const std::uint64_t length = slices.length(team.rank());
  const bool is_root = team.rank() == root;
  const Aside aside(call, is_root ? 0 : length);
  const bool good = v.good && aside.get();
  start_slices(team, {v.own, v.out, v.bytes, good}, slices);
  char* const result = is_root ? v.out + begin : aside.get();
  Combiner slice(team, From::channels, 0, team.size(), v.own + begin, result, length, reduction, good);
  shm::Outgoing to_root;
  if (!is_root) to_root.start(good ? plain(result, length) : kNothing, !good);
  for (int r = 0; r < team.size(); ++r) {
    shm::Incoming& in = team.states()[r].in;
    in.skip();
    if (is_root && r != root) in.start(good ? plain(v.out + slices.begin(r), slices.length(r)) : kNothing, !good);
  }
  run(
      call,
      [&] {
        bool moved = step_in_order(call);
        if (!slice.done() && slice.step(call)) moved = true;
        to_root.allow(slice.combined());
        // Results wait until all contributions are out: the root reads them last, and they would keep slots from others.
        if (!to_root.done() && outgoing_done(team) && to_root.step(call, team.member(root).to)) moved = true;
        return (slice.done() && step_incoming(call, From::channels)) || moved;
      },
      [&] { return outgoing_done(team) && slice.done() && to_root.done() && incoming_done(team); });
}

// The last ranks' boards do not concern a prefix; they are read all the same.
void scan_flat(shm::Call& call, const Vector& v, const Reduction& reduction, bool exclusive) {
  shm::Team& team = call.team();
  const int last = team.rank() + (exclusive ? 0 : 1);
  for (int r = 0; r < team.size(); ++r) {
    team.states()[r].in.skip();
    if (r > team.rank()) team.states()[r].in.start(kNothing, true);
  }
  const bool some = last > 0;
  Combiner prefix(team, From::boards, 0, last, v.own, v.out, some ? v.bytes : 0, reduction, v.good);
  publish_and_combine(call, v, prefix, [&] { return step_incoming(call, From::boards); },
                      [&] { return incoming_done(team); });
}

// What a rank does with one piece of its predecessor's prefix.
struct Link {
  const Vector& v;
  const Reduction& reduction;
  char* forward;   // what the successor gets, null at the end of the chain
  bool exclusive;

  void pass(const char* prefix, std::uint64_t at, std::size_t bytes) const {
    const std::size_t count = bytes / reduction.element_bytes;
    if (forward) reduction.fold(forward + at, prefix, v.own + at, count);
    if (exclusive) {
      std::memcpy(v.out + at, prefix, bytes);
    } else if (forward != v.out) {
      reduction.fold(v.out + at, prefix, v.own + at, count);
    }
  }
};

// Reads the predecessor's prefix and passes its own on as it grows; a link that fails passes poison on.
void scan_chain(shm::Call& call, const Vector& v, const Reduction& reduction, bool exclusive) {
  shm::Team& team = call.team();
  const bool first = team.rank() == 0;
  const bool end = team.rank() == team.size() - 1;
  const Aside aside(call, exclusive && !first && !end ? v.bytes : 0);
  const bool good = v.good && aside.get();
  if (first && good && !exclusive && v.out != v.own) std::memcpy(v.out, v.own, v.bytes);
  char* const forward = end ? nullptr : exclusive ? aside.get() : v.out;
  const Link link{v, reduction, forward, exclusive};
  shm::Outgoing out;
  if (!end) out.start(good ? plain(first ? v.own : forward, v.bytes) : kNothing, !good);
  shm::Reader reader;
  bool failed = !good;
  std::uint64_t ready = first ? v.bytes : 0;
  const auto read_piece = [&] {
    shm::InQueue& queue = team.member(team.rank() - 1).channel;
    if (!reader.poll(call, queue)) return false;
    if (!reader.failed() && reader.message_bytes() != v.bytes) {
      call.meet({team.rank() - 1, call.tag(), reader.message_bytes(), v.bytes});
    }
    if (!failed && call.status() != Status::ok) {
      failed = true;
      if (!end) out.start(kNothing, true);  // nothing has gone out yet: a message is found wrong at its first record
    }
    const std::size_t bytes = reader.bytes();
    if (!failed) link.pass(reader.data(), ready, bytes);
    ready += bytes;
    if (bytes != 0) reader.take(queue, bytes);
    return true;
  };
  run(
      call,
      [&] {
        bool moved = !first && !reader.done() && read_piece();
        if (!failed) out.allow(ready);
        return (!out.done() && out.step(call, team.member(team.rank() + 1).to)) || moved;
      },
      [&] { return (first || reader.done()) && out.done(); });
}

}  // namespace

void allreduce(shm::Call& call, const Vector& vector, const Reduction& reduction) {
  if (is_short(vector.bytes)) {
    allreduce_flat(call, vector, reduction);
  } else {
    allreduce_slices(call, vector, reduction);
  }
}

void reduce(shm::Call& call, const Vector& vector, const Reduction& reduction, int root) {
  if (call.team().size() <= 2 || is_short(vector.bytes)) {
    reduce_at_root(call, vector, reduction, root);
  } else {
    reduce_slices(call, vector, reduction, root);
  }
}

void reduce_scatter(shm::Call& call, const Vector& v, const Reduction& reduction, const std::uint64_t* begins) {
  shm::Team& team = call.team();
  const int rank = team.rank();
  const std::uint64_t length = begins[rank + 1] - begins[rank];
  const bool in_place = v.own == v.out;
  // In place, the result lies over what goes to rank 0.
  const Aside aside(call, in_place ? length : 0);
  const bool good = v.good && aside.get();
  const std::size_t fragment = team.fragment_bytes(v.bytes / team.size());
  for (int r = 0; r < team.size(); ++r) {
    if (r == rank) continue;
    team.states()[r].out.start(good ? plain(v.own + begins[r], begins[r + 1] - begins[r]) : kNothing, !good, fragment);
  }
  char* const result = in_place ? aside.get() : v.out;
  Combiner slice(team, From::channels, 0, team.size(), v.own + begins[rank], result, length, reduction, good);
  run(
      call,
      [&] {
        const bool moved = step_in_order(call);
        return (!slice.done() && slice.step(call)) || moved;
      },
      [&] { return outgoing_done(team) && slice.done(); });
  if (in_place && good) std::memcpy(v.out, result, length);
}

void scan(shm::Call& call, const Vector& vector, const Reduction& reduction, bool exclusive) {
  if (is_short(vector.bytes)) {
    scan_flat(call, vector, reduction, exclusive);
  } else {
    scan_chain(call, vector, reduction, exclusive);
  }
}

}  // namespace stretto::coll::direct
