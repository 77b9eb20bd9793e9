// SPDX-License-Identifier: BSD-3-Clause
#include "observe/call_profile.hpp"

#include <cstring>

namespace stretto::observe {

std::int16_t CallProfile::add_communicator(std::uint64_t members, std::uint32_t size, std::uint32_t rank) {
  if (communicator_count_ == kCommunicators) return -1;
  std::uint32_t nth = 0;
  for (unsigned i = 0; i < communicator_count_; ++i) nth += communicators_[i].members == members ? 1 : 0;
  communicators_[communicator_count_] = {members, nth, size, rank, 0};
  return static_cast<std::int16_t>(communicator_count_++);
}

KeptCall CallProfile::kept_of(const ProfiledCall& call, std::uint16_t site) {
  KeptCall kept = {};
  kept.began_ns = call.began_ns;
  kept.ns = call.ns;
  kept.number = call.number;
  kept.site = site;
  kept.communicator = static_cast<std::uint8_t>(call.communicator);
  kept.collective_and_root =
      static_cast<std::uint8_t>(static_cast<unsigned>(call.collective) << 1 | (call.is_root ? 1u : 0u));
  return kept;
}

KeptCall* CallProfile::keep(const ProfiledCall& call, std::uint16_t site) {
  if (kept_count_ >= kKept) {
    thin(kKept / 2);
    if (hash_of(call.communicator, call.number) > keep_up_to_) return nullptr;
  }
  kept_[kept_count_] = kept_of(call, site);
  return &kept_[kept_count_++];
}

KeptCall CallProfile::record_open(const ProfiledCall& call) {
  if (call.began_ns >= origin_ns_) time_.add(&ProfileBin::in_call_ns, call.began_ns - origin_ns_, call.ns);
  const std::uint16_t at = site(call.caller, call.collective);
  if (at != kNoSite) {
    ProfileSite& it = sites_[at];
    ++it.calls;
    it.ns += call.ns;
    if (call.ns > it.longest_ns) it.longest_ns = call.ns;
  }
  return kept_of(call, at);
}

void CallProfile::thin(std::uint32_t most) {
  while (kept_count_ > most && keep_up_to_ != 0) {
    keep_up_to_ /= 2;
    std::uint32_t left = 0;
    for (const KeptCall& call : kept()) {
      if (hash_of(call.communicator, call.number) <= keep_up_to_) kept_[left++] = call;
    }
    kept_count_ = left;
  }
}

bool CallProfile::is_sound() const {
  if (communicator_count_ > kCommunicators || kept_count_ > kKept || !time_.is_sound()) return false;
  for (const ProfileSite& site : sites_) {
    if (site.collective >= Collective::count_ || site.behind > kSites) return false;
    if (std::memchr(site.text, 0, sizeof site.text) == nullptr) return false;
  }
  for (const KeptCall& call : kept()) {
    if (call.collective() >= Collective::count_) return false;
  }
  return true;
}

void CallProfile::set_line(KeptCall& call, const char* text, std::uint64_t caller) {
  std::uint64_t key = caller;
  for (const char* c = text; *c != 0; ++c) key = (key ^ static_cast<unsigned char>(*c)) * 0x100000001b3ULL;  // FNV-1a
  const std::uint16_t binding = call.site;
  const std::uint16_t line = site(key, call.collective());
  if (line == kNoSite || line == binding) return;
  ProfileSite& it = sites_[line];
  if (it.calls == 0) {
    it.behind = static_cast<std::uint16_t>(binding + 1);
    std::strncpy(it.text, text, sizeof it.text - 1);
  }
  ++it.calls;
  it.ns += call.ns;
  if (call.ns > it.longest_ns) it.longest_ns = call.ns;
  call.site = line;
}

}  // namespace stretto::observe
