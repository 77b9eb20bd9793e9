// SPDX-License-Identifier: BSD-3-Clause
// stretto_kv_open_job: opens the store of the job to which this process belongs, as the runtime
// says.
#include <cstdlib>

#include "kv/handle.hpp"
#include "pmix/remote_exchange.hpp"

using namespace stretto;

namespace {

// A job on this node alone needs no exchange.
Status open(kv::Store& store, const pmix::RuntimeClient& client) {
  Status status = store.open(client.directory, client.self.nspace, client.self.rank, client.count_here);
  if (status != Status::ok || client.count_here == client.ranks) return status;
  status = store.reach(client.directory, {client.ranks, client.here, client.count_here, client.first},
                       pmix::remote_exchange());
  if (status != Status::ok) store.close();
  return status;
}

}  // namespace

STRETTO_KV_EXPORT int stretto_kv_open_job(stretto_kv** kv) {
  if (!kv) return STRETTO_KV_BAD_PARAM;
  stretto_kv* const made = kv::handle_make();
  if (!made) return STRETTO_KV_NO_MEMORY;
  pmix::RuntimeClient client{};
  Status status = pmix::remote_join(&client);
  if (status == Status::ok) {
    status = open(made->store, client);
    std::free(client.here);
    std::free(client.first);
    if (status != Status::ok) pmix::remote_leave();
  }
  if (status != Status::ok) {
    std::free(made);
    return kv::status_of(status);
  }
  made->leave_road = pmix::remote_leave;
  *kv = made;
  return STRETTO_KV_SUCCESS;
}
