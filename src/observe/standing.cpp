// SPDX-License-Identifier: BSD-3-Clause
#include "observe/standing.hpp"

#include <cstdio>
#include <cstring>

#include "observe/host_call_words.hpp"

namespace stretto::observe {
namespace {

using shm::Awaited;

// As Trace of src/engine, of all communicators.
shm::NoteCopy collective_now(const shm::Note* notes) {
  shm::NoteCopy now, latest;
  for (unsigned i = 0; i < shm::kNotes; ++i) {
    shm::NoteCopy note;
    if (!note_read(notes[i], &note) || (note.generation == shm::kInAgreement && !note.open())) continue;
    if (note.open() && note.number > now.number) now = note;
    if (note.number > latest.number) latest = note;
  }
  return now.number != 0 ? now : latest;
}

bool is_message(const Awaited& part, Awaited::What what) { return part.what == what; }

// Communicators whose number is known to one rank only may be the same.
bool other_communicator(const Awaited& one, const Awaited& other) {
  const auto is_world = [](const Awaited& part) { return part.comm != 0 && (part.comm & 1) == 0; };
  if (is_world(one) || is_world(other)) return one.comm != other.comm;
  return one.comm != 0 && other.comm != 0 && one.comm != other.comm;
}

bool other_tag(const Awaited& receive, const Awaited& send) {
  return receive.tag != Awaited::kAny && receive.tag != send.tag;
}

}  // namespace

bool are_together(const shm::HostCall& one, const shm::HostCall& other) {
  return other.kind == shm::HostCallKind::all && one.comm == other.comm && std::strcmp(one.name, other.name) == 0 &&
         std::strcmp(one.where, other.where) == 0;
}

bool may_wait_for(const shm::NoteCopy& call, int rank, int other) {
  switch (static_cast<Collective>(call.call & 0xff)) {
    case Collective::bcast:
    case Collective::scatter:
    case Collective::scatterv: return other == call.descriptor.root;
    case Collective::scan:
    case Collective::exscan: return other < rank;
    default: return true;
  }
}

bool Standing::add(const char* base, std::size_t bytes, bool gone) {
  Observer look;
  if (look.view(base, bytes) != Attached::ok) return false;
  Stand stand;
  stand.rank = static_cast<int>(look.process_info().rank);
  if (of(stand.rank) != nullptr) return true;
  ranks_ = static_cast<std::uint32_t>(look.process_info().ranks);
  stand.pid = static_cast<int>(reinterpret_cast<const shm::SegmentHeader*>(base)->pid);
  stand.gone = gone;
  stand.left = look.left();
  stand.base = base;
  stand.bytes = bytes;
  stand.collective = collective_now(stand.notes());
  stand.call = host_call_now(shm::Segment::host_calls_beside(stand.notes()));
  if (!stands_.push(stand)) return false;
  for (std::size_t i = stands_.size() - 1; i > 0 && stands_[i - 1].rank > stand.rank; --i) {
    stands_[i] = stands_[i - 1];
    stands_[i - 1] = stand;
  }
  return true;
}

const Stand* Standing::of(int rank) const {
  for (const Stand& stand : stands_) {
    if (stand.rank == rank) return &stand;
  }
  return nullptr;
}

bool Standing::member_of(const Stand& stand, std::uint64_t generation, Membership* membership) {
  Observer look;
  bool found = false;
  if (look.view(stand.base, stand.bytes) != Attached::ok) return false;
  look.communicators([&](const Membership& each) {
    if (each.generation != generation || found) return;
    found = true;
    *membership = each;
  });
  return found;
}

// Breadth first from `rank`, along waits that need all of those they name.
unsigned Standing::cycle(int rank, int* ranks, unsigned most) const {
  Array<int> reached, from;  // ranks, and through which earlier one
  reached.push(rank);
  from.push(-1);
  int last = -1;
  for (std::size_t at = 0; at < reached.size() && last < 0; ++at) {
    const Stand* const stand = of(reached[at]);
    if (stand == nullptr || (stand->waits() && stand->call.any)) continue;
    each_awaited(*stand, [&](int next) {
      if (next == rank) last = static_cast<int>(at);
      bool known = false;
      for (const int each : reached) known = known || each == next;
      if (known || last >= 0) return;
      reached.push(next);
      from.push(static_cast<int>(at));
    });
  }
  if (last < 0 || reached.failed() || from.failed()) return 0;
  unsigned count = 0;
  for (int at = last; at >= 0; at = from[static_cast<std::size_t>(at)]) ++count;
  if (count > most || count < 2) return 0;
  unsigned lowest = 0;
  Array<int> path;
  for (int at = last; at >= 0; at = from[static_cast<std::size_t>(at)])
    path.push(reached[static_cast<std::size_t>(at)]);
  if (path.failed()) return 0;
  for (unsigned i = 0; i < count; ++i) {
    if (path[count - 1 - i] < path[count - 1 - lowest]) lowest = i;
  }
  for (unsigned i = 0; i < count; ++i) ranks[i] = path[count - 1 - (lowest + i) % count];
  return count;
}

ContradictionWords::ContradictionWords(const Stand& receiver, const Stand& sender) {
  if (!receiver.waits() || !sender.waits()) return;
  const Awaited *receive = nullptr, *send = nullptr;
  for (unsigned r = 0; r < receiver.call.known(); ++r) {
    const Awaited& expected = receiver.call.parts[r];
    if (!is_message(expected, Awaited::What::receive) || (expected.world >= 0 && expected.world != sender.rank))
      continue;
    for (unsigned s = 0; s < sender.call.known(); ++s) {
      const Awaited& sent = sender.call.parts[s];
      if (!is_message(sent, Awaited::What::send) || sent.world != receiver.rank) continue;
      if (!other_tag(expected, sent) && !other_communicator(expected, sent)) return;  // they fit
      receive = &expected;
      send = &sent;
    }
  }
  if (receive == nullptr) return;
  const HostCallSite at(receiver.call, receiver.modules()), its(sender.call, sender.modules());
  const bool by_comm = other_communicator(*receive, *send);
  char expects[100], sends[100];
  if (by_comm) {
    const bool alike = std::strcmp(receive->where, send->where) == 0;
    std::snprintf(expects, sizeof expects, "on %s", receive->where);
    std::snprintf(sends, sizeof sends, "on %s%s", alike ? "another communicator named " : "", send->where);
  } else {
    std::snprintf(expects, sizeof expects, "with tag %d", receive->tag);
    std::snprintf(sends, sizeof sends, "with tag %d", send->tag);
  }
  const int length = std::snprintf(text, sizeof text, "rank %d waits for a message of rank %d %s", receiver.rank,
                                   sender.rank, expects);
  const auto used = static_cast<std::size_t>(length);
  std::snprintf(text + used, sizeof text - used, ", but rank %d sends it one %s (rank %d at %s; rank %d at %s)",
                sender.rank, sends, receiver.rank, at.text, sender.rank, its.text);
}

}  // namespace stretto::observe
