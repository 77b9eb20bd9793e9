// SPDX-License-Identifier: BSD-3-Clause
#include "keeper/open_calls.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace stretto::keeper {
namespace {

using observe::CallProfile;
using observe::OpenCall;
using observe::ProfileCommunicator;

using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // a communicator, and a call's number there

// A rank's number for the communicator, or -1. MPI_COMM_WORLD has all ranks, also those that have
// called nothing on it.
int number_of(const CallProfile& profile, const Key& key) {
  for (unsigned i = 0; i < profile.communicator_count(); ++i) {
    const ProfileCommunicator& its = profile.communicators()[i];
    if (its.members == std::get<0>(key) && its.nth == std::get<1>(key)) return static_cast<int>(i);
  }
  return -1;
}

bool has_kept(const CallProfile& profile, int communicator, std::uint32_t number) {
  return std::ranges::any_of(profile.kept(), [&](const observe::KeptCall& call) {
    return call.communicator == communicator && call.number == number;
  });
}

// By way of which most calls of this collective went.
int usual_path(const observe::Counter& counter) {
  const auto* const most = std::max_element(std::begin(counter.calls), std::end(counter.calls));
  return *most != 0 ? static_cast<int>(most - counter.calls) : static_cast<int>(Path::host);
}

// The place of `other`'s call as the rank's own. Ranks call from the same place, as a rule.
std::uint16_t same_site(const Account& account, const Account& other, std::uint16_t site) {
  if (site == CallProfile::kNoSite) return site;
  const observe::ProfileSite& there = other.page.profile.at(site);
  const auto offset = [](const Account& of, std::uint64_t caller) -> std::uint64_t {
    const shm::Module* const module = caller != 0 ? of.page.modules.find(caller - 1) : nullptr;
    return module != nullptr ? caller - module->base : caller;
  };
  for (unsigned s = 0; s < CallProfile::kSites; ++s) {
    const observe::ProfileSite& its = account.page.profile.at(s);
    if (account.page.profile.is_used(s) && its.collective == there.collective &&
        offset(account, its.caller) == offset(other, there.caller) && std::strcmp(its.text, there.text) == 0)
      return static_cast<std::uint16_t>(s);
  }
  return CallProfile::kNoSite;
}

class Finder {
 public:
  Finder(std::vector<std::unique_ptr<Account>>& accounts, std::uint64_t first_ns)
      : accounts_(accounts), first_ns_(first_ns) {}

  std::vector<OpenCalls> find() {
    std::map<Key, std::vector<int>> waiting;
    for (int r = 0; r < ranks(); ++r) {
      if (!accounts_[r] || !is_open(*accounts_[r])) continue;
      const OpenCall& open = accounts_[r]->page.open;
      const ProfileCommunicator& its = accounts_[r]->page.profile.communicators()[open.communicator];
      waiting[{its.members, its.nth, open.number}].push_back(r);
    }
    std::vector<OpenCalls> found;
    for (const auto& [key, ranks] : waiting) found.push_back(describe(key, ranks));
    return found;
  }

 private:
  [[nodiscard]] int ranks() const { return static_cast<int>(accounts_.size()); }
  [[nodiscard]] std::uint64_t first_at(const Account& account) const { return first_ns_ + account.page.clock.more_ns; }
  [[nodiscard]] bool is_open(const Account& account) const {
    const OpenCall& open = account.page.open;
    return open.began_ns != 0 && open.began_ns <= first_at(account) && open.communicator >= 0 &&
           static_cast<unsigned>(open.communicator) < account.page.profile.communicator_count();
  }

  OpenCalls describe(const Key& key, const std::vector<int>& waiting) {
    OpenCalls calls;
    const Account& model = *accounts_[waiting[0]];
    const OpenCall open = model.page.open;
    const std::uint32_t size = model.page.profile.communicators()[open.communicator].size;
    calls.collective = open.collective;
    calls.waiting = waiting;
    for (const int r : waiting) calls.kept[r] = waits(*accounts_[r], calls);
    for (int r = 0; r < ranks(); ++r) {
      if (!accounts_[r] || calls.kept.contains(r)) continue;
      Account& account = *accounts_[r];
      int number = number_of(account.page.profile, key);
      if (number < 0 && static_cast<int>(size) == ranks() && std::get<1>(key) == 0)
        number = account.page.profile.add_communicator(std::get<0>(key), size, static_cast<std::uint32_t>(r));
      if (number < 0 || has_kept(account.page.profile, number, std::get<2>(key))) continue;
      const ProfileCommunicator& its = account.page.profile.communicators()[number];
      const bool has_left = its.calls > std::get<2>(key);
      if (!has_left) calls.late.push_back(r);
      // Who has left was there before all that wait.
      calls.kept[r] = {has_left ? 1 : first_at(account),
                       0,
                       std::get<2>(key),
                       same_site(account, model, calls.kept[waiting[0]].site),
                       static_cast<std::uint8_t>(number),
                       static_cast<std::uint8_t>(static_cast<unsigned>(open.collective) << 1 |
                                                 (static_cast<std::uint32_t>(open.root) == its.rank ? 1u : 0u))};
    }
    return calls;
  }

  // Counts the time of the rank's open call.
  observe::KeptCall waits(Account& account, OpenCalls& calls) const {
    const OpenCall& open = account.page.open;
    const std::uint64_t ns = first_at(account) - open.began_ns;
    const ProfileCommunicator& its = account.page.profile.communicators()[open.communicator];
    observe::Counter& counter = account.page.counters.of[static_cast<int>(open.collective)];
    ++counter.calls[usual_path(counter)];
    counter.ns += ns;
    calls.longest_ns = std::max(calls.longest_ns, ns);
    return account.page.profile.record_open({open.collective, false, static_cast<std::uint32_t>(open.root) == its.rank,
                                             open.communicator, open.number, 0, open.caller, open.began_ns, ns});
  }

  std::vector<std::unique_ptr<Account>>& accounts_;
  std::uint64_t first_ns_;
};

}  // namespace

std::vector<OpenCalls> open_calls(std::vector<std::unique_ptr<Account>>& accounts, std::uint64_t first_ns) {
  return Finder(accounts, first_ns).find();
}

}  // namespace stretto::keeper
