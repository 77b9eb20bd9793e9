// SPDX-License-Identifier: BSD-3-Clause
// Neighbourhood collectives against messages that the program sends itself, by the rules of
// MPI-4.1, section 8.6.
//   neighbor_calls random SEED N
//             N calls on each of many topologies: grids, graphs, distributed graphs with neighbours
//             that are there several times, and duplicates of these. Calls block, or have requests
//             that end later, or persistent ones that start twice
//   neighbor_calls host SEED N
//             the same without such neighbours, all blocking: for STRETTO_CHECK=3, because some
//             MPIs exchange the blocks of such neighbours
//   neighbor_calls short
//             a block that is too short for what comes
// Prints RESULT with the number of wrong calls, for each rank.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <vector>

namespace {

int g_rank, g_size, g_wrong;
using Random = std::mt19937_64;
int below(Random& random, int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); }

// One int with gaps of different kinds.
MPI_Datatype g_types[3];
constexpr int kStride[3] = {1, 2, 3};

void make_types() {
  g_types[0] = MPI_INT;
  for (int t = 1; t < 3; t++) {
    MPI_Type_create_resized(MPI_INT, 0, kStride[t] * static_cast<MPI_Aint>(sizeof(int)), &g_types[t]);
    MPI_Type_commit(&g_types[t]);
  }
}

// ---- Topologies ----

struct Topology {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<int> sources, destinations;
  bool is_grid = false;
};

void ask(Topology& t) {
  int kind = MPI_UNDEFINED, rank = 0;
  MPI_Topo_test(t.comm, &kind);
  MPI_Comm_rank(t.comm, &rank);
  t.sources.clear();
  t.destinations.clear();
  t.is_grid = kind == MPI_CART;
  if (kind == MPI_CART) {
    int dimensions = 0;
    MPI_Cartdim_get(t.comm, &dimensions);
    for (int d = 0; d < dimensions; d++) {
      int ends[2];
      MPI_Cart_shift(t.comm, d, 1, &ends[0], &ends[1]);
      t.sources.insert(t.sources.end(), ends, ends + 2);
    }
    t.destinations = t.sources;
  } else if (kind == MPI_GRAPH) {
    int count = 0;
    MPI_Graph_neighbors_count(t.comm, rank, &count);
    t.sources.resize(count);
    MPI_Graph_neighbors(t.comm, rank, count, t.sources.data());
    t.destinations = t.sources;
  } else {
    int in = 0, out = 0, weighted = 0;
    MPI_Dist_graph_neighbors_count(t.comm, &in, &out, &weighted);
    t.sources.resize(in);
    t.destinations.resize(out);
    std::vector<int> weights(in + out + 1);
    MPI_Dist_graph_neighbors(t.comm, in, t.sources.data(), weights.data(), out, t.destinations.data(),
                             weights.data() + in);
  }
}

Topology grid(const std::vector<int>& dims, const std::vector<int>& periodic, bool reorder) {
  Topology t;
  MPI_Cart_create(MPI_COMM_WORLD, static_cast<int>(dims.size()), dims.data(), periodic.data(), reorder, &t.comm);
  return t;
}

// A grid of all ranks. Repeats: periodic dimensions of one or two ranks are allowed.
Topology random_grid(Random& random, bool repeats) {
  std::vector<int> dims(1 + below(random, 3), 0), periodic;
  MPI_Dims_create(g_size, static_cast<int>(dims.size()), dims.data());
  std::shuffle(dims.begin(), dims.end(), random);
  for (const int d : dims) periodic.push_back(below(random, 2) && (repeats || d > 2));
  return grid(dims, periodic, below(random, 2) != 0);
}

// The edges, which all ranks draw alike: from, to.
std::vector<std::pair<int, int>> random_edges(Random& random, bool repeats) {
  std::vector<std::pair<int, int>> edges;
  for (int e = below(random, 4 * g_size); e > 0; e--) {
    const std::pair<int, int> edge{below(random, g_size), below(random, g_size)};
    const bool there = std::find(edges.begin(), edges.end(), edge) != edges.end();
    for (int times = !repeats ? !there : below(random, 4) == 0 ? 3 : 1; times > 0; times--) edges.push_back(edge);
  }
  std::shuffle(edges.begin(), edges.end(), random);
  return edges;
}

Topology adjacent(Random& random, bool repeats) {
  std::vector<int> in, out;
  for (const auto& [from, to] : random_edges(random, repeats)) {
    if (from == g_rank) out.push_back(to);
    if (to == g_rank) in.push_back(from);
  }
  Random own(random() + static_cast<unsigned>(g_rank));
  std::shuffle(in.begin(), in.end(), own);
  std::vector<int> weights(in.size() + out.size() + 1, 3);
  Topology t;
  if (below(random, 2)) {
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(in.size()), in.data(), MPI_UNWEIGHTED,
                                   static_cast<int>(out.size()), out.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &t.comm);
  } else {
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(in.size()), in.data(), weights.data(),
                                   static_cast<int>(out.size()), out.data(), weights.data(), MPI_INFO_NULL, 1, &t.comm);
  }
  return t;
}

// Each rank tells some of the edges, which need not be its own.
Topology distributed(Random& random, bool repeats) {
  std::vector<int> from, degrees, to;
  int index = 0;
  for (const auto& edge : random_edges(random, repeats)) {
    if (index++ % g_size != g_rank) continue;
    from.push_back(edge.first);
    degrees.push_back(1);
    to.push_back(edge.second);
  }
  Topology t;
  MPI_Dist_graph_create(MPI_COMM_WORLD, static_cast<int>(from.size()), from.data(), degrees.data(), to.data(),
                        MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &t.comm);
  return t;
}

// Both ends of each edge name each other.
Topology graph(Random& random, bool repeats) {
  std::vector<std::vector<int>> of(g_size);
  for (const auto& [a, b] : random_edges(random, repeats)) {
    const bool there = std::find(of[a].begin(), of[a].end(), b) != of[a].end();
    if (there && !repeats) continue;
    of[a].push_back(b);
    if (a != b) of[b].push_back(a);
  }
  std::vector<int> index, edges;
  for (const auto& each : of) {
    edges.insert(edges.end(), each.begin(), each.end());
    index.push_back(static_cast<int>(edges.size()));
  }
  edges.push_back(0);  // not null
  Topology t;
  MPI_Graph_create(MPI_COMM_WORLD, g_size, index.data(), edges.data(), 0, &t.comm);
  return t;
}

std::vector<Topology> topologies(Random& random, bool repeats) {
  std::vector<Topology> all;
  all.push_back(grid({g_size}, {g_size > 2 || repeats}, false));
  if (repeats) all.push_back(grid({1, g_size, 1}, {1, 0, 1}, false));
  for (int n = 0; n < 2; n++) all.push_back(random_grid(random, repeats));
  for (int n = 0; n < 3; n++) all.push_back(adjacent(random, repeats));
  all.push_back(distributed(random, repeats));
  all.push_back(graph(random, repeats));
  Topology duplicate;
  MPI_Comm_dup(all[below(random, static_cast<int>(all.size()))].comm, &duplicate.comm);
  all.push_back(duplicate);
  MPI_Request request;
  MPI_Comm_idup(all[0].comm, &duplicate.comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  all.push_back(duplicate);
  for (Topology& t : all) {
    ask(t);
    MPI_Barrier(t.comm);  // its members agree: before, the MPI serves calls with requests
  }
  return all;
}

// ---- The rule ----

// Sends and receives the blocks by messages. `at(k)` is where block k is.
template <class At>
void by_messages(const Topology& t, At sent_at, const std::vector<int>& sent, At received_at,
                 const std::vector<int>& received) {
  std::vector<MPI_Request> requests;
  // The number of its pair, or the direction in a grid.
  const auto tag = [&](const std::vector<int>& peers, int k) {
    return static_cast<int>(std::count(peers.begin(), peers.begin() + k, peers[k]));
  };
  for (int k = 0; k < static_cast<int>(t.sources.size()); k++) {
    MPI_Irecv(received_at(k), received[k], MPI_INT, t.sources[k], t.is_grid ? k ^ 1 : tag(t.sources, k), t.comm,
              &requests.emplace_back());
  }
  for (int k = 0; k < static_cast<int>(t.destinations.size()); k++) {
    MPI_Isend(sent_at(k), sent[k], MPI_INT, t.destinations[k], t.is_grid ? k : tag(t.destinations, k), t.comm,
              &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

// ---- One call ----

// The blocking call, the nonblocking one, or the persistent request.
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define MAKE(name, ...)                                                                 \
  (request == nullptr ? MPI_Neighbor_##name(__VA_ARGS__)                                \
   : persistent       ? MPI_Neighbor_##name##_init(__VA_ARGS__, MPI_INFO_NULL, request) \
                      : MPI_Ineighbor_##name(__VA_ARGS__, request))
constexpr bool kHasPersistent = true;
#else
#define MAKE(name, ...) \
  (request == nullptr ? MPI_Neighbor_##name(__VA_ARGS__) : MPI_Ineighbor_##name(__VA_ARGS__, request))
constexpr bool kHasPersistent = false;
#endif

enum Form { kAllgather, kAllgatherv, kAlltoall, kAlltoallv, kAlltoallw, kForms };

// One side: blocks in an array of ints, every n-th of which counts.
struct Side {
  std::vector<int> counts, displs, memory;
  std::vector<MPI_Aint> bytes;
  std::vector<MPI_Datatype> types;
  std::vector<int> strides;
};

class Made {
 public:
  Made(const Topology& t, Form form, Random all, Random own)
      : t_(t), form_(form), send_type_(below(all, 3)), receive_type_((send_type_ + below(all, 3)) % 3) {
    constexpr int kLongest[] = {1, 3, 24, 200, 3000, 100'000};
    most_ = kLongest[below(all, below(all, 12) == 0 ? 6 : 4)];
    const int in = static_cast<int>(t.sources.size()), out = static_cast<int>(t.destinations.size());
    // What each rank sends, and how much comes.
    const int mine = form == kAllgatherv ? below(own, most_ + 1) : most_;
    std::vector<int> sent(out, mine), received(in, most_);
    for (int& n : sent) n = form >= kAlltoallv ? below(own, most_ + 1) : n;
    const std::vector<int> ones_in(in, 1), ones_out(out, 1);
    by_messages<std::function<int*(int)>>(
        t, [&](int k) { return &sent[k]; }, ones_out, [&](int k) { return &received[k]; }, ones_in);
    lay_out(send_, sent, send_type_);
    lay_out(receive_, received, receive_type_);
    for (int& word : send_.memory) word = below(own, 1 << 30);
    same_.resize(static_cast<std::size_t>(most_ + 1) * kStride[send_type_]);
    for (int& word : same_) word = below(own, 1 << 30);
    same_count_ = mine;
    empty_ = receive_.memory;
    expect(sent, received);
  }

  // Makes the call. It blocks if `request` is null. `persistent`: makes and starts the request.
  void go(MPI_Request* request, bool persistent) {
    receive_.memory = empty_;
    make(request, persistent);
    if (persistent) MPI_Start(request);
  }
  void start_again(MPI_Request* request) {
    receive_.memory = empty_;
    MPI_Start(request);
  }

  void make(MPI_Request* request, bool persistent) {
    const MPI_Datatype give = g_types[send_type_], take = g_types[receive_type_];
    Side &s = send_, &r = receive_;
    int *in = r.memory.data(), *out = s.memory.data(), *same = same_.data();
    const MPI_Comm comm = t_.comm;
    const int *give_n = s.counts.data(), *give_at = s.displs.data(), *take_n = r.counts.data(),
              *take_at = r.displs.data();
    (void)persistent;
    switch (form_) {
      case kAllgather: MAKE(allgather, same, most_, give, in, most_, take, comm); break;
      case kAllgatherv: MAKE(allgatherv, same, same_count_, give, in, take_n, take_at, take, comm); break;
      case kAlltoall: MAKE(alltoall, out, most_, give, in, most_, take, comm); break;
      case kAlltoallv: MAKE(alltoallv, out, give_n, give_at, give, in, take_n, take_at, take, comm); break;
      default:
        MAKE(alltoallw, out, give_n, s.bytes.data(), s.types.data(), in, take_n, r.bytes.data(), r.types.data(), comm);
    }
  }
  void check(int number) const {
    if (receive_.memory == expected_) return;
    if (g_wrong++ > 2) return;
    std::size_t at = 0;
    while (receive_.memory[at] == expected_[at]) at++;
    std::fprintf(stderr, "rank %d: call %d of form %d with at most %d ints is wrong at %zu of %zu\n", g_rank, number,
                 form_, most_, at, expected_.size());
  }

 private:
  // Regular forms have their blocks in order, without gaps; the others in reverse order.
  void lay_out(Side& side, const std::vector<int>& counts, int type) {
    const int blocks = static_cast<int>(counts.size());
    const bool regular = form_ == kAllgather || form_ == kAlltoall;
    side.counts = counts;
    side.displs.resize(blocks + 1);
    side.bytes.resize(blocks + 1);
    side.types.resize(blocks + 1);
    side.strides.resize(blocks + 1);
    int elements = 0, words = 0;
    for (int i = 0; i < blocks; i++) {
      const int k = regular ? i : blocks - 1 - i, of = form_ == kAlltoallw ? (type + k) % 3 : type;
      side.displs[k] = elements;
      side.bytes[k] = static_cast<MPI_Aint>(words * sizeof(int));
      side.types[k] = g_types[of];
      side.strides[k] = kStride[of];
      elements += counts[k] + (regular ? 0 : 2);
      words += (counts[k] + 2) * kStride[of];
    }
    side.memory.assign(static_cast<std::size_t>(std::max(words, (elements + 1) * kStride[type])), -1);
  }
  [[nodiscard]] int* place(Side& side, int k, int i) const {
    const auto begin = form_ == kAlltoallw ? static_cast<std::size_t>(side.bytes[k]) / sizeof(int)
                                           : static_cast<std::size_t>(side.displs[k]) * side.strides[k];
    return &side.memory[begin + static_cast<std::size_t>(i) * side.strides[k]];
  }
  void expect(const std::vector<int>& sent, const std::vector<int>& received) {
    std::vector<std::vector<int>> out, in;
    for (std::size_t k = 0; k < sent.size(); k++) {
      auto& block = out.emplace_back();
      for (int i = 0; i < sent[k]; i++)
        block.push_back(form_ <= kAllgatherv ? same_[static_cast<std::size_t>(i) * kStride[send_type_]]
                                             : *place(send_, static_cast<int>(k), i));
    }
    for (const int n : received) in.emplace_back(n);
    by_messages<std::function<int*(int)>>(
        t_, [&](int k) { return out[k].data(); }, sent, [&](int k) { return in[k].data(); }, received);
    Side filled = receive_;
    for (std::size_t k = 0; k < in.size(); k++) {
      for (int i = 0; i < received[k] && t_.sources[k] != MPI_PROC_NULL; i++)
        *place(filled, static_cast<int>(k), i) = in[k][i];
    }
    expected_ = filled.memory;
  }

  const Topology& t_;
  Form form_;
  int send_type_, receive_type_, most_, same_count_ = 0;
  Side send_, receive_;
  std::vector<int> same_, expected_, empty_;
};

void play(std::uint64_t seed, int calls, bool random_completion) {
  Random random(seed);
  std::vector<Topology> all = topologies(random, random_completion);
  Random own(seed * 100 + static_cast<unsigned>(g_rank));
  for (std::size_t n = 0; n < all.size(); n++) {
    std::deque<Made> waiting;
    std::vector<MPI_Request> requests;
    std::vector<bool> persistent;
    for (int call = 0; call < calls; call++) {
      const Form form = static_cast<Form>(below(random, kForms));
      const bool later = random_completion && below(random, 3) == 0;
      persistent.push_back(later && kHasPersistent && below(random, 3) == 0);
      waiting.emplace_back(all[n], form, Random(random()), Random(own()));
      MPI_Request& request = requests.emplace_back(MPI_REQUEST_NULL);
      waiting.back().go(later ? &request : nullptr, persistent.back());
      int flag = 0;
      if (below(own, 3) == 0)
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE);
      if (call + 1 < calls && below(random, 6) != 0) continue;
      MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
      for (const Made& made : waiting) made.check(call);
      for (std::size_t i = 0; i < waiting.size(); i++) {
        if (!persistent[i]) continue;
        waiting[i].start_again(&requests[i]);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        waiting[i].check(call);
        MPI_Request_free(&requests[i]);
      }
      waiting.clear();
      requests.clear();
      persistent.clear();
    }
  }
  for (Topology& t : all) MPI_Comm_free(&t.comm);
}

void expect(bool right, const char* what) {
  if (right) return;
  g_wrong++;
  std::fprintf(stderr, "rank %d: %s\n", g_rank, what);
}

void too_short() {
  Topology t = grid({g_size}, {1}, false);
  MPI_Comm_set_errhandler(t.comm, MPI_ERRORS_RETURN);
  int send[8] = {}, receive[8] = {};
  std::fill_n(send, 8, g_rank);
  for (int turn = 0; turn < 3; turn++) {
    const bool shorter = turn == 1 && g_rank == 0;
    const int code = MPI_Neighbor_alltoall(send, 4, MPI_INT, receive, shorter ? 2 : 4, MPI_INT, t.comm);
    int error = MPI_SUCCESS;
    MPI_Error_class(code, &error);
    expect(error == (shorter ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "the error class of a call");
  }
  expect(receive[7] == (g_rank + 1) % g_size, "what comes from above");
  const int code = MPI_Neighbor_alltoall(MPI_IN_PLACE, 4, MPI_INT, receive, 4, MPI_INT, t.comm);
  expect(code != MPI_SUCCESS, "MPI_IN_PLACE is taken");
  MPI_Barrier(t.comm);
  MPI_Comm_free(&t.comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  make_types();
  if (argc > 3)
    play(std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]), std::strcmp(argv[1], "random") == 0);
  else
    too_short();
  std::printf("RESULT {\"wrong\": %d}\n", g_wrong);
  for (int t = 1; t < 3; t++) MPI_Type_free(&g_types[t]);
  MPI_Finalize();
  return 0;
}
