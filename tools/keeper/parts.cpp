// SPDX-License-Identifier: BSD-3-Clause
#include "keeper/parts.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "sys/sys.hpp"
#include "whole_file.hpp"

namespace stretto::keeper {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kPatienceNs = 5 * kSecond;        // of the keeper of rank 0, for the others
constexpr std::uint64_t kOthersPatienceNs = 8 * kSecond;  // of the others, for that one
constexpr std::uint64_t kLastNs = 3 * kSecond;            // for the keeper of the lowest rank, to write
constexpr std::uint64_t kPauseNs = 30'000'000;

int first_rank(const Accounts& accounts) {
  return (*std::ranges::min_element(accounts, {}, [](const auto& its) { return its->page.rank; }))->page.rank;
}

bool is_whole(const Accounts& accounts) { return static_cast<int>(accounts.size()) == accounts.front()->page.ranks; }

}  // namespace

Parts::Parts(std::string output, const std::string& job)
    : output_(std::move(output)), folder_(output_ + ".parts-" + job), begun_s_(std::time(nullptr)) {}

std::string Parts::file_of(const Accounts& own) const { return folder_ + "/" + std::to_string(first_rank(own)); }

void Parts::put(const Accounts& own) const {
  std::string bytes;
  for (const auto& its : own) bytes.append(reinterpret_cast<const char*>(its.get()), sizeof *its);
  const std::string file = file_of(own);
  if (sys::folders_make(file.c_str()) == 0) (void)sys::output_write(file.c_str(), bytes.data(), bytes.size());
}

Accounts Parts::read() const {
  Accounts all;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->path().has_extension()) continue;  // it is being written
    const std::string bytes = whole_file(at->path());
    for (std::size_t begin = 0; begin + sizeof(Account) <= bytes.size(); begin += sizeof(Account)) {
      auto account = std::make_unique<Account>();
      std::memcpy(static_cast<void*>(account.get()), bytes.data() + begin, sizeof(Account));
      if (account->page.is_sound()) all.push_back(std::move(account));
    }
  }
  return all;
}

void Parts::remove() const {
  std::error_code error;
  fs::remove_all(folder_, error);
}

void Parts::gather(const Accounts& own, const Write& write) const {
  put(own);
  const bool is_first = first_rank(own) == 0;
  const std::uint64_t until_ns = sys::now_ns() + (is_first ? kPatienceNs : kOthersPatienceNs);
  std::size_t written = 0;
  for (;; sys::nap_ns(kPauseNs)) {
    const bool is_late = sys::now_ns() >= until_ns;
    const Accounts all = read();
    const bool has_own = std::ranges::any_of(all, [&](const auto& its) { return its->page.rank == first_rank(own); });
    if (!has_own && !is_first) return;  // the keeper of rank 0 has taken it
    const Accounts& known = has_own ? all : own;
    if (is_first && known.size() > written) {
      write(known);
      written = known.size();
    }
    if (is_first && (is_whole(known) || is_late)) return remove();
    if (!is_late) continue;
    struct stat status{};
    const bool has_output = stat(output_.c_str(), &status) == 0 && status.st_mtim.tv_sec >= begun_s_;
    const bool is_lowest = first_rank(all) == first_rank(own);
    if (!has_output && is_lowest) write(all);
    if (has_output || is_lowest || sys::now_ns() >= until_ns + kLastNs) return remove();
  }
}

}  // namespace stretto::keeper
