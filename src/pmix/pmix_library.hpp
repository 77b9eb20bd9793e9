// SPDX-License-Identifier: BSD-3-Clause
// The PMIx client library of this process, behind the functions of the same names that Stretto
// exports.
#pragma once
#include <pmix.h>

namespace stretto::pmix {

struct PmixLibrary {
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Get) get;
  decltype(&PMIx_Get_nb) get_nb;
  decltype(&PMIx_Fence) fence;
  decltype(&PMIx_Fence_nb) fence_nb;
};
// null: the process has none, so a caller has only Stretto's functions.
const PmixLibrary* library();

// While the PMIx library runs a call from Stretto, its own calls of public functions go straight
// back to it.
class Inside {
 public:
  Inside() { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  [[nodiscard]] static bool is() { return depth_ != 0; }

 private:
  static thread_local int depth_;
};

}  // namespace stretto::pmix
