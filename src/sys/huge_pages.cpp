// SPDX-License-Identifier: BSD-3-Clause
// Where transparent huge pages are, and making them again.
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>

#include "sys/detail.hpp"
#include "sys/fault.hpp"
#include "sys/faults.hpp"

namespace stretto::sys {
namespace {

using detail::ErrnoKept;
using detail::retried;

// Newer than some kernel headers that Stretto is built with.
constexpr int kCollapse = 25;  // MADV_COLLAPSE, Linux 6.1

// PAGEMAP_SCAN, Linux 6.7.
struct Region {
  std::uint64_t begin, end, categories;
};
struct ScanRequest {
  std::uint64_t size, flags, begin, end, walk_end, regions, region_count, most_pages;
  std::uint64_t inverted, all_of, any_of, tells;
};
constexpr unsigned long kScanRequest = _IOWR('f', 16, ScanRequest);
constexpr std::uint64_t kIsHuge = 1u << 6;

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

int huge_pages(const Faults& faults, Pages pages, std::uint8_t* units, std::size_t* count) {
  const ErrnoKept kept;
  constexpr int kRegions = 32;
  *count = 0;
  if (faults.pagemap < 0) return ENOTSUP;
  if (const int error = fault::strike("huge_pages")) return error;
  const std::uint64_t end = number(pages.at) + pages.bytes, first = number(pages.at) / faults.huge_bytes;
  for (std::uint64_t at = number(pages.at); at < end;) {
    Region found[kRegions];
    ScanRequest request{};
    request.size = sizeof request;
    request.begin = at;
    request.end = end;
    request.regions = number(found);
    request.region_count = units != nullptr ? kRegions : 1;
    request.most_pages = units != nullptr ? 0 : 1;
    request.all_of = request.tells = kIsHuge;
    const int regions = retried([&] { return ioctl(faults.pagemap, kScanRequest, &request); });
    if (regions < 0) return errno;
    if (units == nullptr) {
      *count = regions != 0 ? 1 : 0;
      return 0;
    }
    for (int i = 0; i < regions; ++i) {
      const std::uint64_t last = (found[i].end - 1) / faults.huge_bytes;
      for (std::uint64_t unit = found[i].begin / faults.huge_bytes; unit <= last; ++unit) {
        *count += units[unit - first] == 0 ? 1 : 0;
        units[unit - first] = 1;
      }
    }
    at = std::max(request.walk_end, at + faults.page_bytes);
  }
  return 0;
}

int huge_page_make(const Faults& faults, char* unit) {
  const ErrnoKept kept;
  if (const int error = fault::strike("huge_page_make")) return error;
  return madvise(unit, faults.huge_bytes, kCollapse) == 0 ? 0 : errno;
}

}  // namespace stretto::sys
