// SPDX-License-Identifier: BSD-3-Clause
// The watchdog's eye on ranks that are in no call of MPI (shm/stack_note.hpp). Private to
// src/engine.
#pragma once
#include <cstdint>

#include "base/array.hpp"

namespace stretto::engine {

struct Process;

class StackWatch {
 public:
  // By the thread whose stack others may want to see.
  void start();
  // `stuck`: a call of this process has not ended for too long. Then it wants to know where others
  // are, and says so if no lower rank does. Otherwise it says where it is itself, if others want to
  // know.
  void look(Process& process, bool stuck);

 private:
  void publish(Process& process);
  void tell(Process& process);

  int thread_ = 0;
  std::uint64_t published_ = ~std::uint64_t{0};  // after so many calls
  struct Told {
    int rank;
    std::uint64_t calls;
  };
  Array<Told> told_;
};

}  // namespace stretto::engine
