// SPDX-License-Identifier: BSD-3-Clause
// The names of the hosts that ranks are on, for messages to users.
#pragma once
#include "topo/names.hpp"

namespace stretto::topo {

class Hosts {
 public:
  // Adds the host of the next rank. Without memory every host's name is "?".
  void add(const char* name) { of_rank_.push(names_.number(name, std::strlen(name))); }
  [[nodiscard]] const char* of(int rank) const {
    return names_.failed() || of_rank_.failed() ? "?" : names_.name(of_rank_[static_cast<std::size_t>(rank)]);
  }

 private:
  Names names_;
  Array<int> of_rank_;
};

}  // namespace stretto::topo
