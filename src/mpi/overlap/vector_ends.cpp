// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/overlap/vector_ends.hpp"

#include <cstring>

#include "coll/algorithm.hpp"

namespace stretto::mpi {

bool VectorEnds::prepare(int rank, int size) {
  if (prepared_) return true;
  coll::Problem problem;
  problem.collective = Collective::allreduce;
  problem.size = size;
  problem.rank = rank;
  problem.commutative = true;
  problem.count = 2 * kBytes;
  coll::Builder builder;
  const coll::Algorithm& algorithm = *coll::find_algorithm(problem.collective, "recursive_doubling");
  prepared_ = program_.prepare(coll::build(builder, algorithm, problem, {})) && execution_.prepare(program_) &&
              memory_.resize(4 * kBytes + program_.scratch_units(), 0);
  return prepared_;
}

void VectorEnds::pack(const char* vector, std::uint64_t bytes) {
  std::memcpy(memory_.data(), vector, kBytes);
  std::memcpy(memory_.data() + kBytes, vector + (bytes - kBytes), kBytes);
}

Status VectorEnds::combine(const coll_shm::KernelOp& reduction, const transport::Transport& by,
                           const overlap::Ends::Wait& wait) {
  sched::Binding binding;
  binding.buffers[static_cast<int>(sched::Buffer::send)] = memory_.data();
  binding.buffers[static_cast<int>(sched::Buffer::receive)] = memory_.data() + 2 * kBytes;
  binding.buffers[static_cast<int>(sched::Buffer::scratch)] = memory_.data() + 4 * kBytes;
  binding.combination = {const_cast<coll_shm::KernelOp*>(&reduction),
                         [](void* op, char* out, const char* left, const char* right, std::uint64_t bytes) {
                           const auto& kernel = *static_cast<const coll_shm::KernelOp*>(op);
                           kernel.fold(out, left, right, bytes / kernel.element_bytes);
                         }};
  binding.transport = by;
  execution_.start(binding);
  shm::Waiter waiter(wait.policy);
  while (!execution_.done()) {
    if (execution_.advance()) {
      waiter.moved();
    } else if (!execution_.done()) {
      if (!wait.goes_on(wait.context)) return Status::peer_failed;
      (void)waiter.step();
    }
  }
  return execution_.status();
}

}  // namespace stretto::mpi
