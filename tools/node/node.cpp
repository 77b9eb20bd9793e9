// SPDX-License-Identifier: BSD-3-Clause
#include "node.hpp"

#include <algorithm>

namespace stretto::node {
namespace {

constexpr std::uintptr_t kLine = 64;
constexpr std::size_t kCopyBytes = 256;   // from here on an access is a copy's
constexpr std::size_t kVectorBytes = 32;  // of one access to own memory
constexpr double kStoreGapNs = 0.3;       // between two stores of a core
constexpr std::uint64_t kFirstLine = 1;   // numbers of lines are not 0

}  // namespace

Node* played = nullptr;

bool Node::run(const std::function<void(int)>& body) {
  played = this;
  state_.assign(cores_.size(), {});
  return fibers_.run(ranks(), [&](int rank) {
    within_model_ = false;
    body(rank);
  });
}

// Another rank may run meanwhile, in the model or out of it.
template <class Switch>
void Node::change_rank(Switch change) {
  const bool within_model = within_model_;
  change();
  within_model_ = within_model;
}

void Node::share(const void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const Range made{begin, begin + bytes, machine_.l3_of(core_of(self()))};
  std::erase_if(ranges_, [&](const Range& old) { return old.begin < made.end && made.begin < old.end; });
  const auto by_address = [](const Range& a, const Range& b) { return a.begin < b.begin; };
  ranges_.insert(std::upper_bound(ranges_.begin(), ranges_.end(), made, by_address), made);
  last_range_ = nullptr;
}

const Node::Range* Node::range_of(std::uintptr_t address) {
  if (last_range_ && last_range_->begin <= address && address < last_range_->end) return last_range_;
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                      [](std::uintptr_t at, const Range& range) { return at < range.begin; });
  if (after == ranges_.begin() || std::prev(after)->end <= address) return nullptr;
  return last_range_ = &*std::prev(after);
}

// ---- time ----

void Node::settle() {
  double& clock = fibers_.clock();
  for (const double done : core().misses) clock = std::max(clock, done);
  core().misses.clear();
}

double Node::now() {
  settle();
  return fibers_.clock();
}

void Node::spend(double ns) {
  if (playing_) fibers_.clock() += ns;
}

void Node::together() {
  settle();
  fibers_.clock() = std::max(fibers_.clock(), core().drained);
  change_rank([&] { fibers_.together(); });
}

void Node::pass() {
  change_rank([&] { fibers_.pass(); });
}

// ---- accesses ----

void Node::access(const void* address, std::size_t bytes, Kind kind) {
  if (!playing_ || self() == Fibers::kNobody || bytes == 0) return;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const Range* const range = range_of(at);
  if (!range) {
    fibers_.clock() += machine_.own_access * static_cast<double>((bytes + kVectorBytes - 1) / kVectorBytes);
    return;
  }
  const bool is_look = kind == Kind::look;
  if (is_look && core().looked_at == at) {  // it was not there
    settle();
    fibers_.clock() += machine_.look_again;
  }
  if (is_look) core().looked_at = at;
  const auto misses =
      static_cast<std::size_t>(bytes < kCopyBytes ? machine_.misses_under_way : machine_.misses_of_copy);
  const int home = range->home;
  for (std::uintptr_t each = at / kLine; each <= (at + bytes - 1) / kLine; ++each) {
    change_rank([&] { fibers_.let_earlier_go(); });
    Line& line = directory_.line(each + kFirstLine, home);
    if (kind == Kind::load || is_look)
      load(line, misses, is_look);
    else
      store(line);
  }
  if (kind == Kind::exchange) fibers_.clock() = std::max(fibers_.clock(), core().drained);
}

void Node::load(Line& line, std::size_t most_misses, bool look) {
  double& clock = fibers_.clock();
  const int self_core = core_of(self());
  // Another core is taking the line to write it. The look gets what that core has stored until
  // then.
  bool waited = false;
  while (look && line.visible_at > clock && !Directory::has(line, self_core)) {
    settle();
    clock = std::max(clock, line.visible_at);
    change_rank([&] { fibers_.let_earlier_go(); });
    waited = true;
  }
  const double done = directory_.read(line, self_core, clock);
  if (waited) {
    clock = std::max(clock, done);
    return;
  }
  clock += machine_.hit;
  if (done > clock) miss(done, most_misses);
}

// With as many misses under way as there can be, the core waits for the first of them.
void Node::miss(double done, std::size_t most_misses) {
  std::vector<double>& misses = core().misses;
  if (misses.size() < most_misses) return misses.push_back(done);
  double& first = *std::min_element(misses.begin(), misses.end());
  fibers_.clock() = std::max(fibers_.clock(), first);
  first = done;
}

void Node::store(Line& line) {
  double& clock = fibers_.clock();
  const double done = directory_.write(line, core_of(self()), clock);
  clock += machine_.own_access;
  double out = std::max(done, clock);
  for (const double loaded : core().misses) out = std::max(out, loaded);
  core().drained = std::max(out, core().drained + kStoreGapNs);
  line.visible_at = std::max(line.visible_at, core().drained);
}

void Node::fetch_to_write(const void* address) {
  if (!playing_ || self() == Fibers::kNobody) return;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const Range* const range = range_of(at);
  if (!range) return;
  const int home = range->home;
  change_rank([&] { fibers_.let_earlier_go(); });
  Line& line = directory_.line(at / kLine + kFirstLine, home);
  line.visible_at = std::max(line.visible_at, directory_.write(line, core_of(self()), fibers_.clock()));
}

}  // namespace stretto::node
