// SPDX-License-Identifier: BSD-3-Clause
#include "top/find.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "whole_file.hpp"

namespace stretto::top {
namespace {

constexpr char kLink[] = "/memfd:stretto (deleted)";

// Calls each(number) for the numbers among a directory's names. Returns errno; 0: the directory
// could be read.
template <class Each>
int each_number(const std::string& path, Each each) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return errno;
  while (const dirent* entry = readdir(directory.get())) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (end != entry->d_name && *end == 0) each(static_cast<int>(number));
  }
  return 0;
}

void look_into(int pid, Found& found) {
  const std::string files = "/proc/" + std::to_string(pid) + "/fd";
  const int error = each_number(files, [&](int number) {
    const std::string path = files + "/" + std::to_string(number);
    char link[sizeof kLink] = {};
    const ssize_t length = readlink(path.c_str(), link, sizeof link);
    if (length != sizeof kLink - 1 || std::memcmp(link, kLink, sizeof kLink - 1) != 0) return;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0) found.candidates.push_back({pid, fd});
  });
  if (error == EACCES || error == EPERM) found.denied.push_back(pid);
}

}  // namespace

Found find_segments(const std::vector<int>& pids) {
  Found found;
  for (const int pid : pids) look_into(pid, found);
  if (pids.empty()) (void)each_number("/proc", [&](int pid) { look_into(pid, found); });
  return found;
}

std::vector<int> threads_of(int pid) {
  std::vector<int> threads;
  (void)each_number("/proc/" + std::to_string(pid) + "/task", [&](int thread) { threads.push_back(thread); });
  std::ranges::sort(threads, {}, [&](int thread) { return std::pair(thread != pid, thread); });
  return threads;
}

std::string command_of(int pid) {
  std::string text = whole_file("/proc/" + std::to_string(pid) + "/cmdline");
  while (!text.empty() && text.back() == 0) text.pop_back();
  for (char& c : text) {
    if (c == 0) c = ' ';
  }
  return text;
}

}  // namespace stretto::top
