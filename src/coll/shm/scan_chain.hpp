// SPDX-License-Identifier: BSD-3-Clause
// Long Scan and Exscan: a rank reads the prefix of its predecessor, piece by piece, and passes its
// own on.
#pragma once
#include "coll/shm/parts.hpp"

namespace stretto::coll_shm {

// Takes a prefix that comes in one piece, at the end of a chain.
template <class Link>
bool pass_whole(shm::Call& call, shm::InQueue& queue, std::uint64_t bytes, Link& link) {
  shm::Waiter waiter(call.team().policy());
  alignas(64) char aside[shm::kMostInlineBytes];
  const char* const prefix = shm::peek_whole(call, queue, bytes, waiter, aside);
  if (prefix == nullptr) return false;
  if (bytes != 0) link.pass(prefix, bytes);
  shm::take_whole(call, queue, bytes);
  return true;
}

// Reads the predecessor's prefix and passes its own on as it grows.
template <class Parts>
void scan_chain(shm::Call& call, const Parts& parts, bool exclusive) {
  shm::Team& team = call.team();
  const int before = team.rank() - 1;
  const int after = team.rank() + 1;
  const bool first = before < 0;
  const bool end = after == team.size();
  const std::uint64_t bytes = parts.bytes();
  // A prefix that is no result on this rank.
  const TemporaryBuffer aside(exclusive && !first && !end ? bytes : 0);
  if (aside.missing()) return call.fail(Status::no_memory);
  const Region forward = first ? parts.own(0, bytes) : exclusive ? plain(aside.get(), bytes) : parts.out(0, bytes);
  typename Parts::Link link = parts.link(end ? kNothing : forward, exclusive);
  shm::Outgoing out;
  // The first rank's result is its own contribution.
  const bool is_result = first && !exclusive && !parts.in_place();
  OverlappedCopy copy =
      is_result ? OverlappedCopy(parts.out(0, bytes), parts.own(0, bytes), team.stores_past(bytes)) : OverlappedCopy();
  if (first && !end && start_message(call, out, team.to(after), forward, parts.cut(team, bytes, false)))
    return copy.finish();
  if (!first && !end) out.start(forward, false, parts.cut(team, bytes, false));
  if (end && !first && pass_whole(call, team.channel(before), bytes, link)) return;
  shm::Reader reader;
  const auto read_piece = [&] {
    shm::InQueue& queue = team.channel(before);
    if (!reader.poll(call, queue)) return false;
    if (!reader.failed() && reader.message_bytes() != bytes) call.report_length(before, reader.message_bytes(), bytes);
    if (call.status() != Status::ok) return true;
    const std::size_t piece = reader.bytes();
    link.pass(reader.data(), piece);
    if (piece != 0) reader.take(queue, piece);
    return true;
  };
  run_together(
      call,
      [&] {
        bool moved = !first && !reader.done() && read_piece();
        out.allow(first ? bytes : link.ready());
        if (!out.done() && out.step(call, team.to(after))) moved = true;
        if (first && !out.done()) copy.step(out.written());
        return moved;
      },
      [&] { return (first || reader.done()) && out.done(); },
      [&](int peer) { return peer == before ? misses(reader, team.channel(before)) : peer == after && !out.done(); });
  copy.finish();
}

}  // namespace stretto::coll_shm
