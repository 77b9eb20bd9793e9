// SPDX-License-Identifier: BSD-3-Clause
// Host lists as Slurm writes them: "tux[0-3,12],login,rack[1-2]node[01-16]". Numbers
// of a range are padded with zeros to the width of its first number.
#pragma once
#include <cstddef>

namespace stretto::topo {

struct HostlistError {
  std::size_t at = 0;  // position in the text
  const char* what = nullptr;
};

// Calls `each` for every name, until it returns a text that says what is wrong with the name. A
// list has at most a million names.
bool expand_hostlist(const char* text, std::size_t bytes,
                     const char* (*each)(void* context, const char* name, std::size_t length), void* context,
                     HostlistError* error);

}  // namespace stretto::topo
