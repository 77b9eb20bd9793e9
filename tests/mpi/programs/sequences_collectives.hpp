// SPDX-License-Identifier: BSD-3-Clause
// A random collective: its kind, its form, and arguments that fit on all ranks.
#pragma once
#include "sequences_calls.hpp"
#include "sequences_waits.hpp"

namespace sequences {

// What all ranks of the communicator have in common.
struct Plan {
  Kind kind = Barrier;
  Form form = Form::blocking;
  Element element;
  bool send_derived = false, receive_derived = false, in_place = false;
  std::int64_t count = 0;  // elements of a block
  int style = 0, root = 0;
  bool spread = false;
};

// How many elements rank a sends to rank b, and b to a.
inline std::int64_t part(const Plan& plan, int a, int b) {
  switch (plan.style) {
    case 0: return plan.count;
    case 1: return plan.count + (a + b) % 4;
    case 2: return (a + b) % 2 == 0 ? plan.count : 0;
    default: return a == b ? plan.count : std::min<std::int64_t>(plan.count, 1);
  }
}

// Fills in the two sides of a call. The buffers belong to the transfer.
class Layout {
  static constexpr std::int64_t kApart = Bytes::kLead;  // blocks may begin below their addresses

 public:
  Layout(const Plan& plan, const Communicator& comm, Arguments& a, Transfer& t)
      : plan_(plan), comm_(comm), a_(a), t_(t) {}

  void lay_out() {
    const Kind k = plan_.kind;
    a_.kind = k;
    a_.root = plan_.root;
    a_.comm = comm_.handle;
    t_.logs_receive = k != Barrier;
    if (is_reduction(k)) return reduction();
    if (is_neighbor(k)) return neighbors();
    const bool is_root = comm_.rank == plan_.root;
    const std::vector<int> everyone = ranks();
    switch (k) {
      case Bcast: single(a_.receive, t_.receive, plan_.receive_derived, plan_.count); break;
      case Gather:
      case Gatherv: gather(is_root, everyone); break;
      case Scatter:
      case Scatterv: scatter(is_root, everyone); break;
      case Allgather:
      case Allgatherv:
        single(a_.send, t_.send, plan_.send_derived, own_part());
        blocks(a_.receive, t_.receive, plan_.receive_derived, everyone, k == Allgatherv, false);
        break;
      case Alltoall:
      case Alltoallv:
      case Alltoallw:
        blocks(a_.send, t_.send, plan_.send_derived, everyone, k != Alltoall, k == Alltoallw);
        blocks(a_.receive, t_.receive, plan_.receive_derived, everyone, k != Alltoall, k == Alltoallw);
        break;
      default: break;
    }
    if (plan_.in_place && k >= Allgather) a_.send.at = MPI_IN_PLACE;
  }

 private:
  [[nodiscard]] std::vector<int> ranks() const {
    std::vector<int> all;
    for (int r = 0; r < comm_.size; ++r) all.push_back(r);
    return all;
  }
  [[nodiscard]] bool irregular() const { return plan_.kind == Gatherv || plan_.kind == Scatterv || allgatherv(); }
  [[nodiscard]] bool allgatherv() const { return plan_.kind == Allgatherv || plan_.kind == Neighbor_allgatherv; }
  [[nodiscard]] std::int64_t own_part() const { return irregular() ? part(plan_, comm_.rank, 0) : plan_.count; }
  // A block between this rank and another. Who gives all the same block has one size for all.
  [[nodiscard]] std::int64_t part_with(int peer) const {
    const bool one_size = irregular() || plan_.kind == Reduce_scatter;
    return one_size ? part(plan_, std::max(peer, 0), 0) : part(plan_, comm_.rank, std::max(peer, 0));
  }

  void single(Side& side, Bytes& bytes, bool derived, std::int64_t count) const {
    const Element e = derived ? plan_.element : plain_int();
    side.type = e.handle;
    side.count = derived ? count : count * plan_.element.units;
    bytes.make(e, side.count);
    side.at = bytes.at();
  }

  // A block for each peer. With `listed`, in any order and apart.
  void blocks(Side& side, Bytes& bytes, bool derived, const std::vector<int>& peers, bool listed, bool typed) const {
    const auto n = static_cast<std::int64_t>(peers.size());
    if (!listed) {
      single(side, bytes, derived, plan_.count * std::max<std::int64_t>(n, 1));
      side.count = derived ? plan_.count : plan_.count * plan_.element.units;
      return;
    }
    std::vector<std::int64_t> places(peers.size());
    std::int64_t place = 0;  // in elements, or in bytes
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const std::size_t p = plan_.spread ? peers.size() - 1 - i : i;
      const Element e = element_for(derived, typed, p);
      places[p] = place;
      const std::int64_t count = scaled(part_with(peers[p]), e);
      place += typed ? count * e.extent + kApart + (plan_.spread ? 8 : 0) : count + (plan_.spread ? 2 : 0);
    }
    for (std::size_t p = 0; p < peers.size(); ++p) {
      const Element e = element_for(derived, typed, p);
      side.counts.push_back(scaled(part_with(peers[p]), e));
      side.displs.push_back(places[p]);
      side.types.push_back(e.handle);
    }
    while (side.types.size() < static_cast<std::size_t>(comm_.size)) {  // MPICH 4 checks so many
      side.counts.push_back(0);
      side.displs.push_back(0);
      side.types.push_back(MPI_INT);
    }
    const Element e = typed ? Element{MPI_BYTE, 1, 1, 0, 1, ""} : element_for(derived, false, 0);
    side.type = e.handle;
    bytes.make(e, place + 1);
    side.at = bytes.at();
  }
  // In typed blocks, every other one is of ints.
  [[nodiscard]] Element element_for(bool derived, bool typed, std::size_t p) const {
    return derived && !(typed && p % 2 == 1) ? plan_.element : plain_int();
  }
  [[nodiscard]] std::int64_t scaled(std::int64_t count, const Element& e) const {
    return e.handle == plan_.element.handle ? count : count * plan_.element.units;
  }

  void gather(bool is_root, const std::vector<int>& everyone) {
    single(a_.send, t_.send, plan_.send_derived, own_part());
    t_.logs_receive = is_root;
    if (is_root) blocks(a_.receive, t_.receive, plan_.receive_derived, everyone, plan_.kind == Gatherv, false);
    if (is_root && plan_.in_place) a_.send.at = MPI_IN_PLACE;
  }
  void scatter(bool is_root, const std::vector<int>& everyone) {
    single(a_.receive, t_.receive, plan_.receive_derived, own_part());
    if (is_root) blocks(a_.send, t_.send, plan_.send_derived, everyone, plan_.kind == Scatterv, false);
    if (is_root && plan_.in_place) a_.receive.at = MPI_IN_PLACE;
  }

  void reduction() {
    const Kind k = plan_.kind;
    const Element& e = plan_.element;
    std::int64_t in = plan_.count, out = plan_.count;
    if (k == Reduce_scatter_block) in = plan_.count * comm_.size;
    if (k == Reduce_scatter) {
      in = 0;
      for (int r = 0; r < comm_.size; ++r) {
        a_.receive.counts.push_back(part_with(r));
        in += part_with(r);
      }
      out = part_with(comm_.rank);
    }
    const bool here = k != Reduce || comm_.rank == plan_.root;
    t_.logs_receive = here && !(k == Exscan && comm_.rank == 0);
    t_.send.make(e, in);
    a_.send.at = t_.send.at();
    if (here) t_.receive.make(e, plan_.in_place ? in : out);
    if (here) a_.receive.at = t_.receive.at();
    if (here && plan_.in_place) {
      a_.send.at = MPI_IN_PLACE;
      t_.receive_most = Bytes::reach(e, out);
    }
    a_.receive.count = plan_.count;
    a_.receive.type = e.handle;
  }

  void neighbors() {
    const Kind k = plan_.kind;
    const bool gathers = k == Neighbor_allgather || k == Neighbor_allgatherv;
    const bool listed = k != Neighbor_allgather && k != Neighbor_alltoall;
    const bool typed = k == Neighbor_alltoallw;
    if (gathers) {
      single(a_.send, t_.send, plan_.send_derived, own_part());
    } else {
      blocks(a_.send, t_.send, plan_.send_derived, comm_.destinations, listed, typed);
    }
    blocks(a_.receive, t_.receive, plan_.receive_derived, comm_.sources, listed, typed);
  }

  const Plan& plan_;
  const Communicator& comm_;
  Arguments& a_;
  Transfer& t_;
};

inline Form draw_form(Random& all) {
  const auto f = all.below(100);
  if (f < 45) return Form::blocking;
  return f < 82 || !kHasPersistent ? Form::nonblocking : Form::persistent;
}

inline Plan draw_plan(State& s, const Communicator& comm, Random& all, Transfer& t, MPI_Op& op) {
  Plan plan;
  const auto any = static_cast<Kind>(all.below(kCollectives));
  const auto near = static_cast<Kind>(kCollectives + all.below(kKinds - kCollectives));
  const bool wants_neighbors = all.chance(60);
  plan.kind = comm.topology != Topology::none && wants_neighbors ? near : any;
  if (plan.kind == Neighbor_allgatherv && !s.with("neighbor_allgatherv")) plan.kind = Neighbor_allgather;
  plan.element = s.elements[static_cast<std::size_t>(all.below(kElements))];
  const bool derived = all.chance(40) && plan.element.handle != MPI_DATATYPE_NULL;
  plan.send_derived = all.chance(70);
  plan.receive_derived = all.chance(70);
  plan.in_place = all.chance(30);
  if (plan.kind == Alltoallw && !s.with("alltoallw_in_place")) plan.in_place = false;
  plan.style = static_cast<int>(all.below(4));
  plan.root = static_cast<int>(all.below(1000) % comm.size);
  plan.spread = all.chance(50);
  const bool of_many = plan.kind >= Gather && plan.kind != Reduce && plan.kind != Allreduce;
  const std::int64_t ints = draw_length(all, of_many);
  const Reduction reduction = draw_reduction(all, s.own, s.with("reduction_gaps"));
  if (is_reduction(plan.kind)) {
    plan.element = reduction.element;
    t.values = reduction.values;
    op = reduction.op;
  } else if (!derived) {
    plan.element = plain_int();
  }
  plan.count = ints == 0 ? 0 : std::max<std::int64_t>(ints / plan.element.units, 1);
  return plan;
}

inline std::string text_of(const Plan& plan, bool wide, std::size_t comm) {
  static const char* const forms[] = {"", "I", "persistent "};
  std::string text = forms[static_cast<int>(plan.form)] + std::string(kNames[plan.kind]) + (wide ? "_c" : "");
  text += " of " + std::to_string(plan.count) + " " + plan.element.name;
  if (plan.element.units > 1 && !is_reduction(plan.kind))
    text += plan.send_derived ? (plan.receive_derived ? "" : ", received as INT") : ", sent as INT";
  if (plan.in_place) text += " in place";
  if (has_root(plan.kind)) text += " root " + std::to_string(plan.root);
  if (plan.style != 0) text += " style " + std::to_string(plan.style);
  return text + " on communicator " + std::to_string(comm);
}

inline void collective(State& s, Random& all, Random& mine) {
  const auto slot = static_cast<std::size_t>(all.below(kComms));
  const auto q = static_cast<std::size_t>(all.below(kRequests));
  Form form = draw_form(all);
  if (form == Form::persistent && !s.with("persistent")) form = Form::nonblocking;
  const bool starts = all.chance(70);
  Communicator& comm = s.comms[slot];
  if (form != Form::blocking) vacated(s, q, mine);  // also on ranks without the communicator
  if (comm.empty()) return s.say("nothing: communicator " + number_of(slot) + " is not there");
  auto t = std::make_shared<Transfer>();
  auto a = std::make_shared<Arguments>();
  t->index = s.index;
  Plan plan = draw_plan(s, comm, all, *t, a->op);
  plan.form = form;
  const bool wide = mine.chance(25) && s.with("wide") && plan.kind != Barrier && MPI_VERSION >= 4;
  Layout(plan, comm, *a, *t).lay_out();
  t->kept.push_back(a);
  t->text = text_of(plan, wide, slot);
  if (form != Form::blocking) t->text += " by request " + number_of(q);
  s.say(t->text);
  t->fill(s.seed, s.world_rank, 0);
  if (form == Form::blocking) {
    const int code = call(*a, form, wide, nullptr);
    return log_end(s, *t, 0, code, nullptr);
  }
  Posted p{.persistent = form == Form::persistent, .transfer = t, .comm_lives = comm.lives};
  const int code = call(*a, form, wide, &p.request);
  if (code != MPI_SUCCESS) return log_end(s, *t, 0, code, nullptr);
  p.active = !p.persistent;
  if (p.persistent && starts) start(s, p);
  s.requests[q].push_back(std::move(p));
}

}  // namespace sequences
