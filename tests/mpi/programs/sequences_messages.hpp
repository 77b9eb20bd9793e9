// SPDX-License-Identifier: BSD-3-Clause
// Random messages: rings, exchanges, probes, cancelled and truncated receives.
// A message has the number of its operation as its tag, so operations do not meet.
#pragma once
#include "sequences_waits.hpp"

namespace sequences {

// A ring: each rank sends to one and receives from another. Grids may end.
struct Ring {
  Communicator* comm = nullptr;
  std::size_t slot = 0, request = 0;
  int to = 0, from = 0, tag = 0;
  Element element;
  std::int64_t count = 0;
  std::string text;
};

inline std::shared_ptr<Transfer> transfer_of(const State& s, const std::string& text) {
  auto t = std::make_shared<Transfer>();
  t->index = s.index;
  t->text = text;
  t->has_status = true;
  return t;
}

inline bool draw_ring(State& s, Random& all, const char* what, Ring& ring, bool may_end = true) {
  ring.slot = static_cast<std::size_t>(all.below(kComms));
  ring.request = static_cast<std::size_t>(all.below(kRequests));
  const auto far = static_cast<int>(all.below(1000));
  const bool ends = all.chance(15) && may_end;
  ring.element = s.elements[static_cast<std::size_t>(all.below(kElements))];
  if (ring.element.handle == MPI_DATATYPE_NULL || all.chance(50)) ring.element = plain_int();
  ring.count = draw_length(all, false);
  if (ring.count > 0) ring.count = std::max<std::int64_t>(ring.count / ring.element.units, 1);
  ring.comm = &s.comms[ring.slot];
  ring.text = what + std::string(" of ") + std::to_string(ring.count) + " " + ring.element.name + " on communicator " +
              number_of(ring.slot);
  if (ring.comm->empty()) {
    s.say("nothing: communicator " + number_of(ring.slot) + " is not there");
    return false;
  }
  const int size = ring.comm->size, rank = ring.comm->rank, step = size == 1 ? 0 : 1 + far % (size - 1);
  ring.to = (rank + step) % size;
  ring.from = (rank - step + size) % size;
  if (ends && rank + step >= size) ring.to = MPI_PROC_NULL;
  if (ends && rank < step) ring.from = MPI_PROC_NULL;
  ring.tag = s.index + 1;
  return true;
}

struct Pair {
  std::shared_ptr<Transfer> send, receive;
};

// Room for what comes and what goes. A truncated receive has room for all of it, because Open MPI 4
// writes all of it.
inline Pair pair_of(State& s, const Ring& ring) {
  Pair pair{transfer_of(s, ring.text + " (sent)"), transfer_of(s, ring.text + " (received)")};
  pair.send->has_status = pair.send->logs_receive = false;
  pair.send->send.make(ring.element, ring.count);
  pair.receive->receive.make(ring.element, ring.count);
  pair.receive->counted = ring.element.handle;
  pair.receive->has_count = ring.element.handle == MPI_INT;  // other datatypes may be freed by then
  pair.send->fill(s.seed, s.world_rank, 0);
  pair.receive->fill(s.seed, s.world_rank, 0);
  return pair;
}

inline int send_init(const Ring& g, Transfer& t, bool synchronous, MPI_Request* q) {
  const auto send = synchronous ? MPI_Ssend_init : MPI_Send_init;
  return send(t.send.at(), static_cast<int>(g.count), g.element.handle, g.to, g.tag, g.comm->handle, q);
}
inline int isend(const Ring& g, Transfer& t, bool synchronous, bool wide, MPI_Request* q) {
#if MPI_VERSION >= 4
  const auto large = synchronous ? MPI_Issend_c : MPI_Isend_c;
  if (wide) return large(t.send.at(), g.count, g.element.handle, g.to, g.tag, g.comm->handle, q);
#endif
  (void)wide;
  const auto send = synchronous ? MPI_Issend : MPI_Isend;
  return send(t.send.at(), static_cast<int>(g.count), g.element.handle, g.to, g.tag, g.comm->handle, q);
}
inline int irecv(const Ring& g, Transfer& t, std::int64_t count, int from, MPI_Request* q) {
  return MPI_Irecv(t.receive.at(), static_cast<int>(count), g.element.handle, from, g.tag, g.comm->handle, q);
}

// Two requests in a slot, ordinary or persistent.
inline void requested_ring(State& s, Random& all, Random& mine) {
  Ring ring;
  const bool persistent = all.chance(35), synchronous = all.chance(20), starts = all.chance(70);
  const bool truncated = all.chance(8) && s.with(persistent ? "truncated_persistent" : "truncated");
  const bool any = all.chance(20) && (!truncated || s.with("truncated_from_anyone"));
  const bool detached = all.chance(10), at_once = all.chance(30);
  const char* what = persistent ? "persistent messages" : "Irecv and Isend";
  const bool may_end = !persistent || s.with("persistent_to_nobody");
  const bool there = draw_ring(s, all, truncated ? "truncated messages" : what, ring, may_end);
  std::vector<Posted>& posted = vacated(s, ring.request, mine);
  if (!there) return;
  ring.text += " by request " + number_of(ring.request) + (persistent ? ", persistent" : "");
  s.say(ring.text);
  const bool shorter = truncated && ring.count > 1;
  const Pair pair = pair_of(s, ring);
  const std::int64_t taken = shorter ? ring.count / 2 : ring.count;
  pair.receive->may_fail = shorter;
  const int from = any && ring.from != MPI_PROC_NULL ? MPI_ANY_SOURCE : ring.from;
  Posted in{.persistent = persistent, .active = !persistent, .transfer = pair.receive, .comm_lives = ring.comm->lives};
  Posted out{.persistent = persistent, .active = !persistent, .transfer = pair.send, .comm_lives = ring.comm->lives};
  if (persistent) {
    MPI_Recv_init(pair.receive->receive.at(), static_cast<int>(taken), ring.element.handle, from, ring.tag,
                  ring.comm->handle, &in.request);
    send_init(ring, *pair.send, synchronous, &out.request);
    if (starts) {
      start(s, in);
      start(s, out);
    }
  } else {
    irecv(ring, *pair.receive, taken, from, &in.request);
    isend(ring, *pair.send, synchronous, mine.chance(25) && s.with("wide"), &out.request);
    if (detached && out.request != MPI_REQUEST_NULL) {
      MPI_Request_free(&out.request);
      out.active = false;
      s.detached.push_back(pair.send);
    }
  }
  posted.push_back(std::move(in));
  if (out.request != MPI_REQUEST_NULL) posted.push_back(std::move(out));
  if (at_once) end_all(s, active_of(posted), mine);
}

inline void log_receive(State& s, const Transfer& t, int code, const MPI_Status& status) {
  log_end(s, t, 0, code, &status);
}

// Messages that are there when the operation ends.
inline void exchange(State& s, Random& all, Random& mine) {
  Ring ring;
  static const char* const forms[] = {"Sendrecv", "Sendrecv_replace", "Ssend", "any tag", "truncated Recv"};
  auto form = all.below(5);
  if (form == 4 && !s.with("truncated")) form = 0;
  if (!draw_ring(s, all, forms[form], ring)) return;
  if (form == 3 && ring.comm->size < s.world_size) form = 0;  // some rank is not here
  s.say(ring.text);
  const Element& e = ring.element;
  const bool shorter = form == 4 && ring.count > 1;
  const auto count = static_cast<int>(ring.count), taken = shorter ? count / 2 : count;
  Pair pair = pair_of(s, ring);
  pair.receive->has_count = true;
  Transfer &in = *pair.receive, &out = *pair.send;
  const MPI_Comm comm = ring.comm->handle;
  MPI_Status status;
  int code = MPI_SUCCESS;
  if (form == 0) {
    code = MPI_Sendrecv(out.send.at(), count, e.handle, ring.to, ring.tag, in.receive.at(), count, e.handle, ring.from,
                        ring.tag, comm, &status);
  } else if (form == 1) {
    code =
        MPI_Sendrecv_replace(in.receive.at(), count, e.handle, ring.to, ring.tag, ring.from, ring.tag, comm, &status);
  } else if (form == 3) {
    Ring world = ring;
    world.to = (s.world_rank + 1) % s.world_size;
    code = MPI_Sendrecv(out.send.at(), count, e.handle, world.to, 100 + s.world_rank, in.receive.at(), count, e.handle,
                        (s.world_rank - 1 + s.world_size) % s.world_size, MPI_ANY_TAG, s.any_tag, &status);
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    if (form == 2) irecv(ring, in, taken, ring.from, &request);
    MPI_Request sent = MPI_REQUEST_NULL;
    if (form == 4) isend(ring, out, false, false, &sent);
    if (form == 2) MPI_Ssend(out.send.at(), count, e.handle, ring.to, ring.tag, comm);
    if (form == 4) code = MPI_Recv(in.receive.at(), taken, e.handle, ring.from, ring.tag, comm, &status);
    if (form == 2) code = MPI_Wait(&request, &status);
    if (form == 4) MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }
  (void)mine;
  log_receive(s, in, code, status);
}

// Two messages from one rank, found by any form of probe.
inline void probed(State& s, Random& all, Random& mine) {
  Ring ring;
  if (!draw_ring(s, all, "probed messages", ring)) return;
  s.say(ring.text);
  const Element& e = ring.element;
  Pair pair = pair_of(s, ring);
  Transfer& in = *pair.receive;
  in.has_count = true;
  MPI_Request sent = MPI_REQUEST_NULL;
  isend(ring, *pair.send, false, false, &sent);
  const int from = mine.chance(30) && ring.from != MPI_PROC_NULL ? MPI_ANY_SOURCE : ring.from;
  const MPI_Comm comm = ring.comm->handle;
  const auto form = mine.below(4);
  MPI_Status found, status;
  MPI_Message message = MPI_MESSAGE_NULL;
  int flag = 0;
  if (form == 0) MPI_Probe(from, ring.tag, comm, &found);
  if (form == 1) MPI_Mprobe(from, ring.tag, comm, &message, &found);
  while (form == 2 && flag == 0) MPI_Iprobe(from, ring.tag, comm, &flag, &found);
  while (form == 3 && flag == 0) MPI_Improbe(from, ring.tag, comm, &flag, &message, &found);
  const std::string seen = status_text(found, e.handle, true);
  int count = 0, code = MPI_SUCCESS;
  MPI_Get_count(&found, e.handle, &count);
  if (form % 2 == 0) {
    code = MPI_Recv(in.receive.at(), count, e.handle, found.MPI_SOURCE, found.MPI_TAG == MPI_ANY_TAG ? 0 : ring.tag,
                    comm, &status);
  } else if (mine.chance(50)) {
    code = MPI_Mrecv(in.receive.at(), count, e.handle, &message, &status);
  } else {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Imrecv(in.receive.at(), count, e.handle, &message, &request);
    code = MPI_Wait(&request, &status);
  }
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  in.text += " probed" + seen;
  log_receive(s, in, code, status);
}

// Every rank sends to all; each takes the messages from any source.
inline void from_anyone(State& s, Random& all, Random& mine) {
  Ring ring;
  if (!draw_ring(s, all, "messages from anyone", ring)) return;
  s.say(ring.text);
  Pair pair = pair_of(s, ring);
  std::vector<MPI_Request> sent(static_cast<std::size_t>(ring.comm->size));
  for (int r = 0; r < ring.comm->size; ++r) {
    ring.to = r;
    isend(ring, *pair.send, false, false, &sent[static_cast<std::size_t>(r)]);
  }
  std::vector<std::string> taken;
  for (int r = 0; r < ring.comm->size; ++r) {
    MPI_Status status;
    MPI_Recv(pair.receive->receive.at(), static_cast<int>(ring.count), ring.element.handle, MPI_ANY_SOURCE, ring.tag,
             ring.comm->handle, &status);
    taken.push_back(status_text(status, ring.element.handle, true) + " " + pair.receive->receive.digest());
  }
  (void)mine;
  MPI_Waitall(ring.comm->size, sent.data(), MPI_STATUSES_IGNORE);
  std::sort(taken.begin(), taken.end());
  std::string text = ring.text;
  for (const std::string& one : taken) text += one;
  s.log(s.index, 0, text);
}

// A receive that nobody sends to. It is waited for later, beside others.
inline void cancelled(State& s, Random& all, Random& mine) {
  Ring ring;
  const bool later = all.chance(50);
  const bool there = draw_ring(s, all, "cancelled receive", ring);
  std::vector<Posted>& posted = vacated(s, ring.request, mine);
  if (!there) return;
  ring.text += " by request " + number_of(ring.request);
  s.say(ring.text);
  const Pair pair = pair_of(s, ring);
  Posted in{.active = true, .transfer = pair.receive, .comm_lives = ring.comm->lives};
  irecv(ring, *pair.receive, ring.count, mine.chance(50) ? MPI_ANY_SOURCE : ring.comm->rank, &in.request);
  MPI_Cancel(&in.request);
  posted.push_back(std::move(in));
  if (!later) end_all(s, active_of(posted), mine);
}

}  // namespace sequences
