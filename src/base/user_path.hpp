// SPDX-License-Identifier: BSD-3-Clause
// Paths of files that belong to the user.
#pragma once
#include <cstdio>
#include <cstdlib>

#include "base/options.hpp"

namespace stretto {

// The path of `name` below the directory that the variable names, or below `otherwise` in the home
// directory. False: there is no such place, or the path is too long. The path is then "".
inline bool user_path(char (&path)[kOptionPathBytes], const char* variable, const char* otherwise, const char* name) {
  const char* const named = std::getenv(variable);
  const bool own = named == nullptr || *named == 0;
  const char* const directory = own ? std::getenv("HOME") : named;
  path[0] = 0;
  if (directory == nullptr || *directory == 0) return false;
  const int length = std::snprintf(path, sizeof path, "%s%s/%s", directory, own ? otherwise : "", name);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) path[0] = 0;
  return path[0] != 0;
}

}  // namespace stretto
