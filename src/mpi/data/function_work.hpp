// SPDX-License-Identifier: BSD-3-Clause
// What a reduction by a function needs until it ends. A blocking call has it on its stack, a call
// with a request on the heap.
#pragma once
#include <cstdlib>

#include "mpi/data/data.hpp"
#include "reduce/reduce.hpp"

namespace stretto::mpi {

// Memory of this rank that holds a contribution in the layout of the program's memory.
class Held {
 public:
  Held() = default;
  ~Held() { std::free(memory_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  Region make(Arguments& arguments, MPI_Datatype type, const Layout* layout, std::uint64_t count) {
    MPI_Count low = 0, span = 0;
    if (host().Type_get_true_extent_x(type, &low, &span) != MPI_SUCCESS)
      arguments.failed(MPI_ERR_TYPE, "invalid datatype");
    const std::ptrdiff_t steps = layout->extent * static_cast<std::ptrdiff_t>(count == 0 ? 0 : count - 1);
    if (steps < 0) low += steps;
    const auto bytes = static_cast<std::size_t>(span + (steps < 0 ? -steps : steps));
    memory_ = static_cast<char*>(std::calloc(bytes + 1, 1));  // zeroed, because some programs' functions read gaps
    if (memory_ == nullptr) arguments.failed(MPI_ERR_NO_MEM, "no memory");
    return {address_at(memory_, static_cast<std::ptrdiff_t>(-low)), count, layout};
  }

 private:
  char* memory_ = nullptr;
};

struct Function {
  MPI_Op op;
  MPI_Datatype type;
  reduce::Kernel kernel;   // null: the host's MPI_Reduce_local
  int code = MPI_SUCCESS;  // its first error
};

struct FunctionWork {
  FunctionWork() = default;
  ~FunctionWork() { layout_release(layout); }
  FunctionWork(const FunctionWork&) = delete;
  FunctionWork& operator=(const FunctionWork&) = delete;

  [[nodiscard]] int finish() const { return function.code; }

  Held grown, arrived;
  Function function{};
  const Layout* layout = nullptr;
};

}  // namespace stretto::mpi
