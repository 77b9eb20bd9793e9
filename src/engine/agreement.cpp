// SPDX-License-Identifier: BSD-3-Clause
// How the members of a communicator come to share memory, or agree that they do not. Exchanges:
//
//   0  where members may be on several nodes, everybody says on which it is; nothing is reserved
//      before that
//   1  everybody has made its lines ready, and says who it is and where they lie; who cannot take
//      part says why. If all members were in one earlier agreement, each has attached all others
//      and can read their memory: this is the only exchange
//   2  everybody has tried to attach everybody through /proc; who could not says so
//   3  those who lacked somebody were sent descriptors over sockets (two exchanges: mailboxes open, outcome)
//
// After each exchange all members hold the same words and so reach the same verdict. Locality is not assumed: a peer is
// on this node because its segment could be mapped and carries the random identity that the peer announced.
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/process.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {

namespace {

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
constexpr const char* kReasons[] = {
    "no reason",
    "members run different versions of Stretto",
    "no memory for the shared segment",
    "the lanes (of STRETTO_SLOTS x STRETTO_SLOT_BYTES each) do not fit into STRETTO_SEGMENT_BYTES",
    "the system refuses memory files (memfd_create)",
    kOnSeveralNodes,
    "a member's memory could not be attached, neither through /proc nor by descriptor passing",
    "a member's memory could not be attached through /proc, and sockets for descriptor passing are refused",
    "a member's limit of address space (RLIMIT_AS, ulimit -v) leaves no room for the members' shared memory",
};
static_assert(sizeof kReasons / sizeof kReasons[0] == static_cast<std::size_t>(Reason::count_));

// What a member tells the others first.
struct Hello {
  std::uint64_t identity;
  std::uint64_t host;
  std::uint64_t pid_namespace;
  std::uint64_t segment_bytes;                                // of its segment, to be mapped
  std::uint64_t address_limit, address_left, address_wanted;  // if its reason is that
  std::uint64_t block_offset;
  std::uint64_t instance;  // what its lines say; the communicator's generation is that of rank 0
  std::uint64_t meetings[Meetings::kKept];
  std::uint64_t mask_hash;
  std::uint64_t slot_bytes;  // the least counts
  shm::Fragments fragments;  // those of rank 0 count
  std::uint32_t layout_version;
  std::uint32_t collectives;
  std::int32_t pid;
  std::int32_t descriptor;
  std::uint32_t ranks_on_node;
  std::uint32_t cpus;  // after the cgroup's quota
  std::uint32_t cpus_online;
  std::uint32_t check;        // STRETTO_CHECK: the highest counts
  std::uint32_t single_copy;  // not switched off by an option
  std::uint32_t was_refused;  // the memory of some peer, in some agreement
  std::uint64_t probe;        // address of a word in private memory that holds `identity`
  Reason reason;
};

// And before that, where that may be on another node.
struct Place {
  std::uint64_t host;
  std::uint64_t layout_version;
};

// Part of the words that are exchanged: this member cannot read every peer's memory, or must not; and, if it was
// refused, what the system said.
constexpr std::uint32_t kNoSingleCopy = std::uint32_t{1} << 31;
constexpr std::uint32_t kRefused = std::uint32_t{1} << 30;
constexpr unsigned kErrorShift = 16;
constexpr std::uint32_t kErrorMask = 0xfff;
constexpr std::uint32_t kReasonMask = 0xffff;

// One attempt to make a communicator.
class Agreement {
 public:
  Agreement(Process& process, const Bootstrap& bootstrap) : process_(process), bootstrap_(bootstrap) {
    const Locked locked(process_);
    ++process_.agreements;
  }
  ~Agreement() {
    const Locked locked(process_);
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
  [[nodiscard]] bool attached(int rank) const;     // with the lock held
  [[nodiscard]] bool is_attached(int rank) const;  // without it
  [[nodiscard]] bool complete() const;
  // A name that no other member, communicator or job has. The generation is made from rank 0's identity: without the
  // factor the two would cancel out, and rank 0's mailbox have the same name in every job.
  [[nodiscard]] std::uint64_t mailbox_of(int rank) const {
    return all_[rank].identity ^ all_[0].instance * 0x9e3779b97f4a7c15u;
  }

  Process& process_;
  const Bootstrap& bootstrap_;
  Hello mine_{};
  Hello* all_ = nullptr;
  std::uint32_t* words_ = nullptr;  // behind them
  Comm* comm_ = nullptr;
  bool crowded_ = false;
  int letters_ = 0;            // received, or known not to come
  bool no_room_ = false;       // for a peer's memory, in the address space that is allowed
  bool out_of_reach_ = false;  // a peer's memory, by mail or at all
  bool refused_ = false;       // this member was refused the memory of a peer
  int error_ = 0;              // with this
  shm::Refusal refusal_;       // of the lowest such rank, as of the last exchange
  bool reads_all_ = false;     // this member has read every peer's probe
  bool all_read_all_ = false;  // and so has everybody, as of the last exchange
  Decline verdict_{};
};

bool Agreement::decline(int rank, Reason reason) {
  verdict_ = {rank, kReasons[static_cast<std::size_t>(reason)]};
  return false;
}

// With the numbers of the first time: a user wants to know how high the limit has to be. Reasons
// outlive processes.
const char* limit_reason(const Hello& member) {
  static constinit char text[200] = "";
  static constinit std::atomic<int> written{0};  // 2: it is
  const auto mib = [](std::uint64_t bytes) { return static_cast<unsigned long long>(bytes >> 20); };
  int expected = 0;
  if (written.compare_exchange_strong(expected, 1)) {
    std::snprintf(text, sizeof text, "%s: RLIMIT_AS is %llu MiB, %llu MiB of that are free, twice %llu MiB are wanted",
                  "a member's limit of address space (ulimit -v) leaves no room for the members' shared memory",
                  mib(member.address_limit), mib(member.address_left), mib(member.address_wanted) + 1);
    written.store(2, std::memory_order_release);
  }
  return written.load(std::memory_order_acquire) == 2 ? text
                                                      : kReasons[static_cast<std::size_t>(Reason::address_space)];
}

// One word from every rank; false if any rank gave a reason to stop, and then the lowest such rank's is the verdict.
bool Agreement::everybody(Reason mine) {
  const auto word = static_cast<std::uint32_t>(mine) | (reads_all_ ? 0 : kNoSingleCopy) | (refused_ ? kRefused : 0) |
                    (static_cast<std::uint32_t>(error_) & kErrorMask) << kErrorShift;
  if (!bootstrap_.allgather(bootstrap_.context, &word, words_, sizeof word)) return decline(bootstrap_.rank, mine);
  all_read_all_ = true;
  refusal_ = {};
  for (int r = 0; r < bootstrap_.size; ++r) {
    if ((words_[r] & kNoSingleCopy) != 0) all_read_all_ = false;
    if ((words_[r] & kRefused) != 0 && refusal_.rank < 0)
      refusal_ = {r, static_cast<int>(words_[r] >> kErrorShift & kErrorMask)};
    words_[r] &= kReasonMask;
  }
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (words_[r] != 0) return decline(r, static_cast<Reason>(words_[r]));
  }
  return true;
}

// ---- exchange 0 ----

bool Agreement::is_on_one_node() {
  const Place mine = [&]() -> Place {
    const Locked locked(process_);
    return {system_facts(process_).host, shm::kLayoutVersion};
  }();
  auto* const all = static_cast<Place*>(std::malloc(bootstrap_.size * sizeof(Place)));
  if (!all) std::abort();  // as below
  bool fine = bootstrap_.allgather(bootstrap_.context, &mine, all, sizeof mine);
  if (!fine) decline(bootstrap_.rank, Reason::none);
  for (int r = 0; fine && r < bootstrap_.size; ++r) {
    if (all[r].layout_version != mine.layout_version)
      fine = decline(r, Reason::version);
    else if (all[r].host != all[0].host)
      fine = decline(r, Reason::other_node);
  }
  std::free(all);
  return fine;
}

// ---- exchange 1 ----

// Whether this process may map its own segment and the peers': before it does, so that nothing has
// to be undone. What is left of a limit is the program's, too.
bool Agreement::has_room() {
  mine_.address_wanted = address_space_wanted(process_, bootstrap_.size);
  if (mine_.address_wanted == 0) return true;
  const sys::AddressSpace space = sys::address_space();
  mine_.address_limit = space.limit;
  mine_.address_left = space.left;
  return mine_.address_wanted <= space.left / 2;
}

// Our lines must be in order before the exchange: after it peers read them.
void Agreement::prepare() {
  const Locked locked(process_);
  reap(process_);
  if (!has_room()) {
    mine_.reason = Reason::address_space;
    return;
  }
  const Status made = make_segment(process_);
  if (made != Status::ok) {
    mine_.reason = made == Status::unavailable ? Reason::no_memfd
                   : made == Status::invalid   ? Reason::too_small
                                               : Reason::no_memory;
    return;
  }
  mine_.identity = process_.segment.identity();
  mine_.instance = (process_.segment.identity() ^ ++process_.instances << 1) | 1;  // never 0
  mine_.descriptor = process_.segment.descriptor();
  mine_.slot_bytes = process_.settings.slot_bytes;
  mine_.fragments = process_.settings.fragments;
  process_.probe = mine_.identity;
  mine_.probe = reinterpret_cast<std::uintptr_t>(&process_.probe);
  const shm::BlockLayout layout{static_cast<unsigned>(bootstrap_.size)};
  comm_ = static_cast<Comm*>(std::calloc(1, sizeof(Comm)));
  if (comm_ && process_.lanes.open_first()) mine_.block_offset = process_.segment.block_allocate(layout.bytes());
  const std::size_t extent = process_.segment.extent(shm::rings_bytes(layout.size));
  mine_.segment_bytes = extent > process_.announced ? extent : process_.announced;
  // Whoever met this process before has mapped less of it.
  if (mine_.segment_bytes != process_.announced) process_.meetings.forget();
  process_.announced = mine_.segment_bytes;
  if (mine_.block_offset != 0) {
    comm_->process = &process_;
    comm_->block_offset = mine_.block_offset;
    char* const block = process_.segment.base() + mine_.block_offset;
    comm_->team = shm::Team::create(bootstrap_.rank, bootstrap_.size, mine_.instance, block, &process_.lanes);
  }
  if (!comm_ || !comm_->team) mine_.reason = Reason::no_memory;
}

bool Agreement::introduce(std::uint32_t wanted) {
  all_ = static_cast<Hello*>(std::malloc(bootstrap_.size * (sizeof(Hello) + sizeof *words_)));
  if (!all_) std::abort();  // a few kilobytes: nothing can be agreed without them, and peers must not hang
  words_ = reinterpret_cast<std::uint32_t*>(all_ + bootstrap_.size);
  prepare();
  const SystemFacts facts = [&] {
    const Locked locked(process_);
    std::memcpy(mine_.meetings, process_.meetings.of, sizeof mine_.meetings);
    mine_.was_refused = process_.meetings.was_refused;
    return system_facts(process_);
  }();
  const sys::Cpus& cpus = facts.cpus;
  mine_.host = facts.host;
  mine_.pid_namespace = facts.pid_namespace;
  mine_.pid = facts.pid;
  mine_.layout_version = shm::kLayoutVersion;
  mine_.collectives = wanted;
  mine_.mask_hash = cpus.mask_hash;
  mine_.cpus = cpus.quota < cpus.count ? static_cast<std::uint32_t>(std::ceil(cpus.quota)) : cpus.count;
  mine_.cpus_online = cpus.online;
  mine_.ranks_on_node = process_.ranks_on_node;
  mine_.check = process_.settings.check;
  mine_.single_copy = process_.settings.single_copy != SingleCopyChoice::off;
  if (!bootstrap_.allgather(bootstrap_.context, &mine_, all_, sizeof mine_)) {
    return decline(bootstrap_.rank, Reason::none);
  }
  return judge_hellos();
}

bool Agreement::judge_hellos() {
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (all_[r].layout_version != shm::kLayoutVersion) return decline(r, Reason::version);
    if (all_[r].reason == Reason::address_space)
      verdict_ = {r, limit_reason(all_[r])};
    else if (all_[r].reason != Reason::none)
      decline(r, all_[r].reason);
    if (all_[r].reason != Reason::none) return false;
    if (all_[r].host != all_[0].host) return decline(r, Reason::other_node);
  }
  return true;
}

// Whether all members were in one earlier agreement, and nobody was refused what all want. The same
// on all members.
bool Agreement::have_met() const {
  bool all_want = true;
  for (int r = 0; r < bootstrap_.size; ++r) all_want = all_want && all_[r].single_copy != 0;
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (all_want && all_[r].was_refused != 0) return false;
  }
  for (const std::uint64_t meeting : all_[0].meetings) {
    const auto was_there = [&](const Hello& member) {
      bool found = false;
      for (const std::uint64_t other : member.meetings) found = found || other == meeting;
      return found;
    };
    bool together = meeting != 0;
    for (int r = 1; r < bootstrap_.size && together; ++r) together = was_there(all_[r]);
    if (together) return true;
  }
  return false;
}

// ---- exchanges 2 and 3 ----

bool Agreement::attached(int rank) const {
  if (rank == bootstrap_.rank) return true;
  const shm::Attachment* const peer = process_.attachments.find(all_[rank].identity);
  return peer && peer->covers(all_[rank].segment_bytes);
}

bool Agreement::is_attached(int rank) const {
  const Locked locked(process_);
  return attached(rank);
}

bool Agreement::complete() const {
  const Locked locked(process_);
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (!attached(r)) return false;
  }
  return true;
}

// Maps what `fd` leads to as the segment of `rank`, unless another thread has done so meanwhile.
bool Agreement::adopt(int rank, int fd) {
  const Locked locked(process_);
  if (attached(rank)) {
    sys::close_descriptor(fd);
    return true;
  }
  shm::Attachment attachment;
  const Status mapped = shm::attachment_map(fd, all_[rank].segment_bytes, all_[rank].identity, &attachment);
  if (mapped == Status::ok && all_[rank].pid_namespace == mine_.pid_namespace)
    attachment.started = sys::start_time(all_[rank].pid);
  return add(mapped, attachment);
}

// Maps more of a segment whose beginning is there.
bool Agreement::extend(int rank) {
  const Locked locked(process_);
  const shm::Attachment* const known = process_.attachments.find(all_[rank].identity);
  if (!known) return false;
  shm::Attachment attachment;
  const Status mapped = shm::attachment_extend(*known, all_[rank].segment_bytes, &attachment);
  return add(mapped, attachment);
}

bool Agreement::add(Status mapped, shm::Attachment attachment) {
  if (mapped == Status::no_memory && sys::address_space().limit != ~std::uint64_t{0}) no_room_ = true;
  if (mapped != Status::ok) return false;
  if (process_.attachments.add(attachment)) return true;
  shm::attachment_unmap(&attachment);
  return false;
}

bool Agreement::attach_by_proc() {
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (is_attached(r) || extend(r)) continue;
    if (all_[r].pid_namespace != mine_.pid_namespace) continue;  // there the number names another process
    int fd = -1;
    if (sys::peer_descriptor_open(all_[r].pid, all_[r].descriptor, &fd) == 0) (void)adopt(r, fd);
  }
  return complete();
}

// Whether this process may read the memory of all peers: tried, not guessed, since ptrace scopes, seccomp filters and
// namespaces each have their own way of forbidding it. Once per peer.
bool Agreement::read_everybody() {
  const Locked locked(process_);
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (r == bootstrap_.rank) continue;
    if (all_[r].pid_namespace != mine_.pid_namespace) return refuse(0);
    shm::Attachment* const peer = process_.attachments.find(all_[r].identity);
    if (!peer->tried) {
      std::uint64_t seen = 0;
      const int error = sys::peer_memory_read(all_[r].pid, all_[r].probe, &seen, sizeof seen);
      peer->tried = true;
      peer->readable = error == 0 && seen == all_[r].identity;
      peer->error = error != 0 ? error : ESRCH;  // somebody else has that number
    }
    if (!peer->readable) return refuse(peer->error);
  }
  return true;
}

bool Agreement::refuse(int error) {
  refused_ = true;
  error_ = error;
  return false;
}

bool Agreement::attach() {
  if (have_met()) {
    all_read_all_ = true;
    for (int r = 0; r < bootstrap_.size; ++r) all_read_all_ = all_read_all_ && all_[r].single_copy != 0;
    return true;
  }
  const bool found = attach_by_proc();
  reads_all_ = found && process_.settings.single_copy != SingleCopyChoice::off && read_everybody();
  if (everybody(found ? Reason::none : why_apart())) return meet();
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (words_[r] == static_cast<std::uint32_t>(Reason::address_space)) return decline(r, Reason::address_space);
  }
  sys::Mailbox box;
  const bool open = sys::mailbox_open(mailbox_of(bootstrap_.rank), &box) == 0;
  bool fine = everybody(open ? Reason::none : Reason::no_mailbox);
  if (fine) fine = everybody(attach_by_mail(box) ? Reason::none : why_apart());
  if (open) sys::mailbox_close(&box);
  return fine && meet();
}

// All have attached all.
bool Agreement::meet() {
  const Locked locked(process_);
  // Else another thread has made the segment grow meanwhile.
  if (process_.announced == mine_.segment_bytes) process_.meetings.add(all_[0].instance, bootstrap_.size);
  process_.meetings.was_refused = process_.meetings.was_refused || !reads_all_;
  return true;
}

// Sends our descriptor to everybody and takes in what arrives, until nothing is missing. Sending and receiving
// alternate: queues of datagrams are short.
bool Agreement::attach_by_mail(const sys::Mailbox& box) {
  constexpr std::uint64_t kPatienceNs = 5'000'000'000;
  constexpr std::uint64_t kPauseNs = 20'000;
  const std::uint64_t deadline = sys::now_ns() + kPatienceNs;
  int next = 0;
  for (;;) {
    const bool sent = mail_ours(box, &next);
    const bool received = mail_theirs(box);
    if (sent || received) continue;
    // Everybody sends to everybody, also to who lacks nothing: if that one left, its full mailbox would hold up the
    // senders.
    const bool late = sys::now_ns() > deadline;
    if (next == bootstrap_.size && (late || letters_ >= bootstrap_.size - 1) && complete()) return true;
    if ((next == bootstrap_.size && out_of_reach_) || late) return false;
    sys::nap_ns(kPauseNs);
  }
}

bool Agreement::mail_ours(const sys::Mailbox& box, int* next) {
  if (*next == bootstrap_.rank) ++*next;
  if (*next >= bootstrap_.size) return false;
  const int error = sys::mailbox_send(box, mailbox_of(*next), mine_.identity, mine_.descriptor);
  if (error == EAGAIN) return false;
  if (error == ECONNREFUSED) {  // everybody's mailbox is open: that one's is in another network namespace, where nobody
                                // finds ours
    ++letters_;
    if (!is_attached(*next)) out_of_reach_ = true;
  }
  ++*next;  // sent, or refused: then that peer will miss us and say so
  return true;
}

bool Agreement::mail_theirs(const sys::Mailbox& box) {
  std::uint64_t from = 0;
  int fd = -1;
  if (sys::mailbox_receive(box, &from, &fd) != 0) return false;
  ++letters_;
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (all_[r].identity == from) {
      if (!adopt(r, fd)) out_of_reach_ = true;
      return true;
    }
  }
  sys::close_descriptor(fd);
  return true;
}

// ---- the communicator ----

// Whether there are fewer processors than ranks that may run. The same on all members.
bool is_crowded(const Hello* all, int size) {
  auto ranks = static_cast<std::uint32_t>(size);
  std::uint32_t cpus = 0;
  for (int r = 0; r < size; ++r) {
    if (all[r].ranks_on_node > ranks) ranks = all[r].ranks_on_node;
    bool counted = false;
    for (int q = 0; q < r && !counted; ++q) counted = all[q].mask_hash == all[r].mask_hash;
    if (!counted) cpus += all[r].cpus;
  }
  if (cpus > all[0].cpus_online) cpus = all[0].cpus_online;
  return ranks > cpus;
}

// Memory for a longer ring; 0: none. Peers have mapped what was announced when they agreed, and may
// read nothing beyond.
std::uint64_t allocate_ring(void* context, std::size_t bytes) {
  const Comm& comm = *static_cast<Comm*>(context);
  const Locked locked(*comm.process);
  shm::Segment& segment = comm.process->segment;
  const std::uint64_t offset = segment.block_allocate(bytes);
  if (offset == 0 || offset + bytes <= comm.announced_bytes) return offset;
  segment.block_release(offset, bytes);
  return 0;
}

// What follows from the members' words.
void Agreement::settle() {
  comm_->collectives = ~0u;
  std::uint64_t slot_bytes = all_[0].slot_bytes;
  std::uint32_t check = 0;
  for (int r = 0; r < bootstrap_.size; ++r) {
    comm_->collectives &= all_[r].collectives;
    if (all_[r].check > check) check = all_[r].check;
    if (all_[r].slot_bytes < slot_bytes) slot_bytes = all_[r].slot_bytes;
  }
  crowded_ = is_crowded(all_, bootstrap_.size);
  shm::Fragments fragments = all_[0].fragments;
  const auto slot = static_cast<std::uint32_t>(slot_bytes);
  if (crowded_) {
    fragments.least = fragments.most = slot;  // nobody copies out while we copy in: pieces would only cost turns
  } else if (fragments.most > slot) {
    fragments.most = slot;
  }
  comm_->team->settle(all_[0].instance, wait_policy(process_, crowded_), fragments);
  comm_->announced_bytes = mine_.segment_bytes;
  comm_->team->move_to({process_.segment.base(), comm_, allocate_ring});
  comm_->team->far_from(far_from_ns(process_.settings.streaming));
  comm_->team->store_past_from(past_from_bytes(process_.settings.streaming, process_.l3, bootstrap_.size, crowded_));
  if (comm_->collectives == 0) return;
  comm_->team->set_check(static_cast<shm::CheckLevel>(check));
  comm_->noted = check != 0 || process_.settings.watchdog_seconds != 0;
}

void Agreement::connect() {
  const Locked locked(process_);
  for (int r = 0; r < bootstrap_.size; ++r) {
    if (r == bootstrap_.rank) continue;
    shm::Attachment& peer = *process_.attachments.find(all_[r].identity);
    peer.used = true;
    comm_->team->connect(r, all_[r].instance, peer.base, peer.base + all_[r].block_offset, all_[r].pid, peer.started);
  }
  if (process_.ranks_on_node < static_cast<unsigned>(bootstrap_.size)) process_.ranks_on_node = bootstrap_.size;
  comm_->next = process_.active;
  process_.active = comm_;
  if (is_listed(*comm_)) list(*comm_);
  comm_->team->refuse(refusal_);
  if (!all_read_all_) return;
  comm_->team->lend_from(single_copy_from(process_.settings.single_copy, bootstrap_.size, crowded_));
}

// All members decline together, so nobody has looked at our lines.
void Agreement::abandon() {
  if (comm_) shm::Team::destroy(comm_->team);
  std::free(comm_);
  comm_ = nullptr;
  const Locked locked(process_);
  if (process_.agreements == 1) process_.attachments.drop_unused();  // others may count on them
  if (mine_.block_offset == 0) return;
  const shm::BlockLayout layout{static_cast<unsigned>(bootstrap_.size)};
  process_.segment.block_release(mine_.block_offset, layout.bytes());
}

Comm* Agreement::reach(std::uint32_t wanted) {
  if ((!bootstrap_.several_nodes || is_on_one_node()) && introduce(wanted) && attach()) {
    settle();
    connect();
  } else {
    abandon();
  }
  return comm_;
}

}  // namespace

Comm* comm_create(Process& process, const Bootstrap& bootstrap, std::uint32_t wanted, Decline& decline) {
  Agreement agreement(process, bootstrap);
  Comm* comm = agreement.reach(wanted);
  if (!comm) decline = agreement.verdict();
  return comm;
}

}  // namespace stretto::engine
