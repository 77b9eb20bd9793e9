// SPDX-License-Identifier: BSD-3-Clause
#include "keeper/ranks.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "sys/sys.hpp"
#include "whole_file.hpp"

namespace stretto::keeper {
namespace {

constexpr int kLookEveryMs = 100;  // where the kernel tells no ends

int end_of(int pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#else
  return -1;
#endif
}

// From Linux 6.15 on the kernel tells how a process has ended: PIDFD_GET_INFO.
std::int32_t told_status(int end) {
  constexpr std::uint64_t kExit = 1 << 3;
  struct Info {
    std::uint64_t mask, group;
    std::uint32_t numbers[11];
    std::int32_t status;
  } info = {kExit, 0, {}, 0};
  if (end < 0 || ioctl(end, _IOWR(0xff, 11, Info), &info) != 0) return -1;
  return (info.mask & kExit) != 0 ? info.status : -1;
}

// A field of /proc/<pid>/stat, numbered from 1. Empty: there is none.
std::string stat_field(int pid, int number) {
  const std::string text = whole_file("/proc/" + std::to_string(pid) + "/stat");
  const char* at = std::strrchr(text.c_str(), ')');
  for (int field = 2; at != nullptr && field < number; ++field) at = std::strchr(at + 1, ' ');
  return at != nullptr ? std::string(at + 1, std::strcspn(at + 1, " \n")) : std::string();
}

// Otherwise: field 52, the status. It is there from a process's end until its parent has asked for
// it.
std::int32_t status_of(int pid) {
  const std::string state = stat_field(pid, 3);
  return state == "Z" || state == "X" ? std::atoi(stat_field(pid, 52).c_str()) : -1;
}

}  // namespace

Rank::Rank(int pid, int descriptor, std::uint64_t started) : pid_(pid), end_(end_of(pid)), started_(started) {
  int fd = -1;
  void* memory = nullptr;
  if (sys::peer_descriptor_open(pid, descriptor, &fd) != 0) return;
  const bool whole = sys::memory_file_bytes(fd) == sizeof(observe::StatsPage);
  if (whole && sys::map_shared(fd, sizeof(observe::StatsPage), sys::Access::read_only, &memory) == 0)
    page_ = static_cast<const observe::StatsPage*>(memory);
  sys::close_descriptor(fd);
}

Rank::~Rank() {
  if (end_ >= 0) sys::close_descriptor(end_);
  if (page_ != nullptr) sys::unmap(const_cast<observe::StatsPage*>(page_), sizeof(observe::StatsPage));
}

bool Rank::look(std::uint64_t now_ns) {
  if (is_gone() || !sys::process_gone(pid_, started_)) return false;
  gone_ns_ = now_ns;
  status_ = told_status(end_);
  if (status_ < 0) status_ = status_of(pid_);
  return true;
}

bool Rank::is_ending() const {
  constexpr unsigned long kExiting = 4;  // PF_EXITING, in field 9
  return !is_gone() && (std::strtoul(stat_field(pid_, 9).c_str(), nullptr, 10) & kExiting) != 0;
}

bool Rank::account(Account* account) const {
  std::memcpy(static_cast<void*>(&account->page), page_, sizeof *page_);
  account->now_ns = sys::now_ns();
  account->gone_ns = gone_ns_;
  account->status = status_;
  return account->page.is_sound();
}

void wait_for_an_end(const Ranks& ranks, int milliseconds) {
  std::vector<pollfd> ends;
  bool all = true;
  for (const auto& rank : ranks) {
    if (rank->is_gone()) continue;
    if (rank->end_descriptor() >= 0) ends.push_back({rank->end_descriptor(), POLLIN, 0});
    all = all && rank->end_descriptor() >= 0;
  }
  if (!all) milliseconds = milliseconds < 0 ? kLookEveryMs : std::min(milliseconds, kLookEveryMs);
  (void)poll(ends.data(), ends.size(), milliseconds);
}

}  // namespace stretto::keeper
