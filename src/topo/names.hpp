// SPDX-License-Identifier: BSD-3-Clause
// Names and their numbers, which count from 0 in the order in which names come.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/array.hpp"
#include "sys/hash.hpp"

namespace stretto::topo {

class Names {
 public:
  void clear() {
    text_.clear();
    begins_.clear();
    places_.clear();
  }
  [[nodiscard]] int count() const { return static_cast<int>(begins_.size()); }
  [[nodiscard]] bool failed() const { return text_.failed() || begins_.failed() || places_.failed(); }
  [[nodiscard]] const char* name(int number) const { return text_.data() + begins_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] int find(const char* name) const { return find(name, std::strlen(name)); }
  [[nodiscard]] int find(const char* name, std::size_t length) const {
    return places_.empty() ? -1 : places_[place(name, length)];
  }
  // The name's number. A new name gets the next one. -1: no memory.
  int number(const char* name, std::size_t length) {
    if (2 * (begins_.size() + 1) > places_.size()) grow();
    if (failed()) return -1;
    int& number = places_[place(name, length)];
    if (number >= 0) return number;
    const std::size_t begin = text_.size();
    if (!text_.splice(begin, 0, length + 1) || !begins_.push(begin)) return -1;
    std::memcpy(text_.data() + begin, name, length);
    text_[begin + length] = 0;
    return number = count() - 1;
  }

 private:
  [[nodiscard]] std::size_t place(const char* text, std::size_t length) const {
    const std::uint64_t hash = sys::hash(text, length);
    const std::size_t mask = places_.size() - 1;
    std::size_t i = (hash ^ hash >> 29) & mask;
    while (places_[i] >= 0 && !same(places_[i], text, length)) i = (i + 1) & mask;
    return i;
  }
  [[nodiscard]] bool same(int number, const char* text, std::size_t length) const {
    return std::strncmp(name(number), text, length) == 0 && name(number)[length] == 0;
  }
  void grow() {
    const std::size_t size = places_.empty() ? 64 : 2 * places_.size();
    places_.clear();
    if (!places_.resize(size, -1)) return;
    for (int i = 0; i < count(); ++i) places_[place(name(i), std::strlen(name(i)))] = i;
  }

  Array<char> text_;
  Array<std::size_t> begins_;
  Array<int> places_;  // open addressing; its size is a power of two
};

}  // namespace stretto::topo
