// SPDX-License-Identifier: BSD-3-Clause
// How the members of a communicator come to share memory, or agree that they do not. Exchanges:
//
//   0  If members may be on several nodes, each says on which node it is. No member reserves
//      anything before that.
//   1  Each member has made its lines ready. It says who it is and where its lines are, or why it
//      cannot take part. If all members were in one earlier agreement, each has attached all
//      others and can read their memory. Then this is the only exchange.
//   2  Each member has tried to attach all others through /proc, and says whether it could.
//   3  If some member could not, all members send their descriptors over sockets. These are two
//      exchanges: whether the mailboxes are open, and the outcome.
//
// After each exchange all members hold the same words and so reach the same verdict. No member
// assumes where a peer is. A peer counts as on this node if its segment could be mapped and has the
// random identity that the peer has announced.
//
// Each step has a file: agreement_introduce.cpp (exchanges 0 and 1), agreement_attach.cpp (2 and
// 3), agreement_settle.cpp and agreement_tiers.cpp (what follows for the communicator).
// agreement.cpp has their order, and what members tell each other of a failure. Private to
// src/engine.
#pragma once
#include <cstdlib>

#include "engine/process.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {

enum class Reason : std::uint32_t {
  none,
  version,
  no_memory,
  too_small,
  no_memfd,
  other_node,
  unreachable,
  no_mailbox,
  address_space,
  count_
};
const char* words_of(Reason reason);

// What a member tells the others first.
struct Introduction {
  std::uint64_t identity;
  std::uint64_t host;
  std::uint64_t pid_namespace;
  std::uint64_t segment_bytes;                                // how much of its segment peers must map
  std::uint64_t address_limit, address_left, address_wanted;  // for Reason::address_space
  std::uint64_t block_offset;
  TierBlocks blocks;       // none if it wants no tiers
  std::uint64_t instance;  // the generation of its lines; rank 0's is the communicator's generation
  std::uint64_t meetings[Meetings::kKept];
  std::uint64_t mask_hash;
  std::uint64_t slot_bytes;  // the least of all members counts
  shm::Fragments fragments;  // rank 0's count
  std::uint32_t layout_version;
  std::uint32_t collectives;
  std::int32_t pid;
  std::int32_t descriptor;
  std::uint32_t ranks_on_node;
  std::uint32_t cpus;  // within the cgroup's quota
  std::uint32_t cpus_online;
  topo::Binding binding;
  std::int32_t tier_members;   // at most; the least of all members counts
  std::uint32_t tiers_wanted;  // STRETTO_TIERS is a number: also with fewer processors than ranks
  std::uint32_t check;         // STRETTO_CHECK: the highest counts
  std::uint32_t single_copy;   // whether the options allow it
  std::uint32_t was_refused;   // whether this member could not read some peer's memory in some agreement
  std::uint64_t probe;         // address of a word in private memory that holds `identity`
  Reason reason;
};

// One attempt to make a communicator.
class Agreement {
 public:
  Agreement(Process& process, const Bootstrap& bootstrap, bool serves_node)
      : process_(process), bootstrap_(bootstrap), serves_node_(serves_node) {
    const Locked locked(process_.lock);
    ++process_.agreements;
  }
  ~Agreement() {
    const Locked locked(process_.lock);
    --process_.agreements;
    std::free(all_);
  }
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  Comm* reach(std::uint32_t wanted);
  [[nodiscard]] Decline verdict() const { return verdict_; }

 private:
  bool is_on_one_node();
  bool introduce(std::uint32_t wanted);
  [[nodiscard]] bool has_room();
  void prepare();
  bool judge_hellos();
  void settle();
  bool reserve_tiers();
  void refuse_tiers(const char* why) const;
  void find_tiers();
  template <class OffsetIn>
  shm::Team* make_team(const topo::Group& group, OffsetIn offset_in);
  void make_teams(coll_shm::Tiers& tiers, std::uint64_t (TierBlocks::*blocks)[TierBlocks::kLevels],
                  const coll_shm::Tiers* others);
  void make_tiers();
  [[nodiscard]] bool have_met() const;
  bool attach();
  bool meet();
  bool attach_by_proc();
  [[nodiscard]] bool read_everybody();
  bool refuse(int error);
  bool attach_by_mail(const sys::Mailbox& box);
  bool mail_ours(const sys::Mailbox& box, int* next);
  bool mail_theirs(const sys::Mailbox& box);
  bool adopt(int rank, int fd);
  bool extend(int rank);
  bool add(Status mapped, shm::Attachment attachment);
  void connect();
  void abandon();

  bool everybody(Reason mine);
  bool decline(int rank, Reason reason);
  [[nodiscard]] Reason why_apart() const { return no_room_ ? Reason::address_space : Reason::unreachable; }
  [[nodiscard]] bool attached(int rank) const;     // the caller holds the lock
  [[nodiscard]] bool is_attached(int rank) const;  // takes the lock
  [[nodiscard]] bool complete() const;
  // A name that no other member, communicator or job has. The generation is made from rank 0's
  // identity. Without the factor these two would cancel out, and rank 0's mailbox would have the
  // same name in every job.
  [[nodiscard]] std::uint64_t mailbox_of(int rank) const {
    return all_[rank].identity ^ all_[0].instance * 0x9e3779b97f4a7c15u;
  }

  Process& process_;
  const Bootstrap& bootstrap_;
  bool serves_node_;
  Introduction mine_{};
  Introduction* all_ = nullptr;
  std::uint32_t* words_ = nullptr;  // in the same memory, behind `all_`
  Comm* comm_ = nullptr;
  int letters_ = 0;             // how many have come, or cannot come
  bool no_room_ = false;        // the allowed address space has no room for a peer's memory
  bool out_of_reach_ = false;   // this member cannot get a peer's memory by mail, or cannot map it
  bool refused_ = false;        // the system refused this member a peer's memory
  int error_ = 0;               // with this error
  shm::MemoryRefusal refusal_;  // of the lowest such rank, by the last exchange
  bool reads_all_ = false;      // this member has read every peer's probe
  bool all_read_all_ = false;   // all members have done so, by the last exchange
  Decline verdict_{};
};

}  // namespace stretto::engine
