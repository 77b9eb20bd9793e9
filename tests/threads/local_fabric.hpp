// SPDX-License-Identifier: BSD-3-Clause
// A network of remote reads between threads of a process: a double of transport/fabric/fabric.hpp.
// Reads end late and in any order, and fail on demand.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include "sys/sys.hpp"
#include "transport/fabric/fabric.hpp"

namespace stretto::test {

class LocalFabric final : public transport::Fabric {
 public:
  struct Faults {
    unsigned full_percent = 0;             // of reads find no room at first
    int fails_from = -1, fails_count = 0;  // so many reads fail at their end, from this one on; -1: none
    int breaks_at = -1;                    // poll() says that all is broken, once so many reads have begun
    bool refuses_peers = false;
    const char* provider = "local";
  };
  explicit LocalFabric(std::uint64_t seed = 1) : LocalFabric(seed, Faults{}) {}
  LocalFabric(std::uint64_t seed, const Faults& faults) : faults_(faults), memory_(kBytes), random_(seed) {
    std::strcpy(address_.provider, faults.provider);
    address_.format = 7;
    address_.bytes = sizeof(std::uint64_t);
    std::memcpy(address_.data, &seed, sizeof seed);
  }

  bool begin() override { return true; }
  [[nodiscard]] const transport::FabricAddress& address() const override { return address_; }
  int add_peer(const transport::FabricAddress& address, std::uint64_t* name) override {
    if (faults_.refuses_peers) return EADDRNOTAVAIL;
    std::memcpy(name, address.data, sizeof *name);
    return 0;
  }
  [[nodiscard]] char* outgoing(std::uint32_t slot) const override { return at(slot); }
  [[nodiscard]] transport::FabricWindow window(std::uint32_t slot) const override {
    return {reinterpret_cast<std::uintptr_t>(at(slot)), 99};
  }
  [[nodiscard]] char* landing(std::uint32_t slot) const override { return at(kSlots + slot); }
  int read(std::uint64_t, const transport::FabricWindow& from, std::uint64_t bytes, std::uint32_t landing) override {
    EXPECT_EQ(from.key, 99u);
    if (random_() % 100 < faults_.full_percent) return EAGAIN;
    reads_.push_back({from.address, bytes, landing});
    begun.fetch_add(1);
    return 0;
  }
  int poll(transport::FabricDone* done, int capacity) override {
    if (faults_.breaks_at >= 0 && begun >= faults_.breaks_at) return -1;
    int count = 0;
    while (count < capacity && !reads_.empty() && random_() % 3 != 0) {
      std::swap(reads_[random_() % reads_.size()], reads_.back());
      const Read read = reads_.back();
      reads_.pop_back();
      const bool fails =
          faults_.fails_from >= 0 && ended_ >= faults_.fails_from && ended_ < faults_.fails_from + faults_.fails_count;
      ++ended_;
      if (!fails) std::memcpy(landing(read.landing), reinterpret_cast<const void*>(read.from), read.bytes);
      done[count++] = {read.landing, fails ? EIO : 0};
    }
    return count;
  }
  [[nodiscard]] int descriptor() const override { return -1; }
  bool may_wait() override { return true; }

  std::atomic<int> begun{0};  // reads

 private:
  struct Read {
    std::uint64_t from, bytes;
    std::uint32_t landing;
  };
  [[nodiscard]] char* at(std::uint32_t slot) const {
    return const_cast<char*>(memory_.data()) + std::size_t{slot} * kSlotBytes;
  }
  Faults faults_;
  transport::FabricAddress address_;
  std::vector<char> memory_;
  std::vector<Read> reads_;
  std::mt19937_64 random_;
  int ended_ = 0;
};

}  // namespace stretto::test
