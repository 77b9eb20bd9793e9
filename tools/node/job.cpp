// SPDX-License-Identifier: BSD-3-Clause
#include "job.hpp"

#include <cstring>

#include "engine/policy.hpp"
#include "engine/settings.hpp"

namespace stretto::node {
namespace {

// Ranks are in one process, so they do not copy out of each other's memory by the kernel.
engine::Settings settings_of(int ranks) {
  engine::Settings settings;
  settings.fragments = engine::fragments_of(0);
  settings.single_copy = SingleCopyChoice::off;
  settings.ranks_on_node = static_cast<unsigned>(ranks);
  return settings;
}

}  // namespace

Job::Job(Node& on) : node_(on), processes_(on.ranks()) {
  for (int r = 0; r < on.ranks(); ++r) members_.push_back({this, r, {}});
}

Job::~Job() = default;

void Job::meet() {
  const std::uint64_t meeting = meetings_;
  if (++arrived_ == node_.ranks()) {
    arrived_ = 0;
    ++meetings_;
  }
  while (meeting == meetings_) node_.pass();
}

bool Job::allgather(int rank, const void* mine, void* all, std::size_t bytes) {
  if (words_.size() < bytes * members_.size()) words_.resize(bytes * members_.size());
  std::memcpy(words_.data() + rank * bytes, mine, bytes);
  meet();
  std::memcpy(all, words_.data(), bytes * members_.size());
  meet();
  return true;
}

engine::Comm* Job::join(engine::Decline& why) {
  Member& member = members_[node_.self()];
  engine::Process*& process = processes_[member.rank];
  const int l3 = node_.machine().l3_of(node_.core_of(member.rank));
  member.binding = {{l3, node_.machine().numa_of_l3(l3), node_.machine().socket_of_l3(l3)}};
  engine::Settings settings = settings_of(node_.ranks());
  settings.binding = &member.binding;
  process = engine::process_create(settings, {});
  engine::process_set_concurrent(*process, false);
  const engine::Bootstrap bootstrap{member.rank, node_.ranks(), &member,
                                    [](void* context, const void* mine, void* all, std::size_t bytes) {
                                      const auto* self = static_cast<Member*>(context);
                                      return self->job->allgather(self->rank, mine, all, bytes);
                                    }};
  return engine::comm_create(*process, bootstrap, kNativeCollectives, why);
}

}  // namespace stretto::node
