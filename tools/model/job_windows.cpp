// SPDX-License-Identifier: BSD-3-Clause
#include "job_windows.hpp"

namespace stretto::modelling {
namespace {

constexpr std::int64_t kWorld = 0;                     // as the recorder numbers it
constexpr std::int64_t kTags = std::int64_t{1} << 41;  // no program's tag is so high

}  // namespace

// Messages of windows of one communicator meet in their order.
Half Windows::half(std::uint32_t r, const Action& action, Word word, std::int32_t peer, std::uint64_t bytes) {
  const auto comm = static_cast<std::int64_t>(posting_.comm_of(r, action.comm).name);
  return {.there = true, .peer = peer, .tag = kTags + comm * 4 + static_cast<std::int64_t>(word), .bytes = bytes};
}

void Windows::transfer(std::uint32_t r, const Action& action) {
  std::map<std::int32_t, Moved>& targets = epochs(r, action).targets;
  const Half& half = action.send.there ? action.send : action.receive;
  const int to = world_peer(*ranks_[r].recording, action.comm, half.peer);
  const auto found = targets.find(to - static_cast<int>(r));
  if (found == targets.end()) return;
  found->second.put += action.send.bytes;
  found->second.got += action.receive.bytes;
}

void Windows::expose(std::uint32_t r, const Action& action) {
  Rank& rank = ranks_[r];
  std::vector<std::uint32_t>& completed = epochs(r, action).completed;
  for (const std::int32_t origin : action.group) {
    completed.push_back(posting_.receive(r, kWorld, half(r, action, Word::completed, origin), rank.now));
    rank.needs.push_back(posting_.send(r, kWorld, half(r, action, Word::exposed, origin), false, rank.now));
  }
}

void Windows::access(std::uint32_t r, const Action& action) {
  Rank& rank = ranks_[r];
  for (const std::int32_t target : action.group) {
    epochs(r, action).targets[target] = {};
    rank.needs.push_back(posting_.receive(r, kWorld, half(r, action, Word::exposed, target), rank.now));
  }
}

void Windows::complete(std::uint32_t r, const Action& action) {
  Rank& rank = ranks_[r];
  std::map<std::int32_t, Moved>& targets = epochs(r, action).targets;
  for (const auto& [target, moved] : targets) {
    rank.needs.push_back(
        posting_.send(r, kWorld, half(r, action, Word::completed, target, moved.put), false, rank.now));
    if (moved.got > 0) rank.needs.push_back(posting_.fetch(r, kWorld, half(r, action, Word::data, target, moved.got)));
  }
  targets.clear();
}

void Windows::unexpose(std::uint32_t r, const Action& action) {
  std::vector<std::uint32_t>& completed = epochs(r, action).completed;
  ranks_[r].needs.insert(ranks_[r].needs.end(), completed.begin(), completed.end());
  completed.clear();
}

}  // namespace stretto::modelling
