// SPDX-License-Identifier: BSD-3-Clause
// The PMIx client library that is in the process, behind our names.
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
// Null: there is none, and whoever calls us has only us.
const PmixLibrary* library();

// While the PMIx library runs a call of ours, its own use of public functions goes straight back to it.
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
