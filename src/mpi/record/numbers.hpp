// SPDX-License-Identifier: BSD-3-Clause
// Small numbers for handles. The least free number is given, so a loop that makes and frees the
// same objects gives them the same numbers in each turn.
#pragma once
#include <bit>
#include <cstdint>

#include "base/array.hpp"

namespace stretto::mpi {

class Numbers {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // kNone: the handle has none.
  [[nodiscard]] std::uint32_t find(std::uintptr_t handle) const {
    if (places_.empty()) return kNone;
    for (std::size_t at = home(handle);; at = next(at)) {
      if (places_[at].number == kNone) return kNone;
      if (places_[at].handle == handle) return places_[at].number;
    }
  }
  // A handle may have several: MPICH gives all sends that have ended at once the same. kNone: no
  // memory.
  std::uint32_t add(std::uintptr_t handle) {
    if (2 * (count_ + 1) > places_.size() && !grow()) return kNone;
    const std::uint32_t number = take_number();
    if (number != kNone) put({handle, number});
    return number;
  }
  // Takes one number of a handle away from it. The number is not given again before release().
  // kNone: it has none.
  std::uint32_t take(std::uintptr_t handle) {
    if (places_.empty()) return kNone;
    std::size_t at = home(handle);
    while (places_[at].number != kNone && places_[at].handle != handle) at = next(at);
    const std::uint32_t number = places_[at].number;
    if (number == kNone) return kNone;
    --count_;
    places_[at].number = kNone;
    // Those behind it move up, but not beyond their home.
    for (std::size_t hole = at, i = next(at); places_[i].number != kNone; i = next(i)) {
      const std::size_t mask = places_.size() - 1;
      if (((i - home(places_[i].handle)) & mask) < ((i - hole) & mask)) continue;
      places_[hole] = places_[i];
      places_[i].number = kNone;
      hole = i;
    }
    return number;
  }
  void release(std::uint32_t number) {
    free_[number / 64] |= std::uint64_t{1} << number % 64;
    if (number / 64 < first_free_) first_free_ = number / 64;
  }
  // Gives a number that was taken to a handle. Without memory the number is lost.
  void restore(std::uintptr_t handle, std::uint32_t number) {
    if (2 * (count_ + 1) <= places_.size() || grow()) put({handle, number});
  }

 private:
  struct Place {
    std::uintptr_t handle;
    std::uint32_t number;
  };

  [[nodiscard]] std::size_t home(std::uintptr_t handle) const {
    return ((handle * std::uint64_t{0x9E3779B97F4A7C15}) >> 20) & (places_.size() - 1);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & (places_.size() - 1); }
  void put(const Place& place) {
    std::size_t at = home(place.handle);
    while (places_[at].number != kNone) at = next(at);
    places_[at] = place;
    ++count_;
  }
  bool grow() {
    Array<Place> old;
    old.swap(places_);
    if (!places_.resize(old.empty() ? 64 : 2 * old.size(), {0, kNone})) {
      old.swap(places_);
      return false;
    }
    count_ = 0;
    for (const Place& each : old) {
      if (each.number != kNone) put(each);
    }
    return true;
  }
  std::uint32_t take_number() {
    while (first_free_ < free_.size() && free_[first_free_] == 0) ++first_free_;
    if (first_free_ == free_.size() && !free_.push(~std::uint64_t{0})) return kNone;
    std::uint64_t& word = free_[first_free_];
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(word));
    word &= word - 1;
    return static_cast<std::uint32_t>(first_free_ * 64) + bit;
  }

  Array<Place> places_;         // open addressing; the size is a power of two
  Array<std::uint64_t> free_;   // bits of numbers
  std::size_t first_free_ = 0;  // no word before it has one
  std::size_t count_ = 0;
};

}  // namespace stretto::mpi
