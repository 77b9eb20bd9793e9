// SPDX-License-Identifier: BSD-3-Clause
// Numbers pairs of numbers from 0, in the order in which they first come.
#pragma once
#include <cstdint>

#include "base/array.hpp"

namespace stretto::topo {

class Numbering {
 public:
  void clear() {
    places_.clear();
    count_ = 0;
  }
  [[nodiscard]] bool failed() const { return places_.failed(); }
  [[nodiscard]] int count() const { return count_; }

  int number(std::int32_t a, std::int32_t b) {
    if (2 * (static_cast<std::size_t>(count_) + 1) > places_.size()) grow();
    if (places_.failed()) return 0;
    Place* const place = find(places_, a, b);
    if (place->number < 0) *place = {a, b, count_++};
    return place->number;
  }

 private:
  struct Place {
    std::int32_t a, b;
    int number;  // -1: empty
  };
  static Place* find(Array<Place>& places, std::int32_t a, std::int32_t b) {
    std::uint64_t key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
    key = (key ^ key >> 32) * 0x9e3779b97f4a7c15u;
    const std::size_t mask = places.size() - 1;
    std::size_t i = (key ^ key >> 29) & mask;
    while (places[i].number >= 0 && (places[i].a != a || places[i].b != b)) i = (i + 1) & mask;
    return &places[i];
  }
  void grow() {
    Array<Place> bigger;
    if (!bigger.resize(places_.empty() ? 64 : 2 * places_.size(), {0, 0, -1})) {
      places_.swap(bigger);  // keeps the failure
      return;
    }
    for (const Place& place : places_) {
      if (place.number >= 0) *find(bigger, place.a, place.b) = place;
    }
    places_.swap(bigger);
  }

  Array<Place> places_;
  int count_ = 0;
};

}  // namespace stretto::topo
