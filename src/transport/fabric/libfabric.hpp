// SPDX-License-Identifier: BSD-3-Clause
// A network by libfabric: any provider of reliable datagram endpoints with remote memory access,
// such as verbs;ofi_rxm, cxi, efa, opx and psm3, and tcp;ofi_rxm and shm for tests.
//
// libfabric takes memory from malloc. The driver's thread must never wait for a lock of malloc's
// that a program's thread holds, which may be stopped where it copies data that are under way
// (ADR 32). So begin() makes all objects on the driver's thread: glibc then serves them from that
// thread's own arena, and their memory goes back there.
#pragma once
#include "sys/sys.hpp"
#include "transport/fabric/fabric.hpp"
#include "transport/fabric/library.hpp"

namespace stretto::transport {

class Libfabric final : public Fabric {
 public:
  Libfabric() = default;
  ~Libfabric() { close(); }
  Libfabric(const Libfabric&) = delete;
  Libfabric& operator=(const Libfabric&) = delete;

  struct Settings {
    // A provider's name or the beginning of it up to a semicolon, such as "verbs"; "": the first
    // one that is no software over a network that the system serves as well.
    const char* provider = "";
    // By which others reach this process. A network with IP addresses must have one of them.
    const sys::HostAddress* addresses = nullptr;
    int address_count = 0;
    // begin() has failed.
    void (*failed)(const char* why) = nullptr;
  };
  // Loads libfabric and asks for providers. False: there is none. why() says so. The settings stay.
  bool find(const Settings& settings);
  // Nobody reads here any more. Does nothing in a forked child.
  void close();
  [[nodiscard]] const char* why() const { return why_; }
  // Of the first network that begin() tries.
  [[nodiscard]] const char* provider() const;
  [[nodiscard]] const char* domain() const;

  bool begin() override;
  [[nodiscard]] const FabricAddress& address() const override { return address_; }
  int add_peer(const FabricAddress& address, std::uint64_t* name) override;
  [[nodiscard]] char* outgoing(std::uint32_t slot) const override { return memory_ + at(slot); }
  [[nodiscard]] FabricWindow window(std::uint32_t slot) const override;
  [[nodiscard]] char* landing(std::uint32_t slot) const override { return memory_ + at(kSlots + slot); }
  int read(std::uint64_t peer, const FabricWindow& from, std::uint64_t bytes, std::uint32_t landing) override;
  int poll(FabricDone* done, int capacity) override;
  [[nodiscard]] int descriptor() const override { return descriptor_; }
  bool may_wait() override;

 private:
  static std::size_t at(std::uint32_t slot) { return std::size_t{slot} * kSlotBytes; }
  bool fails(const char* what, int error);
  [[nodiscard]] ofi::Info* first() const;
  bool open(ofi::Info* info);
  void close_objects();
  bool open_endpoint(ofi::Info* info);
  bool open_queue();
  bool register_memory(int mode);
  bool register_half(int half, std::uint64_t access, int mode, ofi::MrFid** made);
  int take_error(FabricDone* done);

  Settings settings_;
  const ofi::Library* library_ = nullptr;
  ofi::Info* found_ = nullptr;
  FabricAddress address_;
  ofi::FabricFid* fabric_ = nullptr;
  ofi::DomainFid* domain_ = nullptr;
  ofi::AvFid* peers_ = nullptr;
  ofi::CqFid* queue_ = nullptr;
  ofi::EpFid* endpoint_ = nullptr;
  ofi::MrFid *outgoing_ = nullptr, *landings_ = nullptr;
  char* memory_ = nullptr;
  int process_ = 0;
  int descriptor_ = -1;
  bool has_virtual_addresses_ = false;
  ofi::Context contexts_[kSlots] = {};  // of reads, by landing
  char why_[200] = "";
};

// What a libfabric offers here, in its order.
struct FabricOffer {
  const char *provider, *domain;
  bool is_software, is_usable;
};
// Null: there is no library, *why says so.
const ofi::Library* libfabric_offers(const Libfabric::Settings& settings, void (*each)(void*, const FabricOffer&),
                                     void* context, const char** why);

}  // namespace stretto::transport
