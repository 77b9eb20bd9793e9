// SPDX-License-Identifier: BSD-3-Clause
#include "overlap/spares.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "sys/call_layouts.hpp"

namespace stretto::overlap {
namespace {

// Buffers of similar sizes share a spare: sizes are eighths of powers of two.
std::size_t rounded(std::size_t bytes) {
  std::size_t step = 64 << 10;
  while (step * 16 <= bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

std::size_t unit_of(const sys::Faults& faults) { return std::max(faults.huge_bytes, faults.page_bytes); }

void forget_states(Spares::Spare* spare) {
  std::free(spare->away);
  std::free(spare->units);
  spare->away = nullptr;
  spare->units = nullptr;
  spare->stale = spare->has_tables = false;
}

// The part of `spare` with the size of `like` that lies as `like` does in a unit.
sys::Pages lying_as(sys::Pages spare, sys::Pages like, std::size_t unit) {
  const auto number = [](const char* at) { return reinterpret_cast<std::uintptr_t>(at); };
  const std::size_t offset = (number(like.at) - number(spare.at)) % unit;
  return {spare.at + offset, like.bytes};
}

}  // namespace

// One that fits, else one without memory, else any: it is replaced. Another thread that looks at a
// spare holds it for a moment, so a caller may be refused with spares left.
Spares::Spare* Spares::find(std::size_t bytes) {
  const auto fits = [bytes](const Spare& spare) {
    return !spare.stale && spare.pages.bytes >= bytes && spare.pages.bytes / 4 <= bytes;
  };
  const auto is_empty = [](const Spare& spare) { return spare.pages.bytes == 0; };
  const auto take_first = [this](auto is_right) -> Spare* {
    for (Spare& spare : spares_) {
      if (spare.used.exchange(true, std::memory_order_acquire)) continue;
      if (is_right(spare)) return &spare;
      spare.used.store(false, std::memory_order_release);
    }
    return nullptr;
  };
  Spare* found = take_first(fits);
  if (found == nullptr) found = take_first(is_empty);
  if (found == nullptr) found = take_first([](const Spare&) { return true; });
  return found;
}

int Spares::map(const sys::Faults& faults, Spare* spare, std::size_t bytes, std::size_t limit) {
  unmap(faults, spare);
  if (mapped_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit) {
    mapped_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return ENOMEM;
  }
  const std::size_t count = bytes / faults.page_bytes, units = bytes / unit_of(faults) + 2;
  spare->away = static_cast<std::atomic<std::uint8_t>*>(std::calloc(count, sizeof *spare->away));
  spare->units = static_cast<HugeUnit*>(std::calloc(units, sizeof *spare->units));
  const bool fits = spare->away != nullptr && spare->units != nullptr;
  const int error = fits ? sys::spare_map(faults, bytes, nullptr, &spare->pages) : ENOMEM;
  if (error == 0) return 0;
  forget_states(spare);
  mapped_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return error;
}

void Spares::unmap(const sys::Faults& faults, Spare* spare) {
  while (readers != 0) sys::yield_through();
  mapped_bytes_.fetch_sub(spare->pages.bytes, std::memory_order_relaxed);
  sys::spare_unmap(faults, &spare->pages);
  forget_states(spare);
}

int Spares::take(const sys::Faults& faults, sys::Pages like, bool for_huge, std::size_t limit, Spare** spare,
                 sys::Pages* part) {
  const std::size_t unit = unit_of(faults);
  const bool by_unit = like.bytes >= unit;
  const std::size_t needed = rounded(like.bytes) + (by_unit ? unit : 0);
  Spare* found = find(needed);
  if (found == nullptr) return ENOMEM;
  const bool fits = found->pages.bytes >= needed && found->pages.bytes / 4 <= needed;
  if (found->stale || !fits || (for_huge && found->has_tables)) {
    int error = map(faults, found, needed, limit);
    if (error == ENOMEM) {  // those that nobody uses make room
      for (Spare& other : spares_) {
        if (other.used.exchange(true, std::memory_order_acquire)) continue;
        unmap(faults, &other);
        other.used.store(false, std::memory_order_release);
      }
      error = map(faults, found, needed, limit);
    }
    if (error != 0) {
      found->used.store(false, std::memory_order_release);
      return error;
    }
  }
  *spare = found;
  *part = lying_as(found->pages, like, by_unit ? unit : faults.page_bytes);
  return 0;
}

void Spares::give(Spare* spare, bool reusable) {
  spare->stale = !reusable;
  spare->used.store(false, std::memory_order_release);
}

void Spares::unmap_all(const sys::Faults& faults) {
  for (Spare& spare : spares_) {
    mapped_bytes_.fetch_sub(spare.pages.bytes, std::memory_order_relaxed);
    sys::spare_unmap(faults, &spare.pages);
  }
}

void Spares::free_states() {
  for (Spare& spare : spares_) {
    forget_states(&spare);
    spare.used.store(false, std::memory_order_release);
  }
}

}  // namespace stretto::overlap
