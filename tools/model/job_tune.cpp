// SPDX-License-Identifier: BSD-3-Clause
#include "job_tune.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "job_actions.hpp"
#include "job_comms.hpp"
#include "job_file.hpp"
#include "job_places.hpp"
#include "report.hpp"

namespace stretto::modelling {
namespace {

constexpr std::size_t kMostCandidates = 5;

// Calls that one rule decides, as far as their members are alike.
struct TunedCall {
  std::vector<int> members;
  Collective collective;
  std::uint64_t bytes;
  int root;
  bool operator<(const TunedCall& other) const {
    return std::tie(members, collective, bytes, root) <
           std::tie(other.members, other.collective, other.bytes, other.root);
  }
};

struct TunedCalls {
  std::map<TunedCall, std::uint64_t> calls;
  std::uint64_t left = 0;
};

bool has_rules(const Action& action) {
  switch (action.collective) {
    case Collective::barrier:
    case Collective::bcast:
    case Collective::gather:
    case Collective::scatter:
    case Collective::allgather:
    case Collective::alltoall: return true;
    case Collective::reduce:
    case Collective::allreduce:
    case Collective::reduce_scatter_block:
    case Collective::scan:
    case Collective::exscan: return action.commutes;
    default: return false;
  }
}

// As rules count: of all parts together.
std::uint64_t whole_of(Collective collective, std::uint64_t bytes, std::size_t ranks) {
  switch (collective) {
    case Collective::gather:
    case Collective::scatter:
    case Collective::allgather:
    case Collective::alltoall:
    case Collective::reduce_scatter_block: return bytes * ranks;
    default: return bytes;
  }
}

// Each call once: by its communicator's first member.
TunedCalls calls_of_job(const JobFile& job) {
  TunedCalls found;
  for (int r = 0; r < job.ranks(); ++r) {
    const record::Recording& recording = job.of(r);
    const std::vector<Action> actions = actions_of(recording);
    record::Calls calls(recording);
    for (record::Calls::Call call; calls.next(&call);) {
      const Action& action = actions[call.term];
      if (action.act != Act::collective && action.act != Act::post_collective) continue;
      const record::Communicator* const comm = recording.communicator(action.comm);
      if (action.collective == Collective::count_ || comm == nullptr || comm->rank != 0 || comm->size < 2) continue;
      if (!has_rules(action) || comm->remote_size > 0 || comm->flags != 0) {
        ++found.left;
        continue;
      }
      const bool rooted = is_rooted(action.collective) && action.root >= 0;
      ++found.calls[{members_of(recording, *comm), action.collective, action.bytes,
                     rooted ? static_cast<int>(action.root) : 0}];
    }
  }
  return found;
}

void write_candidates(Json& json, const select::Machine& machine, const select::Shape& shape) {
  json.key("candidates").open('[');
  const std::vector<select::Estimate> estimates = select::estimates(machine, shape);
  for (std::size_t i = 0; i < std::min(kMostCandidates, estimates.size()); ++i) {
    json.open('{');
    json.key("algorithm").text(estimates[i].candidate.key());
    json.key("k").integer(estimates[i].candidate.parameters.k);
    json.key("segments").integer(estimates[i].candidate.parameters.segments);
    json.key("time").number(estimates[i].time);
    json.close('}');
  }
  json.close(']');
}

}  // namespace

void tune_job(const std::vector<std::string>& words) {
  const OptionsAndFiles given = split_at_dashes(words);
  const Request request = parse_job_request(given.options);
  const JobFile job(given.files);
  const topo::Placement places = placement_of_job(job, request);
  const TunedCalls found = calls_of_job(job);
  std::uint64_t in_node = 0;
  Json json;
  json.open('{');
  json.key("calls").open('[');
  for (const auto& [call, count] : found.calls) {
    const topo::Placement part = part_of(places, call.members);
    const int nodes = nodes_of(part);
    if (nodes < 2) {
      in_node += count;
      continue;
    }
    topo::Hierarchies hierarchies;
    const select::Machine machine = make_machine(request, part, hierarchies);
    select::Shape shape;
    shape.collective = call.collective;
    shape.ranks = static_cast<int>(call.members.size());
    shape.bytes = call.bytes;
    shape.root = call.root;
    json.open('{');
    json.key("op").text(kCollectiveNames[static_cast<int>(call.collective)]);
    json.key("ranks").integer(shape.ranks);
    json.key("nodes").integer(nodes);
    json.key("bytes").integer(static_cast<std::int64_t>(call.bytes));
    json.key("whole").integer(static_cast<std::int64_t>(whole_of(call.collective, call.bytes, call.members.size())));
    json.key("count").integer(static_cast<std::int64_t>(count));
    write_candidates(json, machine, shape);
    json.close('}');
  }
  json.close(']');
  json.key("in_node").integer(static_cast<std::int64_t>(in_node));
  json.key("left").integer(static_cast<std::int64_t>(found.left));
  json.close('}');
  json.end();
}

}  // namespace stretto::modelling
