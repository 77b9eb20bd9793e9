// SPDX-License-Identifier: BSD-3-Clause
// Directives for a call of the PMIx library, made without that library's own functions.
#pragma once
#include <pmix.h>

#include <cstring>

namespace stretto::pmix {

inline pmix_info_t directive(const char* key, bool yes) {
  pmix_info_t info{};
  std::strncpy(info.key, key, PMIX_MAX_KEYLEN);
  info.value.type = PMIX_BOOL;
  info.value.data.flag = yes;
  return info;
}
inline pmix_info_t directive(const char* key, int number) {
  pmix_info_t info = directive(key, false);
  info.value.type = PMIX_INT;
  info.value.data.integer = number;
  return info;
}

}  // namespace stretto::pmix
