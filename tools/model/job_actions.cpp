// SPDX-License-Identifier: BSD-3-Clause
#include "job_actions.hpp"

#include <algorithm>
#include <map>

namespace stretto::modelling {
namespace {

using record::Communicator;
using record::PeerKind;
using record::Recording;
using record::Role;
using record::Values;

std::string name_of(const Recording& recording, std::uint32_t term) {
  const record::Text text = recording.function(term);
  std::string name(text.text == nullptr ? "" : text.text, text.size);
  if (name.rfind("MPI_", 0) == 0) name.erase(0, 4);
  if (name.size() > 2 && name.ends_with("_c")) name.resize(name.size() - 2);
  return name;
}

std::string lower(std::string name) {
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

// "Iallreduce" and "Allreduce_init" are the collective "allreduce". count_: it is none.
Collective collective_of(const std::string& function, Act* act) {
  std::string name = lower(function);
  *act = Act::collective;
  if (name.ends_with("_init")) {
    *act = Act::init_collective;
    name.resize(name.size() - 5);
  }
  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < kCollectives; ++i) {
      if (name == kCollectiveNames[i]) return static_cast<Collective>(i);
    }
    if (name.empty() || name[0] != 'i' || *act != Act::collective) break;
    *act = Act::post_collective;
    name.erase(0, 1);
  }
  return Collective::count_;
}

std::vector<std::int64_t> list(Values values) { return {values.begin(), values.end()}; }

Half half_of(const Recording& recording, std::uint32_t term, Role peer, Role tag, Role bytes) {
  Half half;
  const Values who = recording.values(term, peer);
  if (!who || record::peer_kind(who.one()) == PeerKind::none) return half;
  half.there = true;
  half.any = record::peer_kind(who.one()) == PeerKind::any;
  half.peer = static_cast<std::int32_t>(record::peer_relative(who.one()));
  half.tag = recording.values(term, tag).one();
  half.any |= peer == Role::source && half.tag == record::kAnyTag;
  half.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, recording.values(term, bytes).one()));
  half.bytes *= static_cast<std::uint64_t>(std::max<std::int64_t>(1, recording.values(term, Role::partitions).one(1)));
  return half;
}

// Of a vector, or of a part. Parts that have lengths of their own count by their mean.
std::uint64_t bytes_of(const Recording& recording, std::uint32_t term) {
  std::int64_t most = 0;
  for (const Role role : {Role::sends, Role::receives, Role::sends_each, Role::receives_each}) {
    const Values values = recording.values(term, role);
    std::int64_t sum = 0;
    for (const std::int64_t value : values) sum += std::max<std::int64_t>(0, value);
    if (values.size > 0) most = std::max(most, sum / static_cast<std::int64_t>(values.size));
  }
  return static_cast<std::uint64_t>(most);
}

// Which requests a wait or test has ended.
void read_ends(const Recording& recording, std::uint32_t term, Action& action) {
  action.waited = list(recording.values(term, Role::waited));
  const Values flag = recording.values(term, Role::flag), ended = recording.values(term, Role::ended);
  if (flag && flag.one() == 0) {
    action.act = Act::test;
    return;
  }
  action.act = Act::wait;
  if (!ended) {
    action.ended = action.waited;
    return;
  }
  for (const std::int64_t position : ended) {
    if (position >= 0 && static_cast<std::size_t>(position) < action.waited.size())
      action.ended.push_back(action.waited[static_cast<std::size_t>(position)]);
  }
}

Act act_of(const Recording& recording, std::uint32_t term, const Action& action) {
  const Values made = recording.values(term, Role::made), flag = recording.values(term, Role::flag);
  if (recording.values(term, Role::started)) return Act::start;
  const bool sends_or_receives = action.send.there || action.receive.there ||
                                 recording.values(term, Role::destination) || recording.values(term, Role::source);
  if (sends_or_receives) {
    // A matched probe takes its message; the receive behind it waits no more.
    const std::string name = lower(action.function);
    if (name.ends_with("probe") && flag && flag.one() == 0) return Act::test;
    if (name.ends_with("probe")) return name.ends_with("mprobe") ? Act::message : Act::local;
    if (action.function.ends_with("_init")) return Act::init;
    return made ? Act::post : Act::message;
  }
  if (action.made_comm >= 0 || action.function.starts_with("Comm_split") || action.function == "Comm_create")
    return Act::collective;
  return Act::local;
}

// Of a Put, a Get or their like.
void read_transfer(const Recording& recording, Action& action) {
  const Values target = recording.values(action.term, Role::target);
  const Communicator* const known = recording.communicator(action.comm);
  if (known == nullptr || target.one(-1) < 0) return;
  for (auto [half, role] : {std::pair{&action.send, Role::sends}, {&action.receive, Role::receives}}) {
    const Values bytes = recording.values(action.term, role);
    if (!bytes) continue;
    half->there = true;
    half->peer = static_cast<std::int32_t>(target.one() - known->rank);
    half->bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, bytes.one()));
    action.act = Act::transfer;
  }
}

// What a call on a window is, whose communicator is known.
void read_window_call(const Recording& recording, Action& action) {
  if (action.function == "Win_fence" || action.function == "Win_free") action.act = Act::collective;
  const Values group = recording.values(action.term, Role::group);
  for (const std::int64_t peer : group) {
    if (record::peer_kind(peer) == PeerKind::rank)
      action.group.push_back(static_cast<std::int32_t>(record::peer_relative(peer)));
  }
  const Values flag = recording.values(action.term, Role::flag);
  if (action.function == "Win_post" && group) action.act = Act::expose;
  if (action.function == "Win_start" && group) action.act = Act::access;
  if (action.function == "Win_complete") action.act = Act::complete;
  if (action.function == "Win_wait" || action.function == "Win_test")
    action.act = flag && flag.one() == 0 ? Act::test : Act::unexpose;
  read_transfer(recording, action);
}

// All members of a window's communicator meet when it is made and freed, and at its fences. Calls
// on a window name it by a number; those of a number that two communicators have used take what
// they took.
void find_windows(const Recording& recording, std::vector<Action>& actions) {
  constexpr std::int64_t kSeveral = -2;
  std::map<std::int64_t, std::int64_t> comms;  // by window
  for (Action& action : actions) {
    if (!action.function.starts_with("Win_create") && !action.function.starts_with("Win_allocate")) continue;
    action.act = Act::collective;
    const auto [found, is_new] = comms.try_emplace(action.window, action.comm);
    if (!is_new && found->second != action.comm) found->second = kSeveral;
  }
  for (Action& action : actions) {
    const auto found = comms.find(action.window);
    if (action.window < 0 || action.act != Act::local || found == comms.end() || found->second == kSeveral) continue;
    action.comm = found->second;
    read_window_call(recording, action);
  }
}

// Whether members of its communicator, or of the one that it makes, are in another world.
bool is_away(const Recording& recording, const Action& action) {
  for (const std::int64_t id : {action.comm, action.made_comm}) {
    const Communicator* const known = id < 0 ? nullptr : recording.communicator(id);
    if (known != nullptr && (known->flags & record::kForeign) != 0) return true;
  }
  return false;
}

}  // namespace

Collective scheduled_form(Collective collective) {
  switch (collective) {
    case Collective::gatherv: return Collective::gather;
    case Collective::scatterv: return Collective::scatter;
    case Collective::allgatherv:
    case Collective::neighbor_allgather:
    case Collective::neighbor_allgatherv: return Collective::allgather;
    case Collective::alltoallv:
    case Collective::alltoallw:
    case Collective::neighbor_alltoall:
    case Collective::neighbor_alltoallv:
    case Collective::neighbor_alltoallw: return Collective::alltoall;
    case Collective::count_: return Collective::barrier;
    default: return collective;
  }
}

std::vector<Action> actions_of(const Recording& recording) {
  std::vector<Action> actions(recording.terms());
  for (std::uint32_t term = 0; term < recording.terms(); ++term) {
    Action& action = actions[term];
    action.term = term;
    action.function = name_of(recording, term);
    action.comm = recording.values(term, Role::comm).one();
    action.made_comm = recording.values(term, Role::made_comm).one(-1);
    action.window = recording.values(term, Role::window).one(-1);
    // Nobody but its members makes it.
    if (action.function == "Comm_create_group" && action.made_comm >= 0) action.comm = action.made_comm;
    action.made = list(recording.values(term, Role::made));
    action.named = list(recording.values(term, Role::named));
    action.root = recording.values(term, Role::root).one();
    action.commutes = recording.values(term, Role::commutes).one(1) != 0;
    action.synchronous = action.function.starts_with("Ss") || action.function.starts_with("Iss");
    const Values got = recording.values(term, Role::got);
    for (std::size_t i = 0; i + 2 < got.size; i += 3) {
      if (record::peer_kind(got.data[i + 1]) != PeerKind::rank) continue;
      action.got.push_back({static_cast<std::size_t>(got.data[i]),
                            static_cast<std::int32_t>(record::peer_relative(got.data[i + 1])), got.data[i + 2]});
    }
    action.collective = collective_of(action.function, &action.act);
    if (action.collective != Collective::count_) {
      action.bytes = bytes_of(recording, term);
      continue;
    }
    if (recording.values(term, Role::waited)) {
      read_ends(recording, term, action);
      continue;
    }
    action.send = half_of(recording, term, Role::destination, Role::send_tag, Role::sends);
    action.receive = half_of(recording, term, Role::source, Role::receive_tag, Role::receives);
    action.act = act_of(recording, term, action);
    if (action.act == Act::start) action.named = list(recording.values(term, Role::started));
  }
  find_windows(recording, actions);
  for (Action& action : actions) action.away = is_away(recording, action);
  return actions;
}

}  // namespace stretto::modelling
