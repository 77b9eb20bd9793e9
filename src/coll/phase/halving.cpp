// SPDX-License-Identifier: BSD-3-Clause
#include "coll/phase/halving.hpp"

namespace stretto::coll {

Slice Halving::kept(Slice vector, int number, int rounds) {
  for (int round = 0; round < rounds; ++round)
    vector = piece(vector, 2, static_cast<std::uint64_t>(number >> round & 1));
  return vector;
}

void Halving::reduce_scatter(Slice in, Slice work) {
  for (int round = 0; round < fold_.rounds(); ++round) {
    const Slice given = kept(in, number_ ^ 1 << round, round + 1);
    builder_.send(partner_rank(round), given);
    builder_.recv_reduce(partner_rank(round), kept(in, number_, round + 1), kept(work, number_, round + 1),
                         upper(round) ? sched::Side::left : sched::Side::right);
    in = work;
  }
  if (fold_.rounds() == 0) builder_.copy(in, work);
}

void Halving::allgather(Slice work) {
  for (int round = fold_.rounds() - 1; round >= 0; --round) {
    builder_.send(partner_rank(round), kept(work, number_, round + 1));
    builder_.recv(partner_rank(round), kept(work, number_ ^ 1 << round, round + 1));
  }
}

void Halving::gather(Slice work, int root_number) {
  for (int round = fold_.rounds() - 1; round >= 0; --round) {
    if ((number_ >> round & 1) != (root_number >> round & 1)) {
      builder_.send(partner_rank(round), kept(work, number_, round + 1));
      return;
    }
    builder_.recv(partner_rank(round), kept(work, number_ ^ 1 << round, round + 1));
  }
}

}  // namespace stretto::coll
