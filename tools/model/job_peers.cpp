// SPDX-License-Identifier: BSD-3-Clause
#include "job_peers.hpp"

#include <algorithm>
#include <array>

namespace stretto::modelling {
namespace {

int wrapped(int value, int ranks) { return ((value % ranks) + ranks) % ranks; }
int inside(int value, int ranks) { return value >= 0 && value < ranks ? value : kNoPeer; }

// A step along one dimension of a grid. `parameter`: the dimension times 2, plus 1 to go back.
int grid_step(int ranks, int me, int dimensions, int parameter, bool periodic) {
  const std::vector<int> extents = grid_extents(ranks, dimensions);
  const auto along = static_cast<std::size_t>(parameter / 2);
  if (along >= extents.size()) return kNoPeer;
  int stride = 1;
  for (std::size_t d = extents.size() - 1; d > along; --d) stride *= extents[d];
  const int at = me / stride % extents[along], to = at + (parameter % 2 == 0 ? 1 : -1);
  const int there = periodic ? wrapped(to, extents[along]) : inside(to, extents[along]);
  return there == kNoPeer ? kNoPeer : me + (there - at) * stride;
}

int transposed(int ranks, int me) {
  const std::vector<int> extents = grid_extents(ranks, 2);
  return me % extents[1] * extents[0] + me / extents[1];
}

struct PeerForm {
  const char* name;  // # is the parameter
  int (*of)(int ranks, int me, int turn, int parameter);
  // What the parameter is in this form for a sample; forms with a few values try them all.
  int (*parameter)(const NamedPeer& sample);
  int values = 1;  // from parameter() on
};

int no_parameter(const NamedPeer& /*sample*/) { return 0; }
int own_peer(const NamedPeer& sample) { return sample.peer; }
int from_end(const NamedPeer& sample) { return sample.ranks - sample.peer; }
int ahead(const NamedPeer& sample) { return wrapped(sample.peer - sample.me, sample.ranks); }
int behind(const NamedPeer& sample) { return wrapped(sample.me - sample.peer, sample.ranks); }
int difference(const NamedPeer& sample) { return sample.peer - sample.me; }
int bits(const NamedPeer& sample) { return sample.peer ^ sample.me; }

// Those before others win where samples follow both.
constexpr PeerForm kPeerForms[] = {
    {"none", [](int, int, int, int) { return kNoPeer; }, no_parameter},
    {"rank #", [](int, int, int, int p) { return p; }, own_peer},
    {"(rank + #) mod P", [](int n, int me, int, int p) { return wrapped(me + p, n); }, ahead},
    {"(rank - #) mod P", [](int n, int me, int, int p) { return wrapped(me - p, n); }, behind},
    {"rank + #, or none", [](int n, int me, int, int p) { return inside(me + p, n); }, difference},
    {"a grid of 2 dimensions, periodic, step #", [](int n, int me, int, int p) { return grid_step(n, me, 2, p, true); },
     no_parameter, 4},
    {"a grid of 2 dimensions, step #", [](int n, int me, int, int p) { return grid_step(n, me, 2, p, false); },
     no_parameter, 4},
    {"a grid of 3 dimensions, periodic, step #", [](int n, int me, int, int p) { return grid_step(n, me, 3, p, true); },
     no_parameter, 6},
    {"a grid of 3 dimensions, step #", [](int n, int me, int, int p) { return grid_step(n, me, 3, p, false); },
     no_parameter, 6},
    {"the transposed of a grid", [](int n, int me, int, int) { return transposed(n, me); }, no_parameter},
    {"rank P - #", [](int n, int, int, int p) { return n - p; }, from_end},
    {"(rank + P/2) mod P", [](int n, int me, int, int) { return wrapped(me + n / 2, n); }, no_parameter},
    {"rank xor #", [](int n, int me, int, int p) { return inside(me ^ p, n); }, bits},
    {"turn + #", [](int n, int, int t, int p) { return inside(t + p, n); }, no_parameter, 2},
    {"turn, without oneself", [](int n, int me, int t, int) { return inside(t < me ? t : t + 1, n); }, no_parameter},
    {"(rank + turn + #) mod P", [](int n, int me, int t, int p) { return wrapped(me + t + p, n); }, no_parameter, 2},
    {"(rank - turn - #) mod P", [](int n, int me, int t, int p) { return wrapped(me - t - p, n); }, no_parameter, 2},
    {"rank xor 2^turn", [](int n, int me, int t, int) { return inside(me ^ 1 << std::min(t, 30), n); }, no_parameter},
    {"rank xor (turn + #)", [](int n, int me, int t, int p) { return inside(me ^ (t + p), n); }, no_parameter, 2},
    {"(rank + 2^turn) mod P", [](int n, int me, int t, int) { return wrapped(me + (1 << std::min(t, 30)) % n, n); },
     no_parameter},
    {"(rank - 2^turn) mod P", [](int n, int me, int t, int) { return wrapped(me - (1 << std::min(t, 30)) % n, n); },
     no_parameter},
};

}  // namespace

std::vector<int> grid_extents(int ranks, int dimensions) {
  std::vector<int> extents;
  for (int left = dimensions; left > 0; --left) {
    // The least divisor that is no less than the root of what is left.
    int extent = 1;
    const auto power = [&] {
      double product = 1;
      for (int i = 0; i < left; ++i) product *= extent;
      return product;
    };
    while (power() < ranks || ranks % extent != 0) ++extent;
    extents.push_back(extent);
    ranks /= extent;
  }
  std::sort(extents.rbegin(), extents.rend());
  return extents;
}

int PeerRule::at(int ranks, int me, int turn) const { return kPeerForms[form_].of(ranks, me, turn, parameter_); }

bool PeerRule::find(const std::vector<NamedPeer>& samples) {
  const auto follows = [&](const NamedPeer& each) { return at(each.ranks, each.me, each.turn) == each.peer; };
  const auto named = std::find_if(samples.begin(), samples.end(), [](const NamedPeer& s) { return s.peer != kNoPeer; });
  const NamedPeer& sample = named == samples.end() ? samples.front() : *named;
  for (form_ = 0; form_ < std::size(kPeerForms); ++form_) {
    const PeerForm& form = kPeerForms[form_];
    for (int i = 0; i < form.values; ++i) {
      parameter_ = form.parameter(sample) + i;
      if (std::all_of(samples.begin(), samples.end(), follows)) return true;
    }
  }
  return false;
}

std::string PeerRule::name() const {
  std::string name = kPeerForms[form_].name;
  if (const std::size_t at = name.find('#'); at != std::string::npos) name.replace(at, 1, std::to_string(parameter_));
  return name;
}

}  // namespace stretto::modelling
