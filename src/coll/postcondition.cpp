// SPDX-License-Identifier: BSD-3-Clause
#include "coll/postcondition.hpp"

#include "coll/hierarchy/nodes.hpp"

namespace stretto::coll {
namespace {

class Postcondition {
 public:
  Postcondition(sched::Verifier& verifier, const Job& job)
      : verifier_(verifier), job_(job), p_(job.problem), form_(regular_form(p_.collective)) {}

  void hold() {
    for (int r = 0; r < p_.size; ++r) {
      const bool root = r == p_.root;
      const Buffer in = p_.in_place && (root || !job_.is_rooted()) ? Buffer::receive : Buffer::send;
      const bool aside = in == Buffer::receive;
      switch (form_) {
        case Collective::bcast:
          if (root) verifier_.hold(r, {Buffer::receive, 0, p_.count}, 0);
          break;
        case Collective::gather:
        case Collective::allgather: verifier_.hold(r, {in, aside ? begin(r) : 0, length(r)}, 0); break;
        case Collective::scatter:
          if (root) verifier_.hold(r, {Buffer::send, 0, begin(p_.size)}, 0);
          break;
        case Collective::alltoall: verifier_.hold(r, {in, 0, sent_begin(r, p_.size)}, 0); break;
        case Collective::reduce_scatter: verifier_.hold(r, {in, 0, begin(p_.size)}, 0); break;
        case Collective::barrier: break;
        default: verifier_.hold(r, {in, 0, p_.count}, 0); break;
      }
    }
  }

  bool expect() {
    for (int r = 0; r < p_.size; ++r) {
      if (!expect_at(r)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::uint64_t begin(int part) const {
    return job_.begins.empty() ? p_.count * static_cast<std::uint64_t>(part) : job_.begins[part];
  }
  [[nodiscard]] std::uint64_t length(int part) const { return begin(part + 1) - begin(part); }
  [[nodiscard]] std::uint64_t exchanged(int from, int to) const {
    return job_.exchanged.empty() ? p_.count : job_.exchanged[static_cast<std::size_t>(from * p_.size + to)];
  }
  [[nodiscard]] std::uint64_t sent_begin(int rank, int to) const {
    std::uint64_t units = 0;
    for (int i = 0; i < to; ++i) units += exchanged(rank, i);
    return units;
  }

  bool holds(int rank, std::uint64_t at, std::uint64_t units, int first, int last, std::uint64_t origin) {
    return verifier_.expect(rank, {Buffer::receive, at, units}, first, last, origin);
  }
  bool gathered(int rank) {
    for (int i = 0; i < p_.size; ++i) {
      if (!holds(rank, begin(i), length(i), i, i + 1, 0)) return false;
    }
    return true;
  }
  bool exchanged_all(int rank) {
    std::uint64_t at = 0;
    for (int i = 0; i < p_.size; ++i) {
      if (!holds(rank, at, exchanged(i, rank), i, i + 1, sent_begin(i, rank))) return false;
      at += exchanged(i, rank);
    }
    return true;
  }

  bool expect_at(int r) {
    switch (form_) {
      case Collective::barrier: return verifier_.expect_heard_all(r);
      case Collective::bcast: return holds(r, 0, p_.count, p_.root, p_.root + 1, 0);
      case Collective::gather: return r != p_.root || gathered(r);
      case Collective::scatter:
        return (p_.in_place && r == p_.root) || holds(r, 0, length(r), p_.root, p_.root + 1, begin(r));
      case Collective::allgather: return gathered(r);
      case Collective::alltoall: return exchanged_all(r);
      case Collective::reduce: return r != p_.root || holds(r, 0, p_.count, 0, p_.size, 0);
      case Collective::allreduce:
        return holds(r, 0, p_.count, 0, p_.size, 0) && verifier_.expect_same(r, 0, {Buffer::receive, 0, p_.count});
      case Collective::reduce_scatter: return holds(r, 0, length(r), 0, p_.size, begin(r));
      case Collective::scan: return holds(r, 0, p_.count, 0, r + 1, 0);
      case Collective::exscan: return r == 0 || holds(r, 0, p_.count, 0, r, 0);
      default: return false;
    }
  }

  sched::Verifier& verifier_;
  const Job& job_;
  const Problem& p_;
  Collective form_;
};

}  // namespace

bool Job::is_rooted() const {
  const Collective form = regular_form(problem.collective);
  return form == Collective::bcast || form == Collective::reduce || form == Collective::gather ||
         form == Collective::scatter;
}

bool Job::is_reduction() const {
  const Collective form = regular_form(problem.collective);
  return form == Collective::reduce || form == Collective::allreduce || form == Collective::reduce_scatter ||
         form == Collective::scan || form == Collective::exscan;
}

const Problem& View::of(int rank) {
  problem_ = job_.problem;
  problem_.rank = rank;
  problem_.begins = job_.begins.empty() ? nullptr : job_.begins.data();
  if (job_.exchanged.empty()) return problem_;
  const int size = problem_.size;
  received_.assign(1, 0);
  sent_.assign(1, 0);
  for (int i = 0; i < size; ++i) {
    received_.push_back(received_.back() + job_.exchanged[static_cast<std::size_t>(i * size + rank)]);
    sent_.push_back(sent_.back() + job_.exchanged[static_cast<std::size_t>(rank * size + i)]);
  }
  problem_.begins = received_.data();
  problem_.sent_begins = sent_.data();
  return problem_;
}

Schedule build_hierarchical(Builder& builder, const topo::Hierarchy& hierarchy, const HierarchyPlan& plan,
                            const Job& job, const Problem& problem) {
  if (plan.form != Form::carriers || job.exchanged.empty())
    return build_hierarchical(builder, hierarchy, plan, problem);
  const Nodes nodes(hierarchy, plan.node_level, problem.rank);
  const std::size_t of_each = nodes.words_told(nodes.me());
  std::vector<std::uint64_t> words(of_each * static_cast<std::size_t>(nodes.home().size) + 1);
  for (int i = 0; i < nodes.home().size; ++i) {
    const int mate = nodes.rank(nodes.home(), i);
    const auto lengths = [&](bool sent) {
      return [&job, mate, sent](int other) {
        const int size = job.problem.size;
        return job.exchanged[static_cast<std::size_t>(sent ? mate * size + other : other * size + mate)];
      };
    };
    nodes.tell(nodes.me(), lengths(true), lengths(false), words.data() + of_each * static_cast<std::size_t>(i));
  }
  Problem told = problem;
  told.told = words.data();
  told.told_words = words.size();
  return build_hierarchical(builder, hierarchy, plan, told);
}

bool keeps_promise(sched::Verifier& verifier, const Job& job, const BuildRank& build_rank) {
  verifier.start(job.problem.size, job.problem.commutative, job.problem.collective == Collective::barrier);
  View view(job);
  for (int r = 0; r < job.problem.size; ++r) {
    const Problem& problem = view.of(r);
    const Extent units = extent(problem);
    verifier.add(build_rank(problem), units.send, units.receive);
  }
  Postcondition postcondition(verifier, job);
  postcondition.hold();
  return verifier.run() && postcondition.expect();
}

}  // namespace stretto::coll
