// SPDX-License-Identifier: BSD-3-Clause
#include "engine/told_lengths.hpp"

#include "coll/hierarchy/nodes.hpp"
#include "engine/scheduler.hpp"

namespace stretto::engine {
namespace {

// A schedule for neighbours depends on them alone. No call of the program's has this selection.
constexpr select::Selection kTelling{};

}  // namespace

Status ToldLengths::exchange(Scheduler& scheduler, const select::Selection& selection, const Begins& sent,
                             const Begins& received) {
  const topo::Hierarchy& hierarchy = scheduler.hierarchy_of(selection);
  const coll::Nodes nodes(hierarchy, select::node_level(hierarchy), scheduler.rank());
  const int mates = nodes.home().size;
  const std::size_t from_each = nodes.words_told(nodes.me());
  const auto bytes = [](std::size_t words) { return std::uint64_t{sizeof(std::uint64_t)} * words; };
  Begins out, in;
  Array<int> ranks;
  Array<std::uint64_t> own;
  for (int i = 0; i < mates; ++i) ranks.push(nodes.rank(nodes.home(), i));
  // One word more: so a rank that carries nothing has words, too.
  const bool filled = out.fill(mates, [&](int i) { return bytes(nodes.words_told(i)); }) &&
                      in.fill(mates, [&](int) { return bytes(from_each); }) &&
                      own.resize(out.get()[mates] / bytes(1), 0) &&
                      words_.resize(static_cast<std::size_t>(mates) * from_each + 1, 0);
  Neighborhood around;
  if (!filled || ranks.failed() ||
      !around.fill(scheduler.rank(), {ranks.data(), ranks.size()}, {ranks.data(), ranks.size()}, false))
    return Status::no_memory;
  const auto lengths = [](const Begins& of) { return [&of](int rank) { return of.length(rank); }; };
  std::uint64_t* at = own.data();
  for (int i = 0; i < mates; ++i) at = nodes.tell(i, lengths(sent), lengths(received), at);
  Scheduled call{scheduler.problem(Collective::neighbor_alltoallv)};
  call.problem.neighborhood = &around;
  call.problem.begins = in.get();
  call.problem.sent_begins = out.get();
  call.choice = {&kTelling, select::Backend::schedule, 0};
  call.send = reinterpret_cast<const char*>(own.data());
  call.receive = reinterpret_cast<char*>(words_.data());
  const Status told = scheduler.run(call).status;
  if (told == Status::ok) fill_check(nodes);
  return check_.failed() || expected_.failed() ? Status::no_memory : told;
}

// Where no message comes, because nothing short is on its way, the second word stays as expected.
void ToldLengths::fill_check(const coll::Nodes& nodes) {
  const coll::Nodes::Node& home = nodes.home();
  const std::size_t from_each = nodes.words_told(nodes.me());
  const std::uint64_t* at = words_.data();
  nodes.each_carried(nodes.me(), [&](const coll::Nodes::Node& other) {
    expected_.push(coll::LengthsDigest::received(other, home, at, from_each));
    check_.push(coll::LengthsDigest::sent(home, other, at, from_each));
    check_.push(expected_.back());
    at += 2 * static_cast<std::size_t>(other.size);
  });
}

Status ToldLengths::compare() const {
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    if (check_[2 * i + 1] != expected_[i]) return Status::other_length;
  }
  return Status::ok;
}

}  // namespace stretto::engine
