// SPDX-License-Identifier: BSD-3-Clause
#include "engine/stalled.hpp"

#include "base/log.hpp"
#include "engine/explain.hpp"
#include "engine/ranks.hpp"

namespace stretto::engine {
namespace {

using ull = unsigned long long;

// The peers of messages in one direction, each once. Few messages are under way at a time.
Ranks peers(const sched::Execution& execution, bool received, const Watch& watch) {
  Array<int> named;
  Ranks list;
  execution.each_message([&](int peer, bool receives) {
    if (receives != received) return;
    for (const int other : named) {
      if (other == peer) return;
    }
    named.push(peer);
    list.add(peer, watch.host_of(peer));
  });
  return list;
}

}  // namespace

void Stalled::tell(const sched::Execution& execution, std::uint64_t idle_ns) const {
  const coll::Problem& problem = call_.problem;
  shm::CallDescriptor descriptor;
  descriptor.bytes = problem.count * call_.unit_bytes;
  if (coll::has_root(problem.collective)) descriptor.root = problem.root;
  Ranks own;
  own.add(problem.rank, watch_.host_of(problem.rank));
  const OwnSite site(watch_.process);
  const char* const at = site.text;
  log_line(LogLevel::warn,
           "watchdog: %s has stood still for %llu s: call %llu by schedule on a communicator of %d ranks; rank %s "
           "waits for data of: %s; "
           "for its own to be taken by: %s%s%s",
           CallWords(static_cast<std::uint64_t>(problem.collective), descriptor).text, ull{idle_ns / 1'000'000'000},
           ull{number_}, problem.size, own.text(), peers(execution, true, watch_).text(),
           peers(execution, false, watch_).text(), *at != 0 ? "; it is at " : "", at);
}

}  // namespace stretto::engine
