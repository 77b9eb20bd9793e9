// SPDX-License-Identifier: BSD-3-Clause
#include "shm/team.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "shm/lane.hpp"
#include "shm/message.hpp"
#include "shm/segment.hpp"

namespace stretto::shm {

namespace {

void reset_directory(Directory& directory, unsigned size) {
  directory.board_ring.store_release(0);
  directory.board_moved.at.store_release(0);
  for (unsigned r = 0; r < size; ++r) directory.ack(r).store_release(0);
}

// The new owner of a block that may have served another communicator resets it: generation first,
// see lines.hpp.
void reset_block(char* block, int rank, const BlockLayout& layout, std::uint64_t instance) {
  auto& line = *reinterpret_cast<MemberLine*>(block);
  line.generation.store_release(0);
  line.gave_up.store_release(0);
  line.left.store_release(0);
  line.no_memory.store_release(0);
  reset_directory(*reinterpret_cast<Directory*>(block + layout.directory()), layout.size);
  line.generation.store_release(instance);
  auto* progress_line = reinterpret_cast<ProgressLine*>(block + BlockLayout::progress_line());
  progress_line->generation.store_release(0);
  progress_line->call.store_release(ProgressLine::kEnded);
  progress_line->reading.store_release(0);
  progress_line->size_and_rank.store_release(std::uint64_t{layout.size} << 32 | static_cast<std::uint64_t>(rank));
  progress_line->next.store_release(0);
  progress_line->refused.store_release(0);  // its generation comes with settle()
  auto* call_descriptors = reinterpret_cast<Note*>(block + BlockLayout::call_descriptors());
  for (unsigned i = 0; i < kCallDescriptors; ++i) call_descriptors[i].number.store_release(0);
}

}  // namespace

// Memory for what this rank knows of the members.
bool Team::allocate(int rank, int size, Lanes* lanes) {
  rank_ = rank;
  size_ = size;
  lanes_ = lanes;
  members_ = static_cast<std::atomic<Member*>*>(std::malloc(size * sizeof *members_));
  void* const known = std::malloc(size * (whole_ == nullptr ? sizeof *peers_ : sizeof *directories_));
  if (whole_ == nullptr) {
    peers_ = static_cast<Peer*>(known);
  } else {
    directories_ = static_cast<const char**>(known);
  }
  if (members_ == nullptr || known == nullptr) return false;
  for (int r = 0; r < size; ++r) {
    new (members_ + r) std::atomic<Member*>(nullptr);
    if (peers_ != nullptr) new (peers_ + r) Peer;
  }
  stop_single_copy();
  // Later there are some to borrow, unless several threads call at the same time.
  states_ = lanes_->states().borrow(size_, false);
  if (states_ == nullptr) return false;
  give_back(true);
  return true;
}

// A rank that has begun a call cannot go on without these few kilobytes.
void Team::borrow_states() const {
  states_ = lanes_->states().borrow(size_, apart_);
  if (states_ == nullptr) std::abort();
}

void Team::give_back(bool clean) { lanes_->states().give_back(std::exchange(states_, nullptr), clean); }

// Where peers find what this rank makes.
void Team::lay_out(const BlockLayout& layout, char* block) {
  directory_ = reinterpret_cast<Directory*>(block + layout.directory());
  records_ = layout.records();
  board_.reader = OutQueue::kEverybody;
}

Member& Team::make_member(int rank) const {
  void* const memory = std::malloc(sizeof(Member));
  if (memory == nullptr) std::abort();  // a few words
  auto* const m = new (memory) Member;
  m->team = const_cast<Team*>(this);
  m->segment = peer(rank).segment;
  m->board = {&kUnwritten, 1, rank, nullptr, 0, m};
  members_[rank].store(m, std::memory_order_release);
  return *m;
}

Channels& Team::make_channels(int rank) const {
  void* const memory = std::malloc(sizeof(Channels));
  if (memory == nullptr) std::abort();  // a few words
  auto* const channels = new (memory) Channels;
  Member& m = member(rank);
  channels->to.reader = rank;
  channels->to.measure_at = measure_from_;
  channels->from = {&kUnwritten, 1, rank, nullptr, 0, &m};
  m.channels = channels;
  return *channels;
}

Team* Team::create(int rank, int size, std::uint64_t instance, char* block, Lanes* lanes) {
  void* const memory = std::malloc(sizeof(Team));
  if (memory == nullptr) return nullptr;
  auto* team = new (memory) Team;
  if (!team->allocate(rank, size, lanes)) {
    destroy(team);
    return nullptr;
  }
  const BlockLayout layout{static_cast<unsigned>(size)};
  reset_block(block, rank, layout, instance);
  team->lay_out(layout, block);
  team->instance_ = instance;
  team->line_ = reinterpret_cast<MemberLine*>(block);
  team->space_ = {layout, static_cast<std::uint64_t>(block - lanes->segment())};
  team->progress_line_ = reinterpret_cast<ProgressLine*>(block + BlockLayout::progress_line());
  team->call_descriptors_ = reinterpret_cast<Note*>(block + BlockLayout::call_descriptors());
  return team;
}

void Team::reset_tier(char* block, unsigned most_members) {
  reset_directory(*reinterpret_cast<Directory*>(block), most_members);
}

Team* Team::create_tier(int index, const int* ranks, int size, char* block) {
  void* const memory = std::malloc(sizeof(Team));
  if (memory == nullptr) return nullptr;
  auto* tier = new (memory) Team;
  tier->whole_ = this;
  if (!tier->allocate(index, size, lanes_)) {
    destroy(tier);
    return nullptr;
  }
  tier->lay_out({static_cast<unsigned>(size), true}, block);
  tier->ranks_ = ranks;
  tier->instance_ = instance_;
  tier->line_ = line_;
  tier->progress_line_ = progress_line_;
  tier->call_descriptors_ = call_descriptors_;
  tier->next_tier_ = next_tier_;
  next_tier_ = tier;
  return tier;
}

void Team::settle_tier() {
  generation_ = whole_->generation_;
  policy_ = whole_->policy_;
  fragments_ = whole_->fragments_;
  check_ = whole_->check_;
  past_bytes_ = whole_->past_bytes_;
  memory_ = whole_->memory_;
  far_from(whole_->far_ns_);
}

void Team::settle(std::uint64_t generation, const WaitPolicy& policy, Fragments fragments) {
  generation_ = generation;
  policy_ = policy;
  fragments_ = fragments;
  progress_line_->generation.store_release(generation);
}

void Team::set_single_copy_from(const Tuning::SingleCopyFrom& bytes) {
  const auto set = [this](Collective c, std::uint64_t from) { single_copy_from_bytes_[static_cast<int>(c)] = from; };
  set(Collective::bcast, bytes.bcast);
  for (const Collective c : {Collective::gather, Collective::gatherv}) set(c, bytes.gather);
  for (const Collective c : {Collective::scatter, Collective::scatterv}) set(c, bytes.scatter);
  for (const Collective c : {Collective::allgather, Collective::allgatherv}) set(c, bytes.allgather);
  for (auto c = static_cast<int>(Collective::alltoall); c <= static_cast<int>(Collective::neighbor_alltoallw); ++c)
    set(static_cast<Collective>(c), bytes.alltoall);
}

void Team::stop_single_copy() {
  for (std::uint64_t& from : single_copy_from_bytes_) from = Tuning::kNever;
}

void Team::far_from(std::uint64_t ns) {
  far_ns_ = ns;
  measure_from_ = ns == 0 || ns == Tuning::kNever || size_ < 2 ? Tuning::kNever : 0;
  board_.measure_at = measure_from_;
  for (int r = 0; r < size_; ++r) {
    const Member* const m = known_member(r);
    if (m != nullptr && m->channels != nullptr) m->channels->to.measure_at = measure_from_;
  }
}

// If the reader has not written a line since we looked last, the line comes out of our own cache.
// Readers of the board take turns.
void Team::measure(OutQueue& queue) {
  const bool board = queue.reader == OutQueue::kEverybody;
  if (board) {
    measured_ = (measured_ + 1) % size_;
    if (measured_ == rank_) measured_ = (measured_ + 1) % size_;
  }
  const int rank = board ? measured_ : queue.reader;
  const Ack* const line = line_of(rank);
  if (line == nullptr) return;
  Member& reader = member(rank);
  const Atomic<std::uint64_t>& count = board ? line->board : line->channel;
  const std::uint64_t before = sys::now_ns();
  const std::uint64_t begin = sys::now_ns();
  // No later load, of this line or further down, goes ahead of the clock.
  sys::hold_back();
  const std::uint64_t now = count.load_acquire();
  const std::uint64_t took = sys::now_ns() - begin, clock = begin - before;
  if (now == (board ? reader.heard : queue.acked)) return;
  queue.measure_at = queue.written + kTuning.measured_every;
  const int was = reader.distance.is_far() ? 1 : 0;
  reader.distance.took(took > clock ? took - clock : 0, far_ns_);
  far_members_ += (reader.distance.is_far() ? 1 : 0) - was;
}

void Team::destroy(Team* team) {
  while (team != nullptr) {
    Team* const next = team->next_tier_;
    for (int r = 0; team->members_ != nullptr && r < team->size_; ++r) {
      Member* const m = team->known_member(r);
      if (m != nullptr) std::free(m->channels);
      std::free(m);
    }
    std::free(team->members_);
    std::free(team->peers_);
    std::free(team->directories_);
    std::free(team->scratch_);
    team->~Team();
    std::free(team);
    team = next;
  }
}

// A member that has left has read all. One that has no line yet has read nothing.
std::uint64_t Team::acked_by(int reader, bool board) const {
  const Peer& p = peer(reader);
  const Ack* const line = line_of(reader);
  if (line == nullptr) [[unlikely]]
    return p.is_here() ? 0 : ~std::uint64_t{0};
  const std::uint64_t count = board ? line->board.load_acquire() : line->channel.load_acquire();  // pairs with consume
  return line->generation.load_acquire() == p.instance ? count : ~std::uint64_t{0};
}

const Ack* Team::find_line(int member, Member* m) const {
  const std::uint32_t at = directory(member).ack(static_cast<unsigned>(rank_)).load_acquire();  // pairs with make_line
  const Peer& p = peer(member);
  if (at == 0 || !p.is_here()) return nullptr;
  const auto* const line = reinterpret_cast<const Ack*>(p.segment + std::uint64_t{at} * kLineBytes);
  if (m != nullptr) m->ack.store(line, std::memory_order_release);
  return line;
}

// Generation first, see lines.hpp.
Ack* Team::make_line(Member& m) {
  const std::uint64_t offset = whole().space_.take_line();
  const std::uint64_t at = offset / kLineBytes;
  if (at == 0 || at != static_cast<std::uint32_t>(at)) return nullptr;
  Ack& line = *reinterpret_cast<Ack*>(lanes_->segment() + offset);
  for (Atomic<std::uint64_t>* const word : {&line.generation, &line.board, &line.channel, &line.refused, &line.error,
                                            &line.ready, &line.channel_ring, &line.channel_moved.at})
    word->store_release(0);
  line.generation.store_release(instance_);
  directory_->ack(static_cast<unsigned>(m.board.writer)).store_release(static_cast<std::uint32_t>(at));
  return m.own = &line;
}

std::uint64_t Team::hear(const OutQueue& queue) {
  if (queue.reader != OutQueue::kEverybody) return acked_by(queue.reader, false);
  std::uint64_t least = ~std::uint64_t{0};
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    Member& m = member(r);
    m.heard = acked_by(r, true);
    if (m.heard < least) least = m.heard;
  }
  return least;
}

// Those that wait in a tier look at the same line.
void Team::leave_calls(std::uint64_t number, std::uint64_t gave_up) {
  line_->gave_up.store_release(gave_up);
  line_->left.store_release(number);  // pairs with has_left
}

void Team::give_up(std::uint64_t number, GivenUp::Why why) {
  given_up_ = GivenUp{given_up_}.then(number, why).word;
  for (Team* team = this; team != nullptr; team = team->next_tier_) team->left_ = number;
  leave_calls(number, given_up_);
}

void Team::retire() { leave_calls(kEveryCall, given_up_); }

const Note* Peer::notes() const {
  return segment == nullptr ? nullptr : reinterpret_cast<const Note*>(segment + Segment::kNotesOffset);
}

Status Team::given_up(int member, std::uint64_t number) const {
  const Peer& p = peer(member);
  const GivenUp::Why why = GivenUp{p.line().gave_up.load_acquire()}.why(number);
  if (why == GivenUp::no || !p.is_here()) return Status::ok;
  switch (why) {
    case GivenUp::other_length: return Status::other_length;
    case GivenUp::lost: return Status::peer_lost;
    default: return Status::peer_failed;
  }
}

bool Team::may_have_given_up(int member, std::uint64_t number) const {
  const GivenUp given{peer(member).line().gave_up.load_acquire()};
  const std::uint64_t since = (given.last() - number) % GivenUp::kNumbers;
  if (given.word == 0 || since >= GivenUp::kNumbers / 2) return false;
  return since >= GivenUp::kRemembered || given.why(number) != GivenUp::no;
}

bool Team::is_odd(int writer, const Record& record) const {
  const auto collective = static_cast<Collective>(record.tag() & 0xff);
  const bool excused = collective > Collective::reduce || (collective == Collective::reduce && !record.is_whole());
  return !troubled_ && !excused && record.kind() != RecordKind::poison && !may_have_given_up(writer, record.call >> 8);
}

bool Team::is_past(int reader, std::uint64_t position, std::uint64_t number) const {
  const bool board = reader == OutQueue::kEverybody;
  for (int r = board ? 0 : reader; r < (board ? size_ : reader + 1); ++r) {
    if (r != rank_ && acked_by(r, board) <= position && !has_left(r, number)) return false;
  }
  return true;
}

bool Team::is_past(const OutQueue& queue) const {
  return queue.written == 0 || is_past(queue.reader, queue.written - 1, kEveryCall);
}

// An unread record keeps the block until its reader has freed the communicator, even if the reader
// has left the call: it may still look. A call that this rank gave up keeps the block until all
// have left that call: a rank that is late may want to know.
bool Team::drained() {
  bool all = true;
  for (Team* team = this; team != nullptr; team = team->next_tier_) all = team->is_drained_itself() && all;
  return all;
}

bool Team::is_drained_itself() {
  if (is_drained.load(std::memory_order_acquire)) return true;
  if (!is_past(board_)) return false;
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    const Member* const m = known_member(r);
    if (m != nullptr && m->channels != nullptr && !is_past(m->channels->to)) return false;
    if ((left_ != 0 && !has_left(r, left_)) || !has_read_claims(r)) return false;
  }
  is_drained.store(true, std::memory_order_release);
  return true;
}

// A member that has not ended our last call may still read our description of it. A tier has none.
bool Team::has_read_claims(int member) const {
  if (whole_ != nullptr || check_ < CheckLevel::strict || has_left(member, calls_)) return true;
  const Place place = where(*this, member);
  return !place.known || place.freed || place.ended >= calls_;
}

Refused Team::refused(int rank) const {
  const ProgressLine& line = rank == rank_ ? *progress_line_ : peer(rank).progress_line();
  const std::uint64_t word = line.refused.load_acquire();
  return line.generation.load_acquire() == generation_ ? Refused::unpacked(word) : Refused{};
}

unsigned Team::readers_of(int member) const {
  unsigned readers = 0;
  for (int r = 0; r < size(); ++r) {
    readers += r != rank() && peer(r).progress_line().reading.load_relaxed() == static_cast<std::uint64_t>(member) + 1;
  }
  return readers;
}

}  // namespace stretto::shm
