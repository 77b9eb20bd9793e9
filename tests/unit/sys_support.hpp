// SPDX-License-Identifier: BSD-3-Clause
// Helpers for the tests of sys. They count descriptors, make files below a root of their own, and
// run a piece of a test in a child process.
#pragma once
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

inline int open_descriptors() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory)) ++count;
  closedir(directory);
  return count;
}

// A directory that readers of the system's files take for /. It vanishes with its owner.
class PretendedRoot {
 public:
  explicit PretendedRoot(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("stretto-" + name + "-" + std::to_string(getpid()))) {}
  ~PretendedRoot() { std::filesystem::remove_all(path_); }
  PretendedRoot(const PretendedRoot&) = delete;
  PretendedRoot& operator=(const PretendedRoot&) = delete;
  [[nodiscard]] const char* path() const { return path_.c_str(); }
  void put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

 private:
  std::filesystem::path path_;
};

// Runs `body` in a forked child. Returns the child's exit code, which is `body`'s return value, or
// 200 + signal if the child was killed.
template <typename Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}
