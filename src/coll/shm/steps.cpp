// SPDX-License-Identifier: BSD-3-Clause
#include "coll/shm/steps.hpp"

namespace stretto::coll_shm {

[[gnu::noinline]] void send_in_steps(shm::Call& call, shm::OutQueue& queue, const Region& region, bool good) {
  shm::Outgoing message;
  message.start(good ? region : kNothing, !good);
  run(call, [&] { return message.step(call, queue); }, [&] { return message.done(); });
}

[[gnu::noinline]] void receive_in_steps(shm::Call& call, shm::InQueue& queue, const Region& region, bool good) {
  shm::Incoming message;
  message.start(good ? region : kNothing, !good);
  run(call, [&] { return message.step(call, queue); }, [&] { return message.done(); });
}

}  // namespace stretto::coll_shm
