// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/data/operations_host.hpp"

#include <pthread.h>

#include <atomic>
#include <cstring>

#include "mpi/host/entry.hpp"
#include "mpi/host/trial.hpp"

namespace stretto::mpi {
namespace {

using reduce::Op;
using reduce::Type;

constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit std::atomic<Answer> g_answers[kMostTypes][reduce::kOps] = {};

// Whether the host accepts the operation on the type. The call has no elements, so that the host
// computes nothing: MPICH 4.0.2 accepts logical operations on floating-point numbers and then dies.
bool accepts(MPI_Op op, MPI_Datatype type) {
  std::uint64_t in = 0, out = 0;
  return host().Allreduce(&in, &out, 0, type, op, trial_comm()) == MPI_SUCCESS;
}

// Whether the host checks arguments. An MPI can be built or told not to check them, and
// then accepts everything.
bool checks_arguments() {
  return !accepts(STRETTO_HANDLE(MPI_Op, MPI_MAXLOC, ompi_mpi_op_maxloc),
                  STRETTO_HANDLE(MPI_Datatype, MPI_INT, ompi_mpi_int));
}

// Compares the host with our kernels on all pairs of some numbers, as integers of 1 to 8
// bytes. g_lock guards it.
class Trial {
 public:
  void fill(std::size_t bytes) {
    bytes_ = bytes;
    for (std::size_t i = 0; i < kPairs; ++i) {
      put(in_, i, i / kNumbers);
      put(inout_, i, i % kNumbers);
    }
  }
  // Combines the pairs one by one. In long vectors Open MPI's result depends on the processor and
  // on the place within the vector. This concerns sums of 8 and 16 bits that overflow, and 64-bit
  // numbers, which Open MPI takes for others than they are.
  [[nodiscard]] bool by_host(MPI_Op op, MPI_Datatype type) {
    std::memcpy(hosts_, inout_, sizeof inout_);
    for (std::size_t at = 0; at < kPairs * bytes_; at += bytes_) {
      if (host().Reduce_local(in_ + at, hosts_ + at, 1, type, op) != MPI_SUCCESS) return false;
    }
    return true;
  }
  [[nodiscard]] bool same_by(reduce::Kernel kernel) {
    std::memcpy(ours_, inout_, sizeof inout_);
    kernel(ours_, in_, kPairs);
    return std::memcmp(ours_, hosts_, kPairs * bytes_) == 0;
  }

 private:
  static constexpr std::size_t kNumbers = 16, kPairs = kNumbers * kNumbers;
  static constexpr std::size_t kMostBytes = kPairs * sizeof(std::uint64_t);

  void put(unsigned char* numbers, std::size_t at, std::size_t which) const {
    const std::uint64_t sign = std::uint64_t{1} << (8 * bytes_ - 1);
    const std::uint64_t values[kNumbers] = {0,
                                            1,
                                            2,
                                            3,
                                            4,
                                            5,
                                            6,
                                            7,
                                            ~std::uint64_t{0},
                                            ~std::uint64_t{1},
                                            100,
                                            ~std::uint64_t{100},
                                            sign,
                                            sign - 1,
                                            0x5555555555555555,
                                            0xa5a5a5a5a5a5a5a5};
    const std::uint64_t v8 = values[which];
    const auto v1 = static_cast<std::uint8_t>(v8);
    const auto v2 = static_cast<std::uint16_t>(v8);
    const auto v4 = static_cast<std::uint32_t>(v8);
    const void* const from = bytes_ == 1   ? static_cast<const void*>(&v1)
                             : bytes_ == 2 ? static_cast<const void*>(&v2)
                             : bytes_ == 4 ? static_cast<const void*>(&v4)
                                           : &v8;
    std::memcpy(numbers + at * bytes_, from, bytes_);
  }

  std::size_t bytes_;
  alignas(64) unsigned char in_[kMostBytes];
  alignas(64) unsigned char inout_[kMostBytes];
  alignas(64) unsigned char hosts_[kMostBytes];
  alignas(64) unsigned char ours_[kMostBytes];
};
constinit Trial g_trial = {};

// The kernel for integers that does what the host does.
Answer kernel_like(MPI_Op op, Op kind, MPI_Datatype type, std::size_t bytes) {
  g_trial.fill(bytes);
  if (!g_trial.by_host(op, type)) return Answer::host;
  for (const Type candidate : {Type::i8, Type::i16, Type::i32, Type::i64, Type::u8, Type::u16, Type::u32, Type::u64}) {
    const reduce::Kernel kernel = reduce::kernel(kind, candidate);
    if (kernel == nullptr || reduce::type_bytes(candidate) != bytes || !g_trial.same_by(kernel)) continue;
    return static_cast<Answer>(static_cast<unsigned>(Answer::first_kernel) + static_cast<unsigned>(candidate));
  }
  return Answer::host;
}

// What the answer is if the host accepts the pair. Elements of more than 8 bytes without
// kernels are one or two numbers of 128 bits. On these each MPI does what MPI allows on shorter
// numbers, so the host's function serves. Other pairs that an MPI accepts, such as logical
// operations on floating-point numbers, have no reliable result: MPICH 4.0.2 computes nothing,
// or dies. They go to the host.
Answer accepted(MPI_Op op, Op kind, MPI_Datatype type, const KnownType& known) {
  if (known.bytes > 8) return known.type == Type::count_ && !is_logical(kind) ? Answer::function : Answer::host;
  const bool integer = !known.padded && !is_floating(known.type) && (known.bytes & (known.bytes - 1)) == 0;
  return !integer ? Answer::host : kernel_like(op, kind, type, known.bytes);
}

[[gnu::cold, gnu::noinline]] Answer ask(MPI_Op op, Op kind, MPI_Datatype type, const KnownType& known) {
  if (trial_comm() == host().constants.comm_null) return Answer::unknown;
  std::atomic<Answer>& answer = g_answers[known.row][static_cast<std::size_t>(kind)];
  pthread_mutex_lock(&g_lock);
  if (answer.load(std::memory_order_relaxed) == Answer::unknown) {
    const Inside inside;
    const bool yes = checks_arguments() && accepts(op, type);
    // Relaxed is enough, because the answer refers to no other data.
    answer.store(yes ? accepted(op, kind, type, known) : Answer::host, std::memory_order_relaxed);
  }
  pthread_mutex_unlock(&g_lock);
  return answer.load(std::memory_order_relaxed);
}

}  // namespace

Answer host_answer(MPI_Op op, Op kind, MPI_Datatype type, const KnownType& known) {
  const Answer answer = g_answers[known.row][static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  return answer != Answer::unknown ? answer : ask(op, kind, type, known);
}

}  // namespace stretto::mpi
