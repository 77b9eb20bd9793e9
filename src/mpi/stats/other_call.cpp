// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/stats/other_call.hpp"

#include "mpi/stats/profile.hpp"

namespace stretto::mpi {
namespace {

thread_local constinit bool t_is_timed STRETTO_TLS = false;

}  // namespace

OtherCall::OtherCall(Entry entry, const void* caller) : kind_(kEntryFacts[static_cast<int>(entry)].kind) {
  if (!g_timed || t_thread.depth != 0 || t_is_timed || kind_ == observe::OtherKind::collective) return;
  if (is_inside_host(caller)) return;
  began_ns_ = sys::now_ns();
  t_is_timed = true;
}

OtherCall::~OtherCall() {
  if (began_ns_ == 0) return;
  t_is_timed = false;
  if (observe::StatsPage* const page = profile_page()) page->others.count(kind_, sys::now_ns() - began_ns_);
}

}  // namespace stretto::mpi
