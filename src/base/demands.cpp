// SPDX-License-Identifier: BSD-3-Clause
#include "base/demands.hpp"

#include <atomic>
#include <cstdio>

#include "base/log.hpp"

namespace stretto {
namespace {

constinit std::atomic<std::uint64_t> g_open{0};  // options that demand something, by Option
static_assert(kOptions <= 64);

constexpr std::uint64_t bit(Option option) { return std::uint64_t{1} << static_cast<int>(option); }

}  // namespace

void demands_start(const Options& options) {
  std::uint64_t open = 0;
  if (options.overlap_bytes() != 0 && !options.overlap_tries()) open |= bit(Option::overlap);
  if (options.nonblocking() == NonblockingChoice::on) open |= bit(Option::nonblocking);
  if (options.get(Option::tiers) > kTiersAuto) open |= bit(Option::tiers);
  if (options.tcp() == TcpChoice::always) open |= bit(Option::tcp);
  if (const char* const provider = options.fabric_provider(); provider != nullptr && *provider != 0)
    open |= bit(Option::fabric);
  g_open.store(open, std::memory_order_relaxed);
}

void demand_refused(Option option, int ranks, const char* why) {
  if ((g_open.fetch_and(~bit(option), std::memory_order_relaxed) & bit(option)) == 0) return;
  char where[48] = "";
  if (ranks != 0) std::snprintf(where, sizeof where, " on a communicator of %d ranks", ranks);
  log_line(LogLevel::warn, "%s has no effect%s: %s", option_row(option).name, where, why);
}

}  // namespace stretto
