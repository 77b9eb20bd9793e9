// SPDX-License-Identifier: BSD-3-Clause
// stretto_kv_open_job: the store of the job that the runtime says this process is one of.
#include <cstdlib>

#include "kv/handle.hpp"
#include "pmix/road.hpp"

using namespace stretto;

namespace {

// A job on this node alone needs no road.
Status open(kv::Store& store, const pmix::Seat& seat) {
  Status status = store.open(seat.directory, seat.self.nspace, seat.self.rank, seat.count_here);
  if (status != Status::ok || seat.count_here == seat.ranks) return status;
  status = store.reach(seat.directory, {seat.ranks, seat.here, seat.count_here, seat.first}, pmix::road());
  if (status != Status::ok) store.close();
  return status;
}

}  // namespace

STRETTO_KV_EXPORT int stretto_kv_open_job(stretto_kv** kv) {
  if (!kv) return STRETTO_KV_BAD_PARAM;
  stretto_kv* const made = kv::handle_make();
  if (!made) return STRETTO_KV_NO_MEMORY;
  pmix::Seat seat{};
  Status status = pmix::road_join(&seat);
  if (status == Status::ok) {
    status = open(made->store, seat);
    std::free(seat.here);
    std::free(seat.first);
    if (status != Status::ok) pmix::road_leave();
  }
  if (status != Status::ok) {
    std::free(made);
    return kv::status_of(status);
  }
  made->leave_road = pmix::road_leave;
  *kv = made;
  return STRETTO_KV_SUCCESS;
}
