// SPDX-License-Identifier: BSD-3-Clause
#include "observe/call_profile.hpp"

#include <cstdlib>
#include <cstring>
#include <new>

namespace stretto::observe {

CallProfile* CallProfile::create(std::uint64_t now_ns) {
  void* const memory = std::calloc(1, sizeof(CallProfile));
  if (memory == nullptr) return nullptr;
  auto* const profile = new (memory) CallProfile();
  profile->origin_ns_ = now_ns;
  return profile;
}

void CallProfile::destroy(CallProfile* profile) {
  if (profile == nullptr) return;
  profile->~CallProfile();
  std::free(profile);
}

std::int16_t CallProfile::add_communicator(std::uint64_t members, std::uint32_t size, std::uint32_t rank) {
  if (communicator_count_ == kCommunicators) return -1;
  std::uint32_t nth = 0;
  for (unsigned i = 0; i < communicator_count_; ++i) nth += communicators_[i].members == members ? 1 : 0;
  communicators_[communicator_count_] = {members, nth, size, rank};
  return static_cast<std::int16_t>(communicator_count_++);
}

KeptCall* CallProfile::keep(const ProfiledCall& call, std::uint16_t site) {
  if (kept_.size() >= kKept) {
    thin(kKept / 2);
    if (hash_of(call.communicator, call.number) > keep_up_to_) return nullptr;
  }
  KeptCall kept = {};
  kept.began_ns = call.began_ns;
  kept.ns = call.ns;
  kept.number = call.number;
  kept.site = site;
  kept.communicator = static_cast<std::uint8_t>(call.communicator);
  kept.collective_and_root =
      static_cast<std::uint8_t>(static_cast<unsigned>(call.collective) << 1 | (call.is_root ? 1u : 0u));
  return kept_.push(kept) ? &kept_.back() : nullptr;
}

void CallProfile::thin(std::uint32_t most) {
  while (kept_.size() > most && keep_up_to_ != 0) {
    keep_up_to_ /= 2;
    std::size_t left = 0;
    for (const KeptCall& call : kept_) {
      if (hash_of(call.communicator, call.number) <= keep_up_to_) kept_[left++] = call;
    }
    (void)kept_.resize(left, KeptCall{});
  }
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
