// SPDX-License-Identifier: BSD-3-Clause
// What reductions by the engine (reductions.cpp) and by schedules (schedules.cpp) have in common.
#pragma once
#include <cstdlib>

#include "mpi/operations.hpp"
#include "mpi/serve.hpp"

namespace stretto::mpi {

using By = Combining::By;

// What this rank brings to a reduction and what it gets.
struct Part {
  const void* own = nullptr;  // where its contribution lies (in place: where the result will)
  std::int64_t count = 0;     // elements of a contribution
  void* out = nullptr;
  std::int64_t out_count = 0;
  bool gets = true;           // a result
};

// What `own` is when the user says MPI_IN_PLACE, where that is allowed.
inline Part in_place_or(const void* send, Part part) {
  part.own = send == MPI_IN_PLACE ? part.out : send;
  return part;
}

// Whether the host does the call: decided by operation and type alone.
[[nodiscard]] bool left_to_host(By by, MPI_Datatype type);

// Memory of this rank that holds a contribution as the user's memory would.
class Held {
 public:
  Held() = default;
  ~Held() { std::free(memory_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Region make(Arguments& arguments, MPI_Datatype type, const Layout* layout, std::uint64_t count);

 private:
  char* memory_ = nullptr;
};

// An operation on elements as the type lays them out.
struct Function {
  MPI_Op op;
  MPI_Datatype type;
  reduce::Kernel kernel;  // null: the host's MPI_Reduce_local
};
// inout = in combined with inout. `context` is a Function.
void fold(void* context, char* in, char* inout, std::uint64_t count);

}  // namespace stretto::mpi
