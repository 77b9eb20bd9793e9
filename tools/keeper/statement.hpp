// SPDX-License-Identifier: BSD-3-Clause
// The statistics of a job that was stopped (docs/statistics.md), from what its ranks knew.
#pragma once
#include <string>

#include "keeper/ranks.hpp"

namespace stretto::keeper {

// `accounts`: of the ranks that could be read, in any order, at least one.
std::string as_json(const Accounts& accounts);
std::string as_text(const Accounts& accounts);

}  // namespace stretto::keeper
