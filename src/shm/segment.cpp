// SPDX-License-Identifier: BSD-3-Clause
#include "shm/segment.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sys/sys.hpp"

namespace stretto::shm {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kGrowBytes = 64 << 10;  // steps in which observers and core dumps learn of the blocks area
// Blocks get so many addresses at a time, but of what is left at most this part. So blocks of many
// communicators lie together, and a peer that looks at them needs few page tables.
constexpr std::size_t kMostGrowBytes = 512 << 10, kGrowPart = 16;
// Peers map so much of the blocks area, and so many times as much whenever that is too little. So
// all their mappings of a segment together are not much longer than the last one. Each mapping has
// page tables of its own, so the first one is long, unless address space is limited.
constexpr std::size_t kLeastBlocksBytes = 1 << 20, kFirstBlocksBytes = 32 << 20;
constexpr std::size_t kExtentFactor = 4;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }
constexpr std::uint64_t blocks_offset(std::size_t lanes_bytes) {
  return round_up(Segment::kLanesOffset + lanes_bytes, kPageBytes);
}

// Under ThreadSanitizer ranks are threads and must share one mapping, because it takes an address
// for an identity. There, peers find a segment in this list and do not map it again.
#if defined(__SANITIZE_THREAD__)
constexpr bool kOneMapping = true;
#else
constexpr bool kOneMapping = false;
#endif
constexpr std::size_t kMostSegments = 256;
std::atomic<char*> own_segments[kMostSegments];

void announce(char* base) {
  for (auto& place : own_segments) {
    char* expected = nullptr;
    if (place.compare_exchange_strong(expected, base)) return;
  }
}

void withdraw(char* base) {
  for (auto& place : own_segments) {
    char* expected = base;
    if (place.compare_exchange_strong(expected, nullptr)) return;
  }
}

const char* find_own(std::uint64_t identity) {
  for (auto& place : own_segments) {
    char* base = place.load();
    if (base && reinterpret_cast<SegmentHeader*>(base)->identity == identity) return base;
  }
  return nullptr;
}

// Sizes of blocks, in lines. Each doubling has kStepsPerDoubling sizes, where these are whole
// lines. So at most one part in kStepsPerDoubling of a block is not used.
struct SizeClass {
  unsigned index = 0;
  std::size_t bytes = kLineBytes;

  explicit SizeClass(std::size_t wanted) {
    constexpr std::size_t kSteps = Segment::kStepsPerDoubling;
    if (wanted <= kLineBytes) return;
    const std::size_t lines = (wanted + kLineBytes - 1) / kLineBytes;
    const auto width = static_cast<unsigned>(std::bit_width(lines - 1));
    const std::size_t half = std::size_t{1} << (width - 1);  // half < lines <= 2 * half
    const std::size_t step = half < kSteps ? 1 : half / kSteps;
    const std::size_t rounded = round_up(lines, step);
    index = static_cast<unsigned>(width * kSteps + (rounded - half) / step - 1);
    bytes = rounded * kLineBytes;
  }
};

}  // namespace

std::size_t Segment::least_extent(std::size_t lanes_bytes) { return blocks_offset(lanes_bytes) + kLeastBlocksBytes; }

std::size_t Segment::extent(std::size_t room) const {
  std::uint64_t length = first_blocks_;
  while (blocks_ + length < next_ + room) length *= kExtentFactor;
  return blocks_ + length < bytes_ ? blocks_ + length : bytes_;
}

Status Segment::create(std::size_t bytes, std::size_t lanes_bytes) {
  const std::uint64_t blocks = blocks_offset(lanes_bytes);
  if (blocks >= bytes) return Status::invalid;
  int fd = -1;
  if (sys::memfd_open("stretto", bytes, &fd) != 0) return Status::unavailable;
  void* address = nullptr;
  std::uint64_t identity = 0;
  if (sys::memfd_reserve(fd, 0, round_up(kLanesOffset, kPageBytes)) != 0 ||
      sys::map_shared(fd, bytes, sys::Access::read_write, &address) != 0) {
    sys::close_descriptor(fd);
    return Status::no_memory;
  }
  if (sys::random_bytes(&identity, sizeof identity) != 0) {
    sys::unmap(address, bytes);
    sys::close_descriptor(fd);
    return Status::unavailable;
  }
  const bool limited = sys::address_space().limit != ~std::uint64_t{0};
  first_blocks_ = limited ? kLeastBlocksBytes : kFirstBlocksBytes;
  base_ = static_cast<char*>(address);
  bytes_ = bytes;
  fd_ = fd;
  file_ = sys::file_id(fd);
  identity_ = identity;
  blocks_ = next_ = reached_ = block_ = blocks_end_ = blocks;
  sys::dump_pages(base_ + kLanesOffset, bytes_ - kLanesOffset, false);
  auto* header = reinterpret_cast<SegmentHeader*>(base_);
  header->identity = identity;
  header->layout_version = kLayoutVersion;
  header->pid = static_cast<std::uint32_t>(sys::process_id());
  header->magic = kSegmentMagic;
  ledger().activity.blocks_end.store_release(reached_);
  if constexpr (kOneMapping) announce(base_);
  return Status::ok;
}

void Segment::destroy() {
  if (!base_) return;
  if constexpr (kOneMapping) withdraw(base_);
  sys::unmap(base_, bytes_);
  if (sys::file_id(fd_) == file_) sys::close_descriptor(fd_);
  *this = Segment{};
}

int Segment::reserve(std::uint64_t offset, std::size_t bytes) {
  return sys::file_id(fd_) == file_ ? sys::memfd_reserve(fd_, offset, bytes) : EBADF;
}

std::uint64_t Segment::lanes_allocate(std::size_t bytes) {
  const std::size_t pages = round_up(bytes, kPageBytes);
  const std::uint64_t taken = take(pages + kPageBytes);  // no page is shared with a block
  if (taken == 0) return 0;
  const std::uint64_t offset = round_up(taken, kPageBytes);
  sys::dump_pages(base_ + offset, pages, false);
  return offset;
}

Status Segment::reserve_lane(std::uint64_t offset, std::size_t bytes) {
  if (reserve(offset, bytes) != 0) return Status::no_memory;
  sys::enter_pages(base_ + offset, bytes);
  return Status::ok;
}

bool Segment::back(std::uint64_t offset, std::size_t bytes) {
  const std::uint64_t first = (offset - blocks_) / kPageBytes, last = (offset - blocks_ + bytes - 1) / kPageBytes;
  if (last / 64 >= backed_.size() && !backed_.resize(last / 64 + 1, 0)) return false;
  const auto bit = [](std::uint64_t page) { return std::uint64_t{1} << page % 64; };
  bool all = true;
  for (std::uint64_t page = first; page <= last; ++page) all = all && (backed_[page / 64] & bit(page)) != 0;
  if (all) return true;
  if (reserve(blocks_ + first * kPageBytes, (last + 1 - first) * kPageBytes) != 0) return false;
  for (std::uint64_t page = first; page <= last; ++page) backed_[page / 64] |= bit(page);
  return true;
}

std::uint64_t Segment::take(std::size_t bytes) {
  const std::uint64_t offset = next_, end = offset + bytes;
  if (end > bytes_) return 0;
  next_ = end;
  if (end <= reached_) return offset;
  std::uint64_t target = round_up(end, kGrowBytes);
  if (target > bytes_) target = bytes_;
  sys::dump_pages(base_ + reached_, target - reached_, true);
  reached_ = target;
  ledger().activity.blocks_end.store_release(reached_);
  return offset;
}

std::uint64_t Segment::grow(std::size_t bytes) {
  if (blocks_end_ - block_ < bytes) {
    // What is left goes on in the new addresses if these are next to it.
    const bool next_to = blocks_end_ == next_;
    const std::size_t missing = next_to ? bytes - (blocks_end_ - block_) : bytes;
    std::size_t more = round_up(missing, std::clamp((bytes_ - next_) / kGrowPart, kGrowBytes, kMostGrowBytes));
    std::uint64_t offset = take(more);
    if (offset == 0) offset = take(more = missing);
    if (offset == 0) return 0;
    if (!next_to) block_ = offset;
    blocks_end_ = offset + more;
  }
  if (!back(block_, bytes)) return 0;
  return std::exchange(block_, block_ + bytes);
}

std::uint64_t Segment::block_allocate(std::size_t bytes) {
  const SizeClass size(bytes);
  std::uint64_t& first = free_[size.index];
  const std::uint64_t offset = first;
  if (offset == 0) return grow(size.bytes);
  std::memcpy(&first, base_ + offset, sizeof first);
  return offset;
}

std::uint64_t Segment::place_allocate(std::size_t bytes) {
  for (Place& place : places_) {
    if (place.bytes != bytes) continue;
    const std::uint64_t offset = place.offset;
    place = places_.back();
    places_.pop();
    return offset;
  }
  return take(round_up(bytes, kLineBytes));
}

// Without memory for a few words the addresses are lost.
void Segment::place_release(std::uint64_t offset, std::size_t bytes) { (void)places_.push({offset, bytes}); }

void Segment::block_release(std::uint64_t offset, std::size_t bytes) {
  // The first word of a block is the sequence of its first board record. Peers are done with the
  // block (see lines.hpp, generation), so the word may serve the list. A peer that looks all the
  // same sees that its generation is over.
  std::uint64_t& first = free_[SizeClass(bytes).index];
  // Pairs with peek.
  reinterpret_cast<Atomic<std::uint64_t>*>(base_ + offset)->store_release(first);
  first = offset;
}

Status attachment_map(int fd, std::size_t bytes, std::uint64_t identity, Attachment* attachment) {
  if constexpr (kOneMapping) {
    if (const char* base = find_own(identity)) {
      sys::close_descriptor(fd);
      *attachment = {identity, base, 0};
      return Status::ok;
    }
  }
  void* address = nullptr;
  SegmentHeader header{};
  const bool fits = sys::memory_file_bytes(fd) >= bytes && sys::file_read(fd, 0, &header, sizeof header) == 0;
  const int error = fits ? sys::map_shared(fd, bytes, sys::Access::read_only, &address) : 0;
  sys::close_descriptor(fd);
  if (error == ENOMEM) return Status::no_memory;
  if (!fits || error != 0) return Status::unavailable;
  if (header.magic != kSegmentMagic || header.identity != identity || header.layout_version != kLayoutVersion) {
    sys::unmap(address, bytes);
    return Status::unavailable;
  }
  *attachment = {identity, static_cast<const char*>(address), bytes};
  sys::dump_pages(address, bytes, false);
  return Status::ok;
}

Status attachment_extend(const Attachment& attachment, std::size_t bytes, Attachment* longer) {
  void* address = nullptr;
  const int error = sys::map_more(const_cast<char*>(attachment.base), bytes, &address);
  if (error != 0) return error == ENOMEM ? Status::no_memory : Status::unavailable;
  *longer = attachment;
  longer->base = static_cast<const char*>(address);
  longer->bytes = bytes;
  longer->used = false;
  return Status::ok;
}

void attachment_unmap(Attachment* attachment) {
  if (attachment->bytes != 0) sys::unmap(const_cast<char*>(attachment->base), attachment->bytes);
  *attachment = Attachment{};
}

}  // namespace stretto::shm
