// SPDX-License-Identifier: BSD-3-Clause
// Finds the nearest network cards, and the interfaces that lead out of the host, in the kernel's
// own description (/sys/class). A card is a device that says which processors are local to it.
// Bridges, tunnels and most virtual cards do not say so: they are equally near to all processors
// and do not count as cards.
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "sys/cpu_set.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

constexpr int kMostPorts = 2;

// Calls `each(name)` for every entry of a folder.
template <class Each>
void each_entry(const char* path, Each each) {
  const int fd = detail::retried([&] { return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (fd < 0) return;
  alignas(dirent64) char buffer[1024];
  for (long bytes; (bytes = syscall(SYS_getdents64, fd, buffer, sizeof buffer)) > 0;) {
    for (long at = 0; at < bytes;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
      if (entry->d_name[0] != '.') each(entry->d_name);
      at += entry->d_reclen;
    }
  }
  close(fd);
}

class Finder {
 public:
  Finder(const char* root, const std::uint64_t* mask, std::size_t words) : root_(root), cpus_(mask, words) {}

  NicPlace find() {
    if (!memory_ || cpus_.count() == 0) return {};
    list("infiniband", [&](const char* name) { return infiniband_rate(name); });
    if (count_ == 0) list("net", [&](const char* name) { return interface_rate(name); });
    long fastest = 0;
    for (int i = 0; i < count_; ++i) fastest = nics_[i].rate > fastest ? nics_[i].rate : fastest;
    NicPlace place;
    for (int i = 0; i < count_; ++i) {
      const Nic& nic = nics_[i];
      if (nic.rate != fastest || nic.distance > place.distance) continue;
      place.nearest = (nic.distance < place.distance ? 0 : place.nearest) | std::uint32_t{1} << i;
      place.distance = nic.distance;
    }
    return place;
  }

 private:
  struct Nic {
    char name[64];
    long rate;
    std::uint32_t distance;
  };
  static constexpr long kUnused = -1;

  // Lists the cards of a class, sorted by name. `rate_of(name)` is in any unit; 0: unknown.
  template <class Rate>
  void list(const char* kind, Rate rate_of) {
    char path[kPathBytes];
    std::snprintf(path, sizeof path, "%s/sys/class/%s", root_, kind);
    each_entry(path, [&](const char* name) {
      Nic nic{};
      if (count_ == kMostNics || std::strlen(name) >= sizeof nic.name) return;
      std::memcpy(nic.name, name, std::strlen(name));
      if ((nic.rate = rate_of(name)) == kUnused || !read(kind, name, "device/local_cpulist")) return;
      const int held = cpus_.held_by(text_);
      nic.distance = held == cpus_.count() ? 0 : held > 0 ? 1 : 2;
      int at = count_++;
      for (; at > 0 && std::strcmp(nics_[at - 1].name, name) > 0; --at) nics_[at] = nics_[at - 1];
      nics_[at] = nic;
    });
  }

  long interface_rate(const char* name) {
    if (!read("net", name, "operstate") || std::strncmp(text_, "up", 2) != 0) return kUnused;
    const long megabits = read("net", name, "speed") ? std::strtol(text_, nullptr, 10) : 0;
    return megabits > 0 ? megabits : 0;
  }
  // The rate of its fastest port.
  long infiniband_rate(const char* name) {
    long fastest = kUnused;
    for (int port = 1; port <= kMostPorts; ++port) {
      char file[32];
      std::snprintf(file, sizeof file, "ports/%d/state", port);
      if (!read("infiniband", name, file) || std::strstr(text_, "ACTIVE") == nullptr) continue;
      std::snprintf(file, sizeof file, "ports/%d/rate", port);
      const long gigabits = read("infiniband", name, file) ? std::strtol(text_, nullptr, 10) : 0;
      fastest = gigabits > fastest ? gigabits : fastest;
    }
    return fastest;
  }
  bool read(const char* kind, const char* name, const char* file) {
    char path[kPathBytes];
    std::snprintf(path, sizeof path, "%s/sys/class/%s/%s/%s", root_, kind, name, file);
    std::size_t bytes = 0;
    return detail::read_small_file(path, text_, sizeof text_, &bytes) == 0;
  }

  static constexpr std::size_t kPathBytes = 512;
  struct Memory {
    Nic nics[kMostNics];
    char text[4096];
  };
  const detail::OnHeap<Memory> memory_;
  Nic (&nics_)[kMostNics] = memory_->nics;  // not touched without memory
  char (&text_)[4096] = memory_->text;
  const char* root_;
  const detail::CpuSet cpus_;
  int count_ = 0;
};

}  // namespace

bool rdma_card_is_here() {
  const detail::ErrnoKept kept;
  bool any = false;
  const auto note = [&](const char*) { any = true; };
  each_entry("/sys/class/infiniband", note);
  each_entry("/sys/class/cxi", note);
  return any;
}

bool is_internal_bridge(const char* root, const char* interface) {
  const detail::ErrnoKept kept;
  char path[512], text[512];
  const auto exists = [&](const char* name, const char* file) {
    std::snprintf(path, sizeof path, "%s/sys/class/net/%s/%s", root, name, file);
    return access(path, F_OK) == 0;
  };
  if (!exists(interface, "bridge")) return false;
  std::snprintf(path, sizeof path, "%s/sys/class/net/%s/brif", root, interface);
  bool leads_out = false;
  each_entry(path, [&](const char* port) {
    std::size_t bytes = 0;
    // A card is a device. What is made of cards (bonds, virtual LANs) has a device type. Ends of
    // pairs, and taps, have neither.
    if (exists(port, "device")) leads_out = true;
    std::snprintf(path, sizeof path, "%s/sys/class/net/%s/uevent", root, port);
    if (detail::read_small_file(path, text, sizeof text, &bytes) == 0 && std::strstr(text, "DEVTYPE=") != nullptr)
      leads_out = true;
  });
  return !leads_out;
}

NicPlace nic_place(const char* root, const std::uint64_t* mask, std::size_t words) {
  const detail::ErrnoKept kept;
  return Finder(root, mask, words).find();
}

NicPlace nic_place() {
  const detail::ErrnoKept kept;
  if (fault::strike("nic_place")) return {};
  const detail::OnHeap<detail::Mask> mask;
  return mask ? nic_place("", mask->words, detail::own_processors(*mask)) : NicPlace{};
}

}  // namespace stretto::sys
