// SPDX-License-Identifier: BSD-3-Clause
#include "keeper/segments.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace stretto::keeper {

std::set<std::string> segments_of(int pid) {
  std::set<std::string> found;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find(" /dev/shm/");
    if (at != std::string::npos && !line.ends_with(" (deleted)")) found.insert(line.substr(at + 1));
  }
  return found;
}

void remove_unused(std::set<std::string> segments) {
  DIR* const processes = segments.empty() ? nullptr : opendir("/proc");
  if (processes == nullptr) return;
  while (const dirent* entry = readdir(processes)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    for (const std::string& used : segments_of(pid)) segments.erase(used);
  }
  closedir(processes);
  for (const std::string& segment : segments) {
    struct stat status{};
    if (lstat(segment.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid())
      (void)unlink(segment.c_str());
  }
}

}  // namespace stretto::keeper
