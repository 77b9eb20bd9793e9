// SPDX-License-Identifier: BSD-3-Clause
// Communicators, datatypes and operations come and go in a random sequence, also while requests
// need them. And calls that every rank makes wrong in the same way.
#pragma once
#include "sequences_collectives.hpp"

namespace sequences {

// ---- Communicators ----

inline void know(Communicator& c) {
  if (c.empty()) return;
  c.lives = std::make_shared<bool>(true);
  MPI_Comm_rank(c.handle, &c.rank);
  MPI_Comm_size(c.handle, &c.size);
}

// Some MPIs fail if requests outlive their communicator.
inline void end_what_needs(State& s, const Communicator& c) {
  Random random(s.seed, s.index, s.world_rank, 3);
  for (std::vector<Posted>& slot : s.requests) {
    std::vector<Posted*> needing = active_of(slot);
    std::erase_if(needing, [&](const Posted* p) { return p->comm_lives != c.lives; });
    end_all(s, needing, random);
  }
}

inline void release(State& s, Communicator& c) {
  if (c.empty()) return;
  if (!s.with("pending_after_free")) end_what_needs(s, c);
  *c.lives = false;
  MPI_Comm_free(&c.handle);
  c = {};
}

inline void know_neighbors_of_grid(Communicator& c, int dimensions) {
  c.topology = Topology::grid;
  for (int d = 0; d < dimensions; ++d) {
    int below = 0, above = 0;
    MPI_Cart_shift(c.handle, d, 1, &below, &above);
    for (const int r : {below, above}) {
      c.sources.push_back(r);
      c.destinations.push_back(r);
    }
  }
}

inline Communicator grid_of(const Communicator& parent, Random& all) {
  Communicator c;
  const int dimensions = static_cast<int>(all.between(1, 2));
  int sizes[2] = {0, 0};
  const int periods[2] = {static_cast<int>(all.below(2)), static_cast<int>(all.below(2))};
  const int reorder = static_cast<int>(all.below(2));
  MPI_Dims_create(parent.size, dimensions, sizes);
  MPI_Cart_create(parent.handle, dimensions, sizes, periods, reorder, &c.handle);
  know(c);
  bool twice = false;  // some MPIs exchange the blocks of a neighbour that is there twice
  for (int d = 0; d < dimensions; ++d) twice = twice || (periods[d] != 0 && sizes[d] <= 2);
  if (!c.empty() && !twice) know_neighbors_of_grid(c, dimensions);
  return c;
}

inline Communicator graph_of(const Communicator& parent, Random& all) {
  Communicator c;
  const auto percent = static_cast<int>(all.between(20, 80));
  for (int from = 0; from < parent.size; ++from) {
    for (int to = 0; to < parent.size; ++to) {
      if (!all.chance(percent)) continue;
      if (to == parent.rank) c.sources.push_back(from);
      if (from == parent.rank) c.destinations.push_back(to);
    }
  }
  std::vector<int> weights(static_cast<std::size_t>(parent.size), 1);
  MPI_Dist_graph_create_adjacent(parent.handle, static_cast<int>(c.sources.size()), c.sources.data(), weights.data(),
                                 static_cast<int>(c.destinations.size()), c.destinations.data(), weights.data(),
                                 MPI_INFO_NULL, 0, &c.handle);
  c.topology = Topology::graph;
  know(c);
  return c;
}

inline Communicator split_of(const Communicator& parent, Random& all) {
  Communicator c;
  const auto colors = static_cast<int>(all.between(1, 2)), left_out = static_cast<int>(all.below(parent.size));
  const bool leaves_one_out = all.chance(25), backwards = all.chance(50);
  const int color = leaves_one_out && parent.rank == left_out ? MPI_UNDEFINED : parent.rank % colors;
  MPI_Comm_split(parent.handle, color, backwards ? -parent.rank : 0, &c.handle);
  know(c);
  return c;
}

inline Communicator copy_of(const Communicator& parent, bool later) {
  Communicator c = parent;
  if (later) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm_idup(parent.handle, &c.handle, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Comm_dup(parent.handle, &c.handle);
  }
  know(c);
  return c;
}

// Slot 0 is MPI_COMM_WORLD. What was in the slot of the new communicator is freed, before or after.
inline void make_communicator(State& s, Random& all) {
  const auto from = static_cast<std::size_t>(all.below(kComms));
  const auto slot = static_cast<std::size_t>(all.between(1, kComms - 1));
  const auto form = all.below(5);
  static const char* const forms[] = {"dup", "idup", "split", "grid", "graph"};
  const Communicator& parent = s.comms[from];
  const std::string text = forms[form] + std::string(" of communicator ") + number_of(from) + " to " + number_of(slot);
  Communicator made;
  s.say(parent.empty() ? "nothing: communicator " + number_of(from) + " is not there" : text);
  if (!parent.empty()) {
    switch (form) {
      case 0:
      case 1: made = copy_of(parent, form == 1); break;
      case 2: made = split_of(parent, all); break;
      case 3: made = grid_of(parent, all); break;
      default: made = graph_of(parent, all);
    }
    s.log(s.index, 0, text + " rank " + std::to_string(made.rank) + " of " + std::to_string(made.size));
  }
  release(s, s.comms[slot]);
  s.comms[slot] = made;
}

inline void free_communicator(State& s, Random& all) {
  const auto slot = static_cast<std::size_t>(all.between(1, kComms - 1));
  s.say("communicator " + number_of(slot) + " is freed");
  release(s, s.comms[slot]);
}

// ---- Datatypes and operations ----

// Some MPIs crash if a persistent request starts after its datatype is freed.
inline void drop(State& s, MPI_Datatype& handle) {
  const bool needed = std::any_of(s.requests.begin(), s.requests.end(),
                                  [](const std::vector<Posted>& slot) { return !slot.empty() && slot[0].persistent; });
  if (needed && !s.with("freed_persistent")) {
    s.dropped.push_back(handle);
    handle = MPI_DATATYPE_NULL;
  } else if (handle != MPI_DATATYPE_NULL) {
    MPI_Type_free(&handle);
  }
}

inline void make_element(State& s, Random& all) {
  const auto slot = static_cast<std::size_t>(all.below(kElements));
  Element& e = s.elements[slot];
  drop(s, e.handle);
  e = draw_element(all);
  s.say("datatype " + number_of(slot) + " is " + e.name);
}

inline void free_element(State& s, Random& all) {
  const auto slot = static_cast<std::size_t>(all.below(kElements));
  s.say("datatype " + number_of(slot) + " is freed");
  drop(s, s.elements[slot].handle);
}

inline void renew_operations(State& s) {
  s.say("the program's own operations are freed and made anew");
  if (!s.with("freed_persistent")) return;
  s.own.free();
  s.own.make();
}

// ---- Persistent requests ----

// Starts what is in some slots. Messages have an order of their own on each rank, collectives that
// of the communicator.
inline void start_some(State& s, Random& all, Random& mine) {
  const auto first = static_cast<std::size_t>(all.below(kRequests));
  const auto last = std::min<std::size_t>(first + static_cast<std::size_t>(all.below(3)), kRequests - 1);
  s.say("requests " + number_of(first) + " to " + number_of(last) + " start");
  for (std::size_t q = first; q <= last; ++q) {
    std::vector<Posted>& posted = s.requests[q];
    if (posted.empty() || !posted[0].persistent || !*posted[0].comm_lives) continue;
    end_all(s, active_of(posted), mine);
    for (Posted& p : posted) start(s, p);
  }
}

inline std::vector<Posted*> active_of_slots(State& s, std::size_t first, std::size_t last) {
  std::vector<Posted*> found;
  for (std::size_t q = first; q <= last; ++q) {
    for (Posted* p : active_of(s.requests[q])) found.push_back(p);
  }
  return found;
}

inline void wait_for_some(State& s, Random& all, Random& mine) {
  const auto first = static_cast<std::size_t>(all.below(kRequests));
  const auto last = static_cast<std::size_t>(all.between(static_cast<std::int64_t>(first), kRequests - 1));
  s.say("waits for requests " + number_of(first) + " to " + number_of(last));
  end_all(s, active_of_slots(s, first, last), mine);
}

// Looks once at what is under way. It may end.
inline void poke(State& s, Random& mine) {
  s.say("looks at requests");
  std::vector<Posted*> posted = active_of_slots(s, 0, kRequests - 1);
  if (posted.empty()) return;
  Requests list(s, Requests::mixed(std::move(posted), mine));
  const bool one = list.may_fail() && !s.with("errors_in_lists");
  list.step(one ? 8 : static_cast<int>(mine.between(5, 8)), mine);
}

// ---- Calls that every rank makes wrong ----

inline void wrong_call(State& s, Random& all) {
  const auto slot = static_cast<std::size_t>(all.below(kComms));
  const auto form = all.below(8);
  static const char* const forms[] = {
      "Bcast, root out of range",   "Allreduce, negative count",     "Bcast, no datatype",
      "Allreduce, no operation",    "Bcast, datatype not committed", "Ibcast, root out of range",
      "Iallreduce, negative count", "Gather, negative root"};
  const Communicator& c = s.comms[slot];
  if (c.empty()) return s.say("nothing: communicator " + number_of(slot) + " is not there");
  if ((form == 1 || form == 6) && !s.with("negative_count")) return s.say("nothing: a count would be negative");
  const std::string text = "wrong " + std::string(forms[form]) + " on communicator " + number_of(slot);
  s.say(text);
  int in[4] = {1, 2, 3, 4}, out[64] = {}, code = MPI_SUCCESS;
  MPI_Request request = MPI_REQUEST_NULL;
  switch (form) {
    case 0: code = MPI_Bcast(in, 1, MPI_INT, c.size + 3, c.handle); break;
    case 1: code = MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, c.handle); break;
    case 2: code = MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, c.handle); break;
    case 3: code = MPI_Allreduce(in, out, 1, MPI_INT, MPI_OP_NULL, c.handle); break;
    case 4: {
      MPI_Datatype raw = MPI_DATATYPE_NULL;
      MPI_Type_contiguous(2, MPI_INT, &raw);
      code = MPI_Bcast(in, 1, raw, 0, c.handle);
      MPI_Type_free(&raw);
      break;
    }
    case 5: code = MPI_Ibcast(in, 1, MPI_INT, c.size + 3, c.handle, &request); break;
    case 6: code = MPI_Iallreduce(in, out, -1, MPI_INT, MPI_SUM, c.handle, &request); break;
    default: code = MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, -7, c.handle);
  }
  s.log(s.index, 0, text + " | class " + error_class(code));
}

}  // namespace sequences
