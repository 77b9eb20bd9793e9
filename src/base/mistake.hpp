// SPDX-License-Identifier: BSD-3-Clause
// Arguments that an MPI refuses at once, without asking peers: which argument is wrong.
#pragma once
#include <cstdint>

namespace stretto {

enum class Mistake : std::uint8_t { root, count, type, buffer, array, op, other, count_ };
inline constexpr const char* kMistakeWords[static_cast<int>(Mistake::count_)] = {
    "invalid root",  "invalid count",     "invalid datatype", "invalid buffer",
    "invalid array", "invalid operation", "invalid argument"};

}  // namespace stretto
