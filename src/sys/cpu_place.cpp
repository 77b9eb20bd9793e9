// SPDX-License-Identifier: BSD-3-Clause
// Finds where the processors of this process lie in the machine. It reads the kernel's own
// description (/sys/devices/system), as hwloc does, in a few small files. A domain counts only if
// it holds the whole set.
#include <cstdio>

#include "sys/cpu_set.hpp"
#include "sys/fault.hpp"
#include "sys/sys.hpp"

namespace stretto::sys {
namespace {

constexpr int kMostNodes = 1024;
constexpr int kMostCaches = 16;

class Finder {
 public:
  Finder(const char* root, const std::uint64_t* mask, std::size_t words)
      : root_(root), cpus_(mask, words), first_(memory_ ? cpus_.first() : -1) {}

  CpuPlace find() {
    CpuPlace place;
    if (first_ < 0) return place;
    place.in(CpuDomain::core) = whole("cpu/cpu%d/topology/core_cpus_list", first_);
    if (place.in(CpuDomain::core) < 0)
      place.in(CpuDomain::core) = whole("cpu/cpu%d/topology/thread_siblings_list", first_);
    place.in(CpuDomain::package) = whole("cpu/cpu%d/topology/package_cpus_list", first_);
    if (place.in(CpuDomain::package) < 0)
      place.in(CpuDomain::package) = whole("cpu/cpu%d/topology/core_siblings_list", first_);
    each_cache([&](long level, int i) {
      if (level == 2) place.in(CpuDomain::l2) = whole("cpu/cpu%d/cache/index%d/shared_cpu_list", first_, i);
      if (level == 3) place.in(CpuDomain::l3) = whole("cpu/cpu%d/cache/index%d/shared_cpu_list", first_, i);
    });
    const int last_node = read("node/online") ? last_of(text_) : -1;
    for (int node = 0; node <= last_node && node < kMostNodes && place.in(CpuDomain::numa) < 0; ++node) {
      if (whole("node/node%d/cpulist", node) >= 0) place.in(CpuDomain::numa) = node;
    }
    return place;
  }

  SharedCache l3() {
    SharedCache cache;
    if (first_ < 0) return cache;
    each_cache([&](long level, int i) {
      if (level != 3 || !read("cpu/cpu%d/cache/index%d/size", first_, i)) return;
      const std::size_t kib = std::strtoul(text_, nullptr, 10);  // "32768K"
      if (!read("cpu/cpu%d/cache/index%d/shared_cpu_list", first_, i)) return;
      int processors = 0;
      detail::each_range(text_, [&](long first, long last) { processors += static_cast<int>(last - first + 1); });
      if (processors > 0) cache = {kib << 10, processors};
    });
    return cache;
  }

 private:
  // Calls `visit(level, index)` for the caches of the first processor.
  template <class Visit>
  void each_cache(Visit visit) {
    for (int i = 0; i < kMostCaches && read("cpu/cpu%d/cache/index%d/level", first_, i); ++i)
      visit(std::strtol(text_, nullptr, 10), i);
  }

  template <class... Numbers>
  bool read(const char* format, Numbers... numbers) {
    char path[kPathBytes];
    int length = std::snprintf(path, sizeof path, "%s/sys/devices/system/", root_);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return false;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    std::snprintf(path + length, sizeof path - static_cast<std::size_t>(length), format, numbers...);
#pragma GCC diagnostic pop
    std::size_t bytes = 0;
    return detail::read_small_file(path, text_, sizeof text_, &bytes) == 0;
  }

  // The first processor of the list in a file, if the list holds all processors of the set;
  // otherwise -1.
  template <class... Numbers>
  int whole(const char* format, Numbers... numbers) {
    if (!read(format, numbers...)) return -1;
    int lowest = -1;
    detail::each_range(text_, [&](long first, long) {
      if (lowest < 0) lowest = static_cast<int>(first);
    });
    return cpus_.held_by(text_) == cpus_.count() ? lowest : -1;
  }
  static int last_of(const char* list) {
    long highest = -1;
    detail::each_range(list, [&](long, long last) { highest = last; });
    return static_cast<int>(highest);
  }

  static constexpr std::size_t kPathBytes = 512;
  struct Text {
    char bytes[4096];
  };
  const detail::OnHeap<Text> memory_;
  char (&text_)[sizeof(Text)] = memory_->bytes;  // not touched without a first processor
  const char* root_;
  const detail::CpuSet cpus_;
  const int first_;
};

// Applies `find` to this process's processors. Nothing is known when `point` fails.
template <class Found>
Found find_own(const char* point, Found (Finder::*find)()) {
  const detail::ErrnoKept kept;
  if (fault::strike(point)) return {};
  const detail::OnHeap<detail::Mask> mask;
  if (!mask) return {};
  const std::size_t words = detail::own_processors(*mask);
  return (Finder("", mask->words, words).*find)();
}

}  // namespace

CpuPlace cpu_place(const char* root, const std::uint64_t* mask, std::size_t words) {
  const detail::ErrnoKept kept;
  return Finder(root, mask, words).find();
}

CpuPlace cpu_place() { return find_own("cpu_place", &Finder::find); }

SharedCache l3_cache(const char* root, const std::uint64_t* mask, std::size_t words) {
  const detail::ErrnoKept kept;
  return Finder(root, mask, words).l3();
}

SharedCache l3_cache() { return find_own("l3_cache", &Finder::l3); }

}  // namespace stretto::sys
