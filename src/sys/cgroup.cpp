// SPDX-License-Identifier: BSD-3-Clause
// How many processors' worth of time the control groups grant to this process.
//
// /proc/self/cgroup names the process's group in every hierarchy. /proc/self/mountinfo says where a
// hierarchy, or the part of it that a container sees, is mounted. A limit may be set for the group
// itself or for any group above it. The tightest limit holds.
//   v1  cpu.cfs_quota_us (-1: none) and cpu.cfs_period_us, where the cpu controller is
//   v2  cpu.max: "quota period", quota may be "max"
// A machine may use both, with the cpu controller in one of them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::OnHeap;
using detail::retried;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr std::size_t kPathBytes = 1024;  // longer names are ignored

// Reads a file line by line. Lines longer than the buffer are cut. What the callers need is at the
// beginning of a line.
class Lines {
 public:
  explicit Lines(const char* path) : fd_(memory_ ? retried([&] { return open(path, O_RDONLY | O_CLOEXEC); }) : -1) {}
  ~Lines() {
    if (fd_ >= 0) close(fd_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // The next line, terminated and without its newline; null at the end.
  char* next() {
    if (fd_ < 0) return nullptr;
    bool cut = false;
    for (;;) {
      char* line = text_ + begin_;
      if (auto* newline = static_cast<char*>(std::memchr(line, '\n', end_ - begin_))) {
        *newline = 0;
        begin_ = static_cast<std::size_t>(newline + 1 - text_);
        if (!cut) return line;
        return kept_;
      }
      if (end_ - begin_ == kCapacity) {  // no newline in a full buffer: keeps the beginning, skips the rest
        if (!cut) std::memcpy(kept_, line, kPathBytes - 1);
        cut = true;
        begin_ = end_ = 0;
      }
      if (!refill()) return cut ? kept_ : last();
    }
  }

 private:
  static constexpr std::size_t kCapacity = 4 * kPathBytes;

  // The text after the last newline, null if there is none.
  char* last() {
    if (begin_ == end_) return nullptr;
    char* line = text_ + begin_;
    text_[end_] = 0;
    begin_ = end_;
    return line;
  }

  bool refill() {
    std::memmove(text_, text_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    const ssize_t got = retried([&] { return read(fd_, text_ + end_, kCapacity - end_); });
    if (got <= 0) return false;
    end_ += static_cast<std::size_t>(got);
    return true;
  }

  struct Memory {
    char text[kCapacity + 1];
    char kept[kPathBytes] = {};
  };
  const OnHeap<Memory> memory_;
  char* const text_ = memory_ ? memory_->text : nullptr;
  char* const kept_ = memory_ ? memory_->kept : nullptr;
  int fd_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// Whether `name` is an entry of the comma-separated `list`.
bool listed(const char* list, const char* name) {
  const std::size_t length = std::strlen(name);
  for (const char* at = list; at; at = std::strchr(at, ',')) {
    if (*at == ',') ++at;
    if (std::strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == 0)) return true;
  }
  return false;
}

// mountinfo writes blank, tab, newline and backslash as \ooo.
void unescape(char* path) {
  char* to = path;
  for (const char* from = path; *from; ++to) {
    const auto octal = [&](int i) { return from[i] >= '0' && from[i] <= '7'; };
    if (from[0] == '\\' && octal(1) && octal(2) && octal(3)) {
      *to = static_cast<char>((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
      from += 4;
    } else {
      *to = *from++;
    }
  }
  *to = 0;
}

struct Hierarchy {
  bool known = false;
  char group[kPathBytes];  // of this process, as /proc/self/cgroup names it
};

struct Hierarchies {
  Hierarchy v1;
  Hierarchy v2;
};

void set_group(Hierarchy& hierarchy, const char* group) {
  const std::size_t length = std::strlen(group);
  if (length >= kPathBytes) return;
  std::memcpy(hierarchy.group, group, length + 1);
  hierarchy.known = true;
}

// Lines are number:controllers:group. The unified hierarchy has number 0 and no controllers.
void read_groups(const char* root, Hierarchies& found) {
  char path[kPathBytes];
  std::snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  Lines lines(path);
  while (char* line = lines.next()) {
    char* controllers = std::strchr(line, ':');
    char* group = controllers ? std::strchr(controllers + 1, ':') : nullptr;
    if (!group) continue;
    *controllers++ = 0;
    *group++ = 0;
    if (std::strcmp(line, "0") == 0 && *controllers == 0) {
      set_group(found.v2, group);
    } else if (listed(controllers, "cpu")) {
      set_group(found.v1, group);
    }
  }
}

struct LongPath {
  char text[3 * kPathBytes];
};

struct Mount {
  const char* root;  // the group that the mount point shows
  const char* point;
  bool v2;
};

// Reads a line: id parent major:minor root point options [optional fields] - type source
// super-options
bool parse_mount(char* line, Mount* mount) {
  char* separator = std::strstr(line, " - ");
  if (!separator) return false;
  *separator = 0;
  char* field[5];
  char* save = nullptr;
  for (int i = 0; i < 5; ++i) {
    field[i] = strtok_r(i == 0 ? line : nullptr, " ", &save);
    if (!field[i]) return false;
  }
  const char* type = strtok_r(separator + 3, " ", &save);
  const char* source = strtok_r(nullptr, " ", &save);
  const char* options = strtok_r(nullptr, " ", &save);
  if (!type || !source) return false;
  mount->v2 = std::strcmp(type, "cgroup2") == 0;
  if (!mount->v2 && !(std::strcmp(type, "cgroup") == 0 && options && listed(options, "cpu"))) return false;
  unescape(field[3]);
  unescape(field[4]);
  mount->root = field[3];
  mount->point = field[4];
  return true;
}

// The group's path below the mount, "" for the mount point itself. null if the mount does not show
// the group.
const char* below_mount(const char* group, const char* mount_root) {
  if (std::strstr(group, "/..")) return nullptr;  // outside this process's cgroup namespace
  if (std::strcmp(mount_root, "/") == 0) return std::strcmp(group, "/") == 0 ? "" : group;
  const std::size_t length = std::strlen(mount_root);
  if (std::strncmp(group, mount_root, length) != 0) return nullptr;
  return group[length] == 0 || group[length] == '/' ? group + length : nullptr;
}

bool read_file_in(const char* directory, const char* file, char* text, std::size_t capacity) {
  const OnHeap<LongPath> path;
  if (!path) return false;
  const int length = std::snprintf(path->text, sizeof path->text, "%s/%s", directory, file);
  std::size_t bytes = 0;
  return length > 0 && static_cast<std::size_t>(length) < sizeof path->text &&
         detail::read_small_file(path->text, text, capacity, &bytes) == 0;
}

double quota_v1(const char* directory) {
  char quota[64];
  char period[64];
  if (!read_file_in(directory, "cpu.cfs_quota_us", quota, sizeof quota)) return kUnlimited;
  if (!read_file_in(directory, "cpu.cfs_period_us", period, sizeof period)) return kUnlimited;
  const long long granted_us = std::strtoll(quota, nullptr, 10);
  const long long period_us = std::strtoll(period, nullptr, 10);
  return granted_us > 0 && period_us > 0 ? static_cast<double>(granted_us) / static_cast<double>(period_us)
                                         : kUnlimited;
}

double quota_v2(const char* directory) {
  char text[64];
  if (!read_file_in(directory, "cpu.max", text, sizeof text)) return kUnlimited;
  char* rest = nullptr;
  const long long granted_us = std::strtoll(text, &rest, 10);  // "max" has no digits and gives 0
  const long long period_us = std::strtoll(rest, nullptr, 10);
  return granted_us > 0 && period_us > 0 ? static_cast<double>(granted_us) / static_cast<double>(period_us)
                                         : kUnlimited;
}

// The tightest limit from the group below the mount point up to the mount point. Groups that no
// longer exist or are not shown have no files and set no limit.
double tightest(const char* root, const Mount& mount, const char* below) {
  const OnHeap<LongPath> path;
  if (!path) return kUnlimited;
  char (&directory)[sizeof(LongPath)] = path->text;
  const int top = std::snprintf(directory, sizeof directory, "%s%s", root, mount.point);
  const int length = std::snprintf(directory, sizeof directory, "%s%s%s", root, mount.point, below);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof directory) return kUnlimited;
  double quota = kUnlimited;
  for (;;) {
    quota = std::min(quota, mount.v2 ? quota_v2(directory) : quota_v1(directory));
    char* slash = std::strrchr(directory, '/');
    if (!slash || slash < directory + top) return quota;
    *slash = 0;
  }
}

// The limits of one hierarchy, which may be mounted more than once. A mount may not show this
// process's group (a container with a foreign /proc/self/cgroup). It counts only if no other mount
// shows the group. Its top is then the best guess at the limit.
struct Verdict {
  double shown = kUnlimited;
  double guessed = kUnlimited;
  bool any_shown = false;

  void add(const char* root, const Mount& mount, const Hierarchy& hierarchy) {
    if (!hierarchy.known) return;
    if (const char* below = below_mount(hierarchy.group, mount.root)) {
      shown = std::min(shown, tightest(root, mount, below));
      any_shown = true;
    } else {
      guessed = std::min(guessed, tightest(root, mount, ""));
    }
  }
  [[nodiscard]] double quota() const { return any_shown ? shown : guessed; }
};

}  // namespace

double cgroup_quota(const char* root) {
  const ErrnoKept kept;
  if (fault::strike("cgroup_quota")) return kUnlimited;
  const OnHeap<Hierarchies> found;
  if (!found) return kUnlimited;
  Hierarchies& groups = *found;
  read_groups(root, groups);
  char path[kPathBytes];
  std::snprintf(path, sizeof path, "%s/proc/self/mountinfo", root);
  Lines lines(path);
  Verdict v1;
  Verdict v2;
  while (char* line = lines.next()) {
    Mount mount;
    if (!parse_mount(line, &mount)) continue;
    (mount.v2 ? v2 : v1).add(root, mount, mount.v2 ? groups.v2 : groups.v1);
  }
  return std::min(v1.quota(), v2.quota());
}

}  // namespace stretto::sys
