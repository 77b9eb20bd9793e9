// SPDX-License-Identifier: BSD-3-Clause
// What the nodes of a job that was stopped know, in one place. Each node's keeper writes its ranks'
// accounts into a folder beside the output, which all nodes see, as a rule. The keeper of rank 0
// makes the output of all that have come, and removes the folder. If that node is dead, the keeper
// of the lowest rank does so, a little later.
#pragma once
#include <functional>
#include <string>

#include "keeper/ranks.hpp"

namespace stretto::keeper {

using Write = std::function<void(const Accounts&)>;

class Parts {
 public:
  Parts(std::string output, const std::string& job);
  // Puts this node's accounts there, in place of earlier ones.
  void put(const Accounts& own) const;
  // Waits for those of other nodes, and has the output written, or leaves it to another keeper.
  void gather(const Accounts& own, const Write& write) const;

 private:
  [[nodiscard]] std::string file_of(const Accounts& own) const;
  [[nodiscard]] Accounts read() const;
  void remove() const;

  std::string output_, folder_;
  long long begun_s_;
};

}  // namespace stretto::keeper
