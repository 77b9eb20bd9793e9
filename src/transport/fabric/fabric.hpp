// SPDX-License-Identifier: BSD-3-Clause
// What the driver of long messages needs of a network that reads the memory of other processes:
//
//   - memory of its own, registered once: slots that peers read (outgoing), and slots into which
//     this process reads (landing)
//   - reads from a peer's outgoing slot into a landing slot, many at once, in any order
//   - a descriptor to wait on, if the network has one
//
// Everything else goes over the connection of the pair: addresses, what is to be read, and that it
// has been read. So memory of the program is never registered, and the network sends no message.
//
// Functions return 0 or an errno value. One thread calls them, from begin() on. libfabric.hpp
// implements them; tests have a double.
#pragma once
#include <cstdint>

namespace stretto::transport {

// How a process is reached. Processes with another provider or format cannot reach it.
struct FabricAddress {
  static constexpr std::size_t kProviderBytes = 32, kMostBytes = 192;
  char provider[kProviderBytes] = {};  // ends with a zero
  std::uint32_t format = 0;
  std::uint32_t bytes = 0;
  char data[kMostBytes] = {};
};

// An outgoing slot, as its readers name it.
struct FabricWindow {
  std::uint64_t address = 0, key = 0;
};

struct FabricDone {
  std::uint32_t landing = 0;
  int error = 0;  // 0: the data are there
};

class Fabric {
 public:
  static constexpr std::uint32_t kSlots = 16;  // of each kind
  static constexpr std::uint32_t kSlotBytes = 128 << 10;
  static constexpr std::size_t kBytes = std::size_t{2} * kSlots * kSlotBytes;  // outgoing slots, then landings

  // Once, before all else. False: it is no use, and nothing else is called.
  virtual bool begin() = 0;
  [[nodiscard]] virtual const FabricAddress& address() const = 0;
  // Once for each peer. *name: for read().
  virtual int add_peer(const FabricAddress& address, std::uint64_t* name) = 0;
  [[nodiscard]] virtual char* outgoing(std::uint32_t slot) const = 0;
  [[nodiscard]] virtual FabricWindow window(std::uint32_t slot) const = 0;
  [[nodiscard]] virtual char* landing(std::uint32_t slot) const = 0;
  // The landing is the network's until poll() names it. EAGAIN: not now, it has no room.
  virtual int read(std::uint64_t peer, const FabricWindow& from, std::uint64_t bytes, std::uint32_t landing) = 0;
  // Moves on, also with what peers read here. Returns how many reads are through; -1: the network
  // is broken, and says nothing more of them.
  virtual int poll(FabricDone* done, int capacity) = 0;
  // Becomes readable when poll() has something to do; -1: there is none, and poll() is to be called
  // again and again.
  [[nodiscard]] virtual int descriptor() const = 0;
  // Whether it may be waited on now. False: poll() first.
  virtual bool may_wait() = 0;

 protected:
  ~Fabric() = default;
};

}  // namespace stretto::transport
