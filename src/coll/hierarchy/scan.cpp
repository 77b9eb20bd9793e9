// SPDX-License-Identifier: BSD-3-Clause
// Scan and exscan over groups of neighbours.
//
// Up: the lowest group scans its contributions, and each group above does an exscan of its members'
// sums. Down: a group's leader knows the sum of everything before the group. It sends the sum to
// the members. Each member combines it with what is before itself in the group.
#include "coll/hierarchy/composition.hpp"

namespace stretto::coll {
namespace {

class Scan {
 public:
  Scan(Composition& c, const Call& vector)
      : c_(c), vector_(vector), inclusive_(c.problem.collective == Collective::scan) {}

  void up() {
    Slice sum = vector_.in;  // the sum of what is under this rank
    for (int level = 0; level < c_.levels.reach(); ++level) {
      before_[level] = level == 0 ? vector_.out : c_.b.scratch(vector_.in.length);
      const bool own_too = level == 0 && inclusive_;
      if (!c_.levels.busy(level)) {
        if (own_too) c_.b.copy(sum, vector_.out);
        continue;
      }
      const Slice in = sum;
      Call call = c_.levels.call(level);
      call.in = in;
      if (level < c_.levels.top()) {
        if (c_.levels.leads(level)) sum = c_.b.scratch(in.length);
        call.out = sum;
        c_.levels.emit(level, Collective::reduce, call);
      }
      call.out = before_[level];
      c_.levels.emit(level, own_too ? Collective::scan : Collective::exscan, call);
    }
  }

  void down() {
    Slice outside;  // the sum of everything before the group of the level
    for (int level = c_.levels.reach() - 1; level >= 0; --level) {
      const bool any_outside = c_.hierarchy.order_begin(c_.levels.group(level)) > 0;
      if (any_outside && c_.levels.busy(level)) outside = spread(level, outside);
      const bool any_inside = c_.levels.call(level).group.me > 0 || (level == 0 && inclusive_);
      if (!any_inside) continue;
      if (any_outside) c_.b.reduce(outside, before_[level], sched::Side::left);
      outside = before_[level];
    }
    if (!inclusive_ && c_.problem.rank > 0) c_.b.copy(outside, vector_.out);
  }

 private:
  Slice spread(int level, Slice outside) {
    Call call = c_.levels.call(level);
    call.in = outside;
    call.out = c_.levels.leads(level) ? outside : c_.b.scratch(vector_.in.length);
    c_.levels.emit(level, Collective::bcast, call);
    return call.out;
  }

  Composition& c_;
  const Call& vector_;
  bool inclusive_;
  Slice before_[topo::kMostLevels + 1];  // by level: the sum of the members before this one
};

}  // namespace

void compose_scan(Composition& c, const Call& vector) {
  Scan scan(c, vector);
  scan.up();
  scan.down();
}

}  // namespace stretto::coll
