// SPDX-License-Identifier: BSD-3-Clause
#include "shm/members.hpp"

#include <cstdlib>
#include <initializer_list>
#include <new>

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

const Note* Peer::notes() const {
  return segment == nullptr ? nullptr : reinterpret_cast<const Note*>(segment + Segment::kNotesOffset);
}

Members::~Members() {
  for (int r = 0; members_ != nullptr && r < size_; ++r) {
    Member* const m = known_member(r);
    if (m != nullptr) std::free(m->channels);
    std::free(m);
  }
  std::free(members_);
  std::free(peers_);
  std::free(directories_);
}

bool Members::allocate(int rank, int size) {
  rank_ = rank;
  size_ = size;
  const auto count = static_cast<std::size_t>(size);
  members_ = static_cast<std::atomic<Member*>*>(std::malloc(count * sizeof *members_));
  void* const known = std::malloc(count * (is_tier() ? sizeof *directories_ : sizeof *peers_));
  if (is_tier()) {
    directories_ = static_cast<const char**>(known);
  } else {
    peers_ = static_cast<Peer*>(known);
  }
  if (members_ == nullptr || known == nullptr) return false;
  for (int r = 0; r < size; ++r) {
    new (members_ + r) std::atomic<Member*>(nullptr);
    if (peers_ != nullptr) new (peers_ + r) Peer;
  }
  return true;
}

bool Members::open(int rank, int size, std::uint64_t instance, char* block, char* segment) {
  if (!allocate(rank, size)) return false;
  const BlockLayout layout{static_cast<unsigned>(size)};
  reset_block(block, rank, layout, instance);
  instance_ = instance;
  segment_ = segment;
  block_ = block;
  directory_ = reinterpret_cast<Directory*>(block + layout.directory());
  space_ = {layout, static_cast<std::uint64_t>(block - segment)};
  return true;
}

bool Members::open_tier(int index, int size, const int* ranks, char* block, Members& whole) {
  whole_ = &whole;
  if (!allocate(index, size)) return false;
  ranks_ = ranks;
  instance_ = whole.instance_;
  segment_ = whole.segment_;
  block_ = whole.block_;
  directory_ = reinterpret_cast<Directory*>(block + BlockLayout{static_cast<unsigned>(size), true}.directory());
  return true;
}

void Members::reset_tier(char* block, unsigned most_members) {
  reset_directory(*reinterpret_cast<Directory*>(block), most_members);
}

Member& Members::make_member(int rank) const {
  void* const memory = std::malloc(sizeof(Member));
  if (memory == nullptr) std::abort();  // a few words
  auto* const m = new (memory) Member;
  m->members = const_cast<Members*>(this);
  m->segment = peer(rank).segment;
  m->board = {&kUnwritten, 1, rank, nullptr, 0, m};
  members_[rank].store(m, std::memory_order_release);
  return *m;
}

// A member that has left has read all. One that has no line yet has read nothing.
std::uint64_t Members::acked_by(int reader, bool board) const {
  const Peer& p = peer(reader);
  const Ack* const line = line_of(reader);
  if (line == nullptr) [[unlikely]]
    return p.is_here() ? 0 : ~std::uint64_t{0};
  const std::uint64_t count = board ? line->board.load_acquire() : line->channel.load_acquire();  // pairs with consume
  return line->generation.load_acquire() == p.instance ? count : ~std::uint64_t{0};
}

const Ack* Members::find_line(int member, Member* m) const {
  const std::uint32_t at = directory(member).ack(static_cast<unsigned>(rank_)).load_acquire();  // pairs with make_line
  const Peer& p = peer(member);
  if (at == 0 || !p.is_here()) return nullptr;
  const auto* const line = reinterpret_cast<const Ack*>(p.segment + std::uint64_t{at} * kLineBytes);
  if (m != nullptr) m->ack.store(line, std::memory_order_release);
  return line;
}

// Generation first, see lines.hpp.
Ack* Members::make_line(Member& m) {
  const std::uint64_t offset = whole().space_.take_line();
  const std::uint64_t place = offset / kLineBytes;
  if (place == 0 || place != static_cast<std::uint32_t>(place)) return nullptr;
  Ack& line = *reinterpret_cast<Ack*>(at(offset));
  for (Atomic<std::uint64_t>* const word : {&line.generation, &line.board, &line.channel, &line.refused, &line.error,
                                            &line.ready, &line.channel_ring, &line.channel_moved.at})
    word->store_release(0);
  line.generation.store_release(instance_);
  directory_->ack(static_cast<unsigned>(m.board.writer)).store_release(static_cast<std::uint32_t>(place));
  return m.own = &line;
}

bool InQueue::open() {
  if (ring != &kUnwritten) return false;
  Members& members = *from->members;
  const bool board = this == &from->board;
  const std::uint64_t word = board ? members.board_ring(writer) : members.channel_ring(writer);
  if (word == 0) return false;
  Ack* const line = members.own_line(*from);
  if (line == nullptr) {
    members.note_no_memory();
    return false;
  }
  ack = board ? &line->board : &line->channel;
  ring = reinterpret_cast<const Record*>(from->segment + (word >> 8));
  records = 1u << (word & 0xff);
  return true;
}

}  // namespace stretto::shm
