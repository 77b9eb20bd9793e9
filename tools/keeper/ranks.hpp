// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a job on this node, from outside: what each keeps of its statistics, and its end.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "observe/stats_page.hpp"

namespace stretto::keeper {

// What is known of a rank after its end, or before it.
struct Account {
  std::uint64_t now_ns = 0;    // when this was read, by the node's clock
  std::uint64_t gone_ns = 0;   // when its end was seen; 0: it lives
  std::uint64_t first_ns = 0;  // when the first end of a rank on its node was seen; 0: none
  std::int32_t status = -1;    // as of waitpid; -1: not known
  std::int32_t is_first = 0;   // it was among those that ended first
  observe::StatsPage page;
};
static_assert(std::is_trivially_copyable_v<Account>);

class Rank {
 public:
  // Maps what process `pid` keeps behind its descriptor. `started`: see sys::start_time.
  Rank(int pid, int descriptor, std::uint64_t started);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  [[nodiscard]] bool is_readable() const { return page_ != nullptr; }
  [[nodiscard]] bool has_reported() const { return page_->reported.load_acquire() != 0; }
  [[nodiscard]] bool is_gone() const { return gone_ns_ != 0; }
  [[nodiscard]] int pid() const { return pid_; }
  // Becomes readable when the process ends; -1: the kernel has no such descriptor.
  [[nodiscard]] int end_descriptor() const { return end_; }
  // Looks whether it has ended. True: it has, and this was not known.
  bool look(std::uint64_t now_ns);
  // The kernel ends it. Others may know, because its connections are closed already.
  [[nodiscard]] bool is_ending() const;
  // False: the page is not sound.
  bool account(Account* account) const;

 private:
  int pid_, end_;
  std::uint64_t started_, gone_ns_ = 0;
  std::int32_t status_ = -1;
  const observe::StatsPage* page_ = nullptr;
};

using Ranks = std::vector<std::unique_ptr<Rank>>;
using Accounts = std::vector<std::unique_ptr<Account>>;

// Waits until a rank ends, or for so long; negative: for any time.
void wait_for_an_end(const Ranks& ranks, int milliseconds);

}  // namespace stretto::keeper
