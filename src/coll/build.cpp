// SPDX-License-Identifier: BSD-3-Clause
// From an MPI call to an algorithm's call: which slices of which buffers it uses, what "in place"
// means for each collective, and the segments.
#include "coll/algorithm.hpp"

namespace stretto::coll {
namespace {

Parts parts_in(Buffer buffer, const Problem& p, const std::uint64_t* begins) {
  return begins ? Parts::given(buffer, p.size, begins) : Parts::equal(buffer, p.size, p.count);
}
const std::uint64_t* sent_begins(const Problem& p) { return p.sent_begins && !p.in_place ? p.sent_begins : p.begins; }

void vector_operands(const Problem& p, Call& call) {
  const bool aside = p.in_place && (p.collective != Collective::reduce || p.rank == p.root);
  call.in = {aside || p.collective == Collective::bcast ? Buffer::receive : Buffer::send, 0, p.count};
  call.out = {Buffer::receive, 0, p.count};
  if (p.begins != nullptr) call.ins = Parts::given(call.in.buffer, p.size, p.begins);
}

void part_operands(Builder& b, const Problem& p, Call& call) {
  const Parts received = parts_in(Buffer::receive, p, p.begins);
  const Slice sent_part{Buffer::send, 0, received.at(p.rank).length};
  const Slice received_part{Buffer::receive, 0, sent_part.length};
  switch (regular_form(p.collective)) {
    case Collective::gather:
      call.outs = received;
      call.in = p.in_place && p.rank == p.root ? received.at(p.rank) : sent_part;
      break;
    case Collective::scatter:
      call.ins = received;
      call.ins.buffer = Buffer::send;
      call.out = p.in_place && p.rank == p.root ? call.ins.at(p.rank) : received_part;
      break;
    case Collective::allgather:
      call.outs = received;
      call.in = p.in_place ? received.at(p.rank) : sent_part;
      break;
    case Collective::alltoall:
      call.outs = received;
      call.ins = parts_in(Buffer::send, p, sent_begins(p));
      if (p.in_place) {  // what arrives would overwrite what has not been sent
        call.ins = received.moved_to(b.scratch(received.total()));
        b.copy(received.all(), call.ins.all());
      }
      break;
    case Collective::reduce_scatter:
      call.ins = received;
      call.ins.buffer = p.in_place ? Buffer::receive : Buffer::send;
      call.out = p.in_place ? b.scratch(received_part.length) : received_part;
      break;
    default: break;
  }
}

}  // namespace

Extent extent(const Problem& p) {
  const std::uint64_t total = p.begins ? p.begins[p.size] : p.count * static_cast<std::uint64_t>(p.size);
  const std::uint64_t own = p.begins ? p.begins[p.rank + 1] - p.begins[p.rank] : p.count;
  const bool root = p.rank == p.root;
  const auto sent = [&](std::uint64_t units) { return p.in_place ? 0 : units; };
  switch (regular_form(p.collective)) {
    case Collective::bcast: return {0, p.count};
    case Collective::reduce: return {p.in_place && root ? 0 : p.count, root ? p.count : 0};
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan: return {sent(p.count), p.count};
    case Collective::gather: return {p.in_place && root ? 0 : own, root ? total : 0};
    case Collective::scatter: return {root ? total : 0, p.in_place && root ? 0 : own};
    case Collective::allgather: return {sent(own), total};
    case Collective::alltoall: return {sent(p.sent_begins ? p.sent_begins[p.size] : total), total};
    case Collective::reduce_scatter: return {sent(total), p.in_place ? total : own};
    default: return {0, 0};
  }
}

Call whole_call(Builder& builder, const Problem& p, const Parameters& parameters) {
  Call call;
  call.group = {p.size, p.rank};
  call.root = p.root;
  call.commutative = p.commutative;
  call.parameters = parameters;
  switch (p.collective) {
    case Collective::barrier: break;
    case Collective::bcast:
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan: vector_operands(p, call); break;
    default: part_operands(builder, p, call); break;
  }
  return call;
}

void emit_segments(Builder& builder, const Algorithm& algorithm, const Call& call) {
  const int segments = algorithm.segmentable() ? segment_count(call.parameters.segments) : 1;
  Call part = call;
  if (part.parameters.k == 0) part.parameters.k = algorithm.k;
  for (int s = 0; s < segments; ++s) {
    const auto n = static_cast<std::uint64_t>(segments);
    part.in = piece(call.in, n, static_cast<std::uint64_t>(s));
    part.out = piece(call.out, n, static_cast<std::uint64_t>(s));
    part.ins.segments = part.outs.segments = segments;
    part.ins.segment = part.outs.segment = s;
    builder.set_segment(s, segments);
    builder.set_priority(s);
    algorithm.emit_to(builder, part);
  }
}

void finish_in_place(Builder& builder, const Problem& p, const Call& call) {
  if (regular_form(p.collective) != Collective::reduce_scatter || !p.in_place) return;
  builder.copy(call.out, {Buffer::receive, 0, call.out.length});
}

Schedule build(Builder& builder, const Algorithm& algorithm, const Problem& problem, const Parameters& parameters) {
  const Call call = whole_call(builder, problem, parameters);
  emit_segments(builder, algorithm, call);
  finish_in_place(builder, problem, call);
  return builder.finish();
}

}  // namespace stretto::coll
