// SPDX-License-Identifier: BSD-3-Clause
// The operations of the differential test. Each makes the buffers of a case, and says what must be
// in them afterwards.
#pragma once
#include "differential_run.hpp"

namespace differential {

inline std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

// No rank leaves before the last has come (one clock for all: this test runs on one node).
inline void run_barrier(Case& c, const Live& live) {
  std::int64_t came = 0;
  std::int64_t left = 0;
  run(
      c, live, "barrier", [] {},
      [&](const Caller& caller) {
        came = now_ns();
        const int code = caller.barrier(live.comm);
        left = now_ns();
        return code;
      },
      [&](const Context& x) {
        std::vector<std::int64_t> all(static_cast<std::size_t>(c.size));
        g_host.Allgather(&came, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, live.comm);
        const std::int64_t last = *std::max_element(all.begin(), all.end());
        if (left < last) fail(x, "left early, ns", "", last - left);
      });
}

inline void run_bcast(Case& c, const Live& live) {
  make_regular(c);
  const bool root = c.rank == c.root;
  const std::int64_t units = c.units[0];
  Part part;
  make_part(part, c, root ? units : c.declared[0], 1);
  const std::vector<char> data = message(c, c.root, -1, units);
  Memory before = part.memory;
  Memory expected = part.memory;
  expected.write(part.type, 0, data);
  if (root) before = expected;
  run(
      c, live, "bcast", [&] { part.memory = before; },
      [&](const Caller& caller) {
        return caller.bcast({part.memory.origin(), part.count, part.type.handle}, c.root, live.comm);
      },
      [&](const Context& x) {
        compare(x, root ? "root's buffer" : "received", part.memory, expected, part.type.text);
      });
}

// In-place block and over-declared counts contradict each other: the block's length is the declared
// one.
inline void exact_if_in_place(Case& c) {
  if (c.in_place) c.declared = c.units;
}

inline void run_any_gather(Case& c, const Live& live, const char* name, bool regular) {
  exact_if_in_place(c);
  if (regular) make_regular(c);
  const bool root = c.rank == c.root;
  const bool in_place = root && c.in_place;
  const auto me = static_cast<std::size_t>(c.rank);
  Part send;
  make_part(send, c, c.units[me], 1);
  send.memory.write(send.type, 0, message(c, c.rank, -1, c.units[me]));
  const Memory sent = send.memory;
  Array receive;
  Memory before;
  Memory expected;
  if (root) {
    make_array(receive, c, regular, 2);
    if (in_place) receive.memory.write(receive.type, receive.place(c.rank), message(c, c.rank, -1, c.units[me]));
    before = expected = receive.memory;
    for (int r = 0; r < c.size; ++r) {
      expected.write(receive.type, receive.place(r), message(c, r, -1, c.units[static_cast<std::size_t>(r)]));
    }
  }
  run(
      c, live, name,
      [&] {
        if (root) receive.memory = before;
      },
      [&](const Caller& caller) {
        const One from = in_place ? One{MPI_IN_PLACE, 0, MPI_DATATYPE_NULL}
                                  : One{send.memory.origin(), send.count, send.type.handle};
        const Many to = root ? Many{receive.memory.origin(), &receive.counts, &receive.displs, receive.type.handle}
                             : Many{nullptr, nullptr, nullptr, MPI_DATATYPE_NULL};
        return regular ? caller.gather(from, to, c.root, live.comm) : caller.gatherv(from, to, c.root, live.comm);
      },
      [&](const Context& x) {
        const std::string types = send.type.text + " -> " + receive.type.text;
        compare(x, "send buffer", send.memory, sent, types);
        compare(x, "received", receive.memory, expected, types);
      });
}

inline void run_any_scatter(Case& c, const Live& live, const char* name, bool regular) {
  if (regular) make_regular(c);
  const bool root = c.rank == c.root;
  const bool in_place = root && c.in_place;
  const auto me = static_cast<std::size_t>(c.rank);
  Part receive;
  make_part(receive, c, c.declared[me], 1);
  const Memory before = receive.memory;
  Memory expected = receive.memory;
  if (!in_place) expected.write(receive.type, 0, message(c, c.root, c.rank, c.units[me]));
  Array send;
  Memory sent;
  if (root) {
    Case exact = c;  // the root says what it sends; only receivers may declare more
    exact.declared = c.units;
    make_array(send, exact, regular, 2);
    for (int r = 0; r < c.size; ++r) {
      send.memory.write(send.type, send.place(r), message(c, c.root, r, c.units[static_cast<std::size_t>(r)]));
    }
    sent = send.memory;
  }
  run(
      c, live, name, [&] { receive.memory = before; },
      [&](const Caller& caller) {
        const Many from = root ? Many{send.memory.origin(), &send.counts, &send.displs, send.type.handle}
                               : Many{nullptr, nullptr, nullptr, MPI_DATATYPE_NULL};
        const One to = in_place ? One{MPI_IN_PLACE, 0, MPI_DATATYPE_NULL}
                                : One{receive.memory.origin(), receive.count, receive.type.handle};
        return regular ? caller.scatter(from, to, c.root, live.comm) : caller.scatterv(from, to, c.root, live.comm);
      },
      [&](const Context& x) {
        const std::string types = send.type.text + " -> " + receive.type.text;
        compare(x, "send buffer", send.memory, sent, types);
        compare(x, "received", receive.memory, expected, types);
      });
}

inline void run_any_allgather(Case& c, const Live& live, const char* name, bool regular) {
  exact_if_in_place(c);
  if (regular) make_regular(c);
  const auto me = static_cast<std::size_t>(c.rank);
  Part send;
  make_part(send, c, c.units[me], 1);
  send.memory.write(send.type, 0, message(c, c.rank, -1, c.units[me]));
  const Memory sent = send.memory;
  Array receive;
  make_array(receive, c, regular, 2);
  if (c.in_place) receive.memory.write(receive.type, receive.place(c.rank), message(c, c.rank, -1, c.units[me]));
  const Memory before = receive.memory;
  Memory expected = receive.memory;
  for (int r = 0; r < c.size; ++r) {
    expected.write(receive.type, receive.place(r), message(c, r, -1, c.units[static_cast<std::size_t>(r)]));
  }
  run(
      c, live, name, [&] { receive.memory = before; },
      [&](const Caller& caller) {
        const One from = c.in_place ? One{MPI_IN_PLACE, 0, MPI_DATATYPE_NULL}
                                    : One{send.memory.origin(), send.count, send.type.handle};
        const Many to{receive.memory.origin(), &receive.counts, &receive.displs, receive.type.handle};
        return regular ? caller.allgather(from, to, live.comm) : caller.allgatherv(from, to, live.comm);
      },
      [&](const Context& x) {
        const std::string types = send.type.text + " -> " + receive.type.text;
        compare(x, "send buffer", send.memory, sent, types);
        compare(x, "received", receive.memory, expected, types);
      });
}

// Every pair of ranks exchanges blocks of one length, so that both directions may be in place.
inline Case pairwise(const Case& c, bool regular) {
  Case pairs = c;
  const auto size = static_cast<std::size_t>(c.size);
  for (std::size_t r = 0; r < size && !regular; ++r) {
    pairs.units[r] = c.units[(r + static_cast<std::size_t>(c.rank)) % size];
    pairs.declared[r] = c.declared[(r + static_cast<std::size_t>(c.rank)) % size];
  }
  if (c.in_place) pairs.declared = pairs.units;
  return pairs;
}

inline void run_any_alltoall(Case& c, const Live& live, const char* name, bool regular) {
  if (regular) make_regular(c);
  const Case take = pairwise(c, regular);
  Case give = take;
  give.declared = give.units;
  Array send, receive;
  make_array(send, give, regular, 1);
  make_array(receive, take, regular, 2);
  for (int r = 0; r < c.size; ++r) {
    const std::vector<char> data = message(c, c.rank, r, take.units[static_cast<std::size_t>(r)]);
    if (c.in_place) {
      receive.memory.write(receive.type, receive.place(r), data);
    } else {
      send.memory.write(send.type, send.place(r), data);
    }
  }
  const Memory sent = send.memory, before = receive.memory;
  Memory expected = before;
  for (int r = 0; r < c.size; ++r) {
    expected.write(receive.type, receive.place(r), message(c, r, c.rank, take.units[static_cast<std::size_t>(r)]));
  }
  run(
      c, live, name, [&] { receive.memory = before; },
      [&](const Caller& caller) {
        const Many from = c.in_place ? Many{MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL}
                                     : Many{send.memory.origin(), &send.counts, &send.displs, send.type.handle};
        const Many to{receive.memory.origin(), &receive.counts, &receive.displs, receive.type.handle};
        return regular ? caller.alltoall(from, to, live.comm) : caller.alltoallv(from, to, live.comm);
      },
      [&](const Context& x) {
        const std::string types = send.type.text + " -> " + receive.type.text;
        compare(x, "send buffer", send.memory, sent, types);
        compare(x, "received", receive.memory, expected, types);
      });
}

inline void run_alltoallw(Case& c, const Live& live) {
  const Case take = pairwise(c, false);
  Case give = take;
  give.declared = give.units;
  TypedArray send, receive;
  make_typed_array(send, give, 1);
  make_typed_array(receive, take, 2);
  for (std::size_t r = 0; r < take.units.size(); ++r) {
    TypedArray& from = c.in_place ? receive : send;
    from.memory.write(from.types[r], from.displs[r], message(c, c.rank, static_cast<int>(r), take.units[r]));
  }
  const Memory sent = send.memory, before = receive.memory;
  Memory expected = before;
  for (std::size_t r = 0; r < take.units.size(); ++r) {
    expected.write(receive.types[r], receive.displs[r], message(c, static_cast<int>(r), c.rank, take.units[r]));
  }
  run(
      c, live, "alltoallw", [&] { receive.memory = before; },
      [&](const Caller& caller) {
        const Typed from = c.in_place ? Typed{MPI_IN_PLACE, nullptr, nullptr, nullptr}
                                      : Typed{send.memory.origin(), &send.counts, &send.displs, send.handles.data()};
        return caller.alltoallw(
            from, {receive.memory.origin(), &receive.counts, &receive.displs, receive.handles.data()}, live.comm);
      },
      [&](const Context& x) {
        compare(x, "send buffer", send.memory, sent, "several");
        compare(x, "received", receive.memory, expected, "several");
      });
}

struct Operation {
  const char* name;
  int weight;
  void (*run)(Case&, const Live&);
};

inline const Operation kOperations[] = {
    {"barrier", 5, run_barrier},
    {"bcast", 15, run_bcast},
    {"gather", 12, [](Case& c, const Live& l) { run_any_gather(c, l, "gather", true); }},
    {"gatherv", 15, [](Case& c, const Live& l) { run_any_gather(c, l, "gatherv", false); }},
    {"scatter", 12, [](Case& c, const Live& l) { run_any_scatter(c, l, "scatter", true); }},
    {"scatterv", 15, [](Case& c, const Live& l) { run_any_scatter(c, l, "scatterv", false); }},
    {"allgather", 12, [](Case& c, const Live& l) { run_any_allgather(c, l, "allgather", true); }},
    {"allgatherv", 15, [](Case& c, const Live& l) { run_any_allgather(c, l, "allgatherv", false); }},
    {"alltoall", 12, [](Case& c, const Live& l) { run_any_alltoall(c, l, "alltoall", true); }},
    {"alltoallv", 15, [](Case& c, const Live& l) { run_any_alltoall(c, l, "alltoallv", false); }},
    {"alltoallw", 15, run_alltoallw},
};

inline const Operation& choose_operation(Random& random) {
  int total = 0;
  for (const Operation& operation : kOperations) total += operation.weight;
  for (;;) {
    std::int64_t pick = random.below(total);
    const Operation* operation = kOperations;
    while ((pick -= operation->weight) >= 0) ++operation;
    if (g_skip != operation->name) return *operation;
  }
}

}  // namespace differential
