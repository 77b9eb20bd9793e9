// SPDX-License-Identifier: BSD-3-Clause
// The object behind a stretto_kv (include/stretto/kv.h).
#pragma once
#include "kv/store.hpp"
#include "stretto/kv.h"

#define STRETTO_KV_EXPORT extern "C" __attribute__((visibility("default")))

struct stretto_kv {
  stretto::kv::Store store;
  void (*leave_road)() = nullptr;  // called when the store is closed
};

namespace stretto::kv {

stretto_kv* handle_make();  // null: no memory
int status_of(Status status);

}  // namespace stretto::kv
