// SPDX-License-Identifier: BSD-3-Clause
#include "job_comms.hpp"

#include <algorithm>

namespace stretto::modelling {
namespace {

constexpr std::int64_t kWorldId = 0, kSelfId = 1;  // as the recorder numbers them

}  // namespace

int world_peer(const record::Recording& recording, std::int64_t comm, std::int32_t relative) {
  const record::Communicator* const known = recording.communicator(comm);
  if (known == nullptr) return -1;
  const bool inter = (known->flags & record::kInter) != 0;
  const std::int64_t peer = known->rank + relative;
  if (peer < 0 || peer >= (inter ? known->remote_size : known->size)) return -1;
  const int there =
      recording.members()[known->first_member + static_cast<std::size_t>(peer + (inter ? known->size : 0))];
  return there < recording.header().ranks ? there : -1;
}

std::vector<int> members_of(const record::Recording& recording, const record::Communicator& comm) {
  const std::int32_t* const first = recording.members().data() + comm.first_member;
  return {first, first + comm.size + comm.remote_size};
}

std::uint32_t Communicators::named(const std::vector<std::int64_t>& what) {
  return names_.emplace(what, static_cast<std::uint32_t>(names_.size())).first->second;
}

CommState& Communicators::place(std::size_t rank, std::int64_t id) {
  std::vector<CommState>& its = of_[rank];
  const auto place = static_cast<std::size_t>(std::max<std::int64_t>(0, id));
  if (its.size() <= place) its.resize(place + 1);
  return its[place];
}

namespace {

// Both groups of an intercommunicator list their own members first. Here the group with the lower
// first rank comes first.
std::vector<std::int64_t> by_members(const record::Recording& recording, std::int64_t id) {
  std::vector<std::int64_t> what{-1, id == kWorldId || id == kSelfId ? id : 2};
  const record::Communicator* const known = recording.communicator(id);
  if (id == kWorldId || known == nullptr) return what;
  std::vector<int> members = members_of(recording, *known);
  const auto remote = members.begin() + known->size;
  if (remote != members.end() && *remote < members.front()) std::rotate(members.begin(), remote, members.end());
  what.insert(what.end(), members.begin(), members.end());
  return what;
}

}  // namespace

// One that the rank has not made in a call is known by its members.
CommState& Communicators::of(std::size_t rank, const record::Recording& recording, std::int64_t id) {
  CommState& state = place(rank, id);
  if (state.name == CommState::kUnnamed) state.name = named(by_members(recording, id));
  return state;
}

// All ranks that make communicators make them of the same one, in the same order. Those that get
// different ones have different first members. But the groups of an intercommunicator make it of
// two.
void Communicators::make(std::size_t rank, const record::Recording& recording, std::int64_t parent, std::int64_t made) {
  CommState& of = this->of(rank, recording, parent);
  const std::uint32_t serial = of.children++, name = of.name;
  if (made < 0) return;
  const auto is_inter = [&](std::int64_t id) {
    const record::Communicator* const known = recording.communicator(id);
    return known != nullptr && known->remote_size > 0;
  };
  std::vector<std::int64_t> what = by_members(recording, made);
  if (!is_inter(made) || is_inter(parent)) what = {name, serial, what.size() > 2 ? what[2] : 0};
  place(rank, made) = {named(what)};
}

}  // namespace stretto::modelling
