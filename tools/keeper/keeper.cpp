// SPDX-License-Identifier: BSD-3-Clause
// stretto-keeper: waits until the ranks of a job on this node have ended. If the job was stopped,
// it writes what they knew: the statistics of a run that has come to no MPI_Finalize. The node's
// first rank starts it in MPI_Init, with STRETTO_STATS (src/mpi/stats/keeper.cpp).
//
//   stretto-keeper json|text FILE JOB PID:DESCRIPTOR:STARTED...
//
// FILE "": standard error. Signals are blocked, because whatever ends the job reaches this program,
// too. It needs no processor while the job runs. It closes its standard input once it has found the
// ranks.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "keeper/parts.hpp"
#include "keeper/segments.hpp"
#include "keeper/statement.hpp"
#include "sys/sys.hpp"

namespace {

using namespace stretto;
using keeper::Account;
using keeper::Accounts;
using keeper::Rank;
using keeper::Ranks;

// What the rank had open stays open in the rank alone.
void close_inherited() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  std::vector<int> descriptors;
  while (const dirent* entry = readdir(folder)) descriptors.push_back(std::atoi(entry->d_name));
  const int own = dirfd(folder);
  for (const int descriptor : descriptors) {
    if (descriptor > 2 && descriptor != own) close(descriptor);
  }
  closedir(folder);
}

class Keeper {
 public:
  Keeper(bool json, std::string file, const std::string& job)
      : json_(json), file_(std::move(file)), parts_(file_, job) {}

  void add(const char* place) {
    int pid = 0, descriptor = -1;
    unsigned long long started = 0;
    if (std::sscanf(place, "%d:%d:%llu", &pid, &descriptor, &started) != 3) return;
    auto rank = std::make_unique<Rank>(pid, descriptor, started);
    if (!rank->is_readable()) return;
    note_segments(*rank);
    ranks_.push_back(std::move(rank));
  }

  void keep() {
    while (std::ranges::any_of(ranks_, [](const auto& rank) { return !rank->is_gone(); })) {
      keeper::wait_for_an_end(ranks_, -1);
      look();
    }
    if (first_ns_ == 0) return;
    const Accounts all = accounts();
    if (all.empty()) return;
    if (is_on_this_node_alone(all)) {
      write(all);
    } else {
      parts_.gather(all, [&](const Accounts& gathered) { write(gathered); });
    }
    keeper::remove_unused(std::move(segments_));
  }

 private:
  void note_segments(const Rank& rank) { segments_.merge(keeper::segments_of(rank.pid())); }

  void look() {
    const std::uint64_t now_ns = sys::now_ns();
    const bool was_cut = first_ns_ != 0;
    bool one_lives = false;
    for (const auto& rank : ranks_) {
      if (rank->look(now_ns) && !rank->has_reported() && !was_cut) {
        first_ns_ = now_ns;
        first_.push_back(rank.get());
      }
      one_lives = one_lives || !rank->is_gone();
    }
    if (was_cut || first_ns_ == 0) return;
    for (const auto& rank : ranks_) {
      if (rank->is_ending() && !rank->has_reported()) first_.push_back(rank.get());
    }
    if (!one_lives) return;
    // At once: whatever ends the ranks may end this program with the last of them.
    for (const auto& rank : ranks_) note_segments(*rank);
    const Accounts all = accounts();
    if (file_.empty() || all.empty()) return;
    is_on_this_node_alone(all) ? write(all) : parts_.put(all);
  }

  [[nodiscard]] Accounts accounts() const {
    Accounts all;
    for (const auto& rank : ranks_) {
      auto account = std::make_unique<Account>();
      if (!rank->account(account.get())) continue;
      account->first_ns = first_ns_;
      account->is_first = std::ranges::find(first_, rank.get()) != first_.end() ? 1 : 0;
      all.push_back(std::move(account));
    }
    return all;
  }

  // Where there is no file, nodes cannot meet in its folder.
  [[nodiscard]] bool is_on_this_node_alone(const Accounts& all) const {
    return file_.empty() || static_cast<int>(all.size()) == all.front()->page.ranks;
  }

  void write(const Accounts& all) const {
    const std::string text = json_ ? keeper::as_json(all) : keeper::as_text(all);
    if (file_.empty()) {
      const bool has_first = std::ranges::any_of(all, [](const auto& its) { return its->page.rank == 0; });
      const char* const taker = std::getenv("_STRETTO_RUN_TEXT");  // `stretto run` (keepers.py)
      if (has_first && (taker == nullptr || sys::output_write(taker, text.data(), text.size()) != 0))
        sys::error_write(text.data(), text.size());
      return;
    }
    int error = sys::folders_make(file_.c_str());
    if (error == 0) error = sys::output_write(file_.c_str(), text.data(), text.size());
    if (error != 0)
      std::fprintf(stderr, "stretto: STRETTO_STATS: cannot write %s: %s\n", file_.c_str(), std::strerror(error));
  }

  bool json_;
  std::string file_;
  keeper::Parts parts_;
  Ranks ranks_;
  std::vector<const Rank*> first_;  // that have ended
  std::uint64_t first_ns_ = 0;      // when the first rank ended without a report; 0: none has
  std::set<std::string> segments_;
};

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::fprintf(stderr, "usage: stretto-keeper json|text FILE JOB PID:DESCRIPTOR:STARTED...\n");
    return 2;
  }
  close_inherited();
  Keeper keeper(std::strcmp(words[1], "json") == 0, words[2], words[3]);
  for (int i = 4; i < count; ++i) keeper.add(words[i]);
  close(0);
  (void)open("/dev/null", O_RDONLY);
  keeper.keep();
}
