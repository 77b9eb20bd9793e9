// SPDX-License-Identifier: BSD-3-Clause
#include "coll/hierarchy/compose.hpp"

#include "coll/hierarchy/levels.hpp"
#include "coll/hierarchy/packed.hpp"
#include "coll/shape/tree.hpp"

namespace stretto::coll {
namespace {

class Composer {
 public:
  Composer(Builder& b, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan, const Problem& problem)
      : b_(b), hierarchy_(hierarchy), plan_(plan), p_(problem), whole_(whole_call(b, problem, {})),
        root_(is_rooted(problem.collective) ? problem.root : 0), levels_(b, hierarchy, plan, problem, root_) {
    if (levels_.failed()) b_.fail();
  }

  void emit() {
    switch (regular_form(p_.collective)) {
      case Collective::bcast: return each_segment([this](const Call& c) { down(c.in, c.out); });
      case Collective::reduce: return each_segment([this](const Call& c) { up(c.in, c.out, p_.rank == p_.root); });
      case Collective::allreduce: return each_segment([this](const Call& c) { allreduce(c); });
      case Collective::barrier: return barrier();
      case Collective::gather: return gather();
      case Collective::scatter: return scatter(whole_.ins, whole_.out, p_.in_place && p_.rank == p_.root);
      case Collective::allgather: return allgather();
      case Collective::reduce_scatter: return reduce_scatter();
      case Collective::scan:
      case Collective::exscan: return each_segment([this](const Call& c) { scan(c); });
      default: return flat();
    }
  }

  // One group of all ranks.
  void flat() {
    const Algorithm* const algorithm = default_algorithm(p_.collective);
    Call call = whole_;
    call.parameters.segments = plan_.segments;
    emit_segments(b_, *algorithm, call);
    if (regular_form(p_.collective) == Collective::reduce_scatter) copy_result();
  }

 private:
  static bool is_rooted(Collective collective) {
    const Collective form = regular_form(collective);
    return form == Collective::bcast || form == Collective::reduce || form == Collective::gather || form == Collective::scatter;
  }

  template <class Emit>
  void each_segment(Emit emit) {
    const auto segments = static_cast<std::uint64_t>(plan_.segments < 1 ? 1 : plan_.segments);
    for (std::uint64_t s = 0; s < segments; ++s) {
      Call part = whole_;
      part.in = piece(whole_.in, segments, s);
      part.out = piece(whole_.out, segments, s);
      b_.set_segment(static_cast<int>(s));
      b_.set_priority(static_cast<int>(s));
      emit(part);
    }
  }

  // A vector from the root (at `in`) to everybody (at `out`), from below the level `from` down.
  void down(Slice in, Slice out) { down_from(levels_.top(), in, out); }
  void down_from(int from, Slice in, Slice out) {
    for (int level = from; level >= 0; --level) {
      if (!levels_.busy(level)) continue;
      Call call = levels_.call(level);
      call.in = in;
      call.out = out;
      levels_.emit(level, Collective::bcast, call);
      in = out;
    }
  }

  // A sum of the vectors at `in` to the leaders of the levels below `to`; returns where this rank has what it knows of it. Sums
  // go to `out` where this rank may write there, else to memory of the schedule's own.
  Slice up_to(int to, Slice in, Slice out, bool may_write) {
    Slice sum = in;
    Slice own = out;
    bool has_own = may_write;
    for (int level = 0; level < to; ++level) {
      if (!levels_.busy(level)) continue;
      Call call = levels_.call(level);
      if (levels_.leads(level) && !has_own) {
        own = b_.scratch(in.length);
        has_own = true;
      }
      call.in = sum;
      call.out = own;
      levels_.emit(level, Collective::reduce, call);
      if (levels_.leads(level)) sum = own;
    }
    return sum;
  }
  void up(Slice in, Slice out, bool is_root) {
    const Slice sum = up_to(levels_.top() + 1, in, out, is_root);
    if (is_root) b_.copy(sum, out);
  }

  void allreduce(const Call& c) {
    if (plan_.form == AllreduceForm::rails && plan_.rail_level < levels_.top()) return rails(c);
    const bool on_top = plan_.form != AllreduceForm::reduce_bcast;
    Slice sum = up_to(levels_.top() + (on_top ? 0 : 1), c.in, c.out, true);
    if (on_top && levels_.busy(levels_.top())) {
      Call call = levels_.call(levels_.top());
      call.in = sum;
      call.out = c.out;
      levels_.emit(levels_.top(), Collective::allreduce, call);
      sum = c.out;
    }
    if (on_top ? levels_.reach() > levels_.top() : p_.rank == root_) b_.copy(sum, c.out);
    down_from(levels_.top() - (on_top ? 1 : 0), c.out, c.out);
  }

  // As many parts as the smallest node has ranks; the i-th is the business of the i-th rank of every node.
  void rails(const Call& c) {
    const int level = plan_.rail_level;
    const int group = levels_.group(level);
    const int begin = hierarchy_.order_begin(group);
    const int nodes = hierarchy_.groups_on(level);
    int parts = hierarchy_.ranks();
    for (int i = 0; i < nodes; ++i) {
      const int size = hierarchy_.under(hierarchy_.group_on(level, i));
      parts = size < parts ? size : parts;
    }
    Call call = whole_;
    const Group node{hierarchy_.under(group), hierarchy_.position(p_.rank) - begin, hierarchy_.order().data() + begin};
    for (int i = 0; i < parts; ++i) {
      const Slice in = piece(c.in, static_cast<std::uint64_t>(parts), static_cast<std::uint64_t>(i));
      const Slice out = piece(c.out, static_cast<std::uint64_t>(parts), static_cast<std::uint64_t>(i));
      call.group = node;
      call.root = i;
      call.in = in;
      call.out = out;
      levels_.emit(level, Collective::reduce, call);
      if (node.me == i) across(level, i, out);
      call.in = out;
      levels_.emit(level, Collective::bcast, call);
    }
  }
  void across(int level, int rail, Slice vector) {
    const int nodes = hierarchy_.groups_on(level);
    Array<int> ranks;
    Call call = whole_;
    for (int i = 0; i < nodes; ++i) {
      ranks.push(hierarchy_.order()[hierarchy_.order_begin(hierarchy_.group_on(level, i)) + rail]);
      if (!ranks.failed() && ranks.back() == p_.rank) call.group.me = i;
    }
    if (ranks.failed()) return b_.fail();
    call.group.size = nodes;
    call.group.ranks = ranks.data();
    call.in = call.out = vector;
    levels_.emit(levels_.top(), Collective::allreduce, call);
  }

  void barrier() {
    for (int level = 0; level < levels_.top(); ++level) {
      if (levels_.busy(level)) signals(level, true);
    }
    if (levels_.busy(levels_.top())) {
      b_.fence();
      levels_.emit(levels_.top(), Collective::barrier, levels_.call(levels_.top()));
    }
    for (int level = levels_.top() - 1; level >= 0; --level) {
      if (levels_.busy(level)) signals(level, false);
    }
  }
  // From all members to the leader, or back, by a binomial tree.
  void signals(int level, bool upwards) {
    const Call call = levels_.call(level);
    const Group places = call.group.counted_from(call.root);
    const Tree tree = Tree::knomial(places.size, 2);
    const int parent = tree.parent(places.me);
    b_.fence();
    if (!upwards && parent >= 0) b_.await(places.rank(parent));
    b_.fence();
    tree.each_child(places.me, [&](int child) { upwards ? b_.await(places.rank(child)) : b_.signal(places.rank(child)); });
    b_.fence();
    if (upwards && parent >= 0) b_.signal(places.rank(parent));
  }

  void gather() {
    const bool is_root = p_.rank == p_.root;
    Packed packed(b_, hierarchy_, whole_.outs, is_root);
    const Slice mine = gather_up(levels_.top() + 1, packed, whole_.in);
    if (is_root) packed.unpack(mine, whole_.outs);
  }
  // Collects parts on the levels below `to`; returns where those are that this rank has then.
  Slice gather_up(int to, Packed& packed, Slice in) {
    Slice mine = in;
    for (int level = 0; level < to; ++level) {
      if (!levels_.busy(level)) continue;
      Call call = levels_.call(level);
      call.in = mine;
      if (!packed.parts_of(levels_.group(level), top_led(), &call.outs)) return b_.fail(), in;
      levels_.emit(level, Collective::gather, call);
      if (levels_.leads(level)) mine = call.outs.all();
    }
    return mine;
  }
  // The highest group that this rank leads, -1: none.
  [[nodiscard]] int top_led() const {
    int group = -1;
    for (int level = 0; level < levels_.reach() && levels_.leads(level); ++level) group = levels_.group(level);
    return group;
  }

  void scatter(const Parts& ins, Slice out, bool keep) {
    const bool is_root = p_.rank == root_;
    Packed packed(b_, hierarchy_, ins, is_root);
    Slice mine = is_root ? packed.pack(ins) : out;
    for (int level = levels_.top(); level >= 0; --level) {
      if (!levels_.busy(level)) continue;
      Call call = levels_.call(level);
      if (!packed.parts_of(levels_.group(level), top_led(), &call.ins)) return b_.fail();
      if (level > 0) {
        call.out = packed.of_group(levels_.group(level - 1), top_led());
      } else {
        call.out = keep ? packed.of_rank(p_.rank, top_led()) : out;
      }
      levels_.emit(level, Collective::scatter, call);
      mine = call.out;
    }
    if (!keep) b_.copy(mine, out);
  }

  void allgather() {
    Packed packed(b_, hierarchy_, whole_.outs, true);
    Slice mine = gather_up(levels_.top(), packed, whole_.in);
    if (levels_.busy(levels_.top())) {
      Call call = levels_.call(levels_.top());
      call.in = mine;
      if (!packed.parts_of(levels_.group(levels_.top()), -1, &call.outs)) return b_.fail();
      levels_.emit(levels_.top(), Collective::allgather, call);
    } else if (levels_.reach() > levels_.top()) {
      b_.copy(mine, packed.all());
    }
    down_from(levels_.top() - 1, packed.all(), packed.all());
    packed.unpack(packed.all(), whole_.outs);
  }

  void reduce_scatter() {
    const bool is_root = p_.rank == root_;
    const Slice in = whole_.ins.all();
    const Slice sum = is_root ? b_.scratch(in.length) : Slice{};
    up(in, sum, is_root);
    scatter(whole_.ins.moved_to(sum), whole_.out, false);
    copy_result();
  }

  // Up: a scan of the contributions in the lowest group, and of the groups' sums above, where it leaves out the own. Down: the
  // sum of everything before a group, which its leader knows, comes to its members, and each puts what is before itself
  // in the group behind it.
  void scan(const Call& c) {
    const bool inclusive = p_.collective == Collective::scan;
    Slice before[topo::kMostLevels + 1];  // by level: the sum of the members before this one
    Slice sum = c.in;
    for (int level = 0; level < levels_.reach(); ++level) {
      before[level] = level == 0 ? c.out : b_.scratch(c.in.length);
      const Slice in = sum;
      if (levels_.busy(level)) {
        Call call = levels_.call(level);
        call.in = in;
        if (level < levels_.top()) {
          if (levels_.leads(level)) sum = b_.scratch(c.in.length);
          call.out = sum;
          levels_.emit(level, Collective::reduce, call);
        }
        call.out = before[level];
        levels_.emit(level, level == 0 && inclusive ? Collective::scan : Collective::exscan, call);
      } else if (level == 0 && inclusive) {
        b_.copy(in, c.out);
      }
    }
    Slice outside;  // the sum of everything before the group
    for (int level = levels_.reach() - 1; level >= 0; --level) {
      const Call call = levels_.call(level);
      const bool any_outside = hierarchy_.order_begin(levels_.group(level)) > 0;
      const bool any_before = call.group.me > 0;
      if (any_outside && levels_.busy(level)) {
        Call spread = call;
        spread.in = outside;
        spread.out = levels_.leads(level) ? outside : b_.scratch(c.in.length);
        levels_.emit(level, Collective::bcast, spread);
        outside = spread.out;
      }
      const bool own_in = level == 0 && inclusive;
      if (any_outside && (any_before || own_in)) {
        b_.reduce(outside, before[level], sched::Side::left);
        outside = before[level];
      } else if (any_before || own_in) {
        outside = before[level];
      }
    }
    if (!inclusive && p_.rank > 0) b_.copy(outside, c.out);
  }
  void copy_result() {
    if (p_.in_place) b_.copy(whole_.out, {Buffer::receive, 0, whole_.out.length});
  }

  Builder& b_;
  const topo::Hierarchy& hierarchy_;
  const HierarchyPlan& plan_;
  const Problem& p_;
  Call whole_;
  int root_;
  Levels levels_;
};

bool goes_flat(const topo::Hierarchy& hierarchy, const Problem& problem) {
  if (hierarchy.keeps_rank_order()) return false;
  switch (regular_form(problem.collective)) {
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::reduce_scatter: return !problem.commutative;
    case Collective::scan:
    case Collective::exscan: return true;
    default: return false;
  }
}

}  // namespace

Schedule build_hierarchical(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan, const Problem& problem) {
  Composer composer(builder, hierarchy, plan, problem);
  if (goes_flat(hierarchy, problem)) {
    composer.flat();
  } else {
    composer.emit();
  }
  return builder.finish();
}

}  // namespace stretto::coll
