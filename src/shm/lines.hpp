// SPDX-License-Identifier: BSD-3-Clause
// What lies in shared memory. The owner of a segment writes everything here, and its peers read it
// through read-only mappings. Shared memory has offsets, never pointers.
//
// A communicator costs every member one block of control lines in its own segment:
//
//   member line     whether this member is still here, and which calls it gave up
//   progress line   the call this member is in, for peers that wait for long (call_check.hpp)
//   descriptors     what it says about its last two calls, where calls are matched first
//   directory       where its board and its ack lines are
//
// and, from their first use on, in the block or in a place of its own (line_space.hpp):
//
//   board           ring of records that all other members read, in order
//   ack[s]          how far this member has read the board of member s and the channel from s to it
//   channel[d]      ring of records that member d alone reads, in order; one per member
//
// A record describes one fragment of a message. Its payload lies in the record itself or in a slot
// of the writer's segment. Or a record publishes a whole message for single copy. Readers copy that
// message out of the writer's private memory, and the writer leaves it alone until all have acked.
// A reader that may not read that memory (any more) acks too, but says so before. The writer then
// sends the message again, through its channel to that reader. The first record of a message gives
// the message's length, so a reader needs nothing but the records.
//
// Order. A writer fills a record (and its slot) and then stores `sequence` with release [publish].
// A reader that has loaded the expected `sequence` with acquire [peek] sees all of it. The reader
// copies the payload out and stores its position in the ack line with release [consume]. The writer
// loads that with acquire [acked_by] before it writes over the record or the slot. Both counters
// only grow. No process resets anything that another may look at: see `generation`.
//
// Generation. Freeing a communicator does not synchronise. A member may give its block to another
// communicator as soon as all peers have read all that it published. It need not wait until peers
// have looked at its acks one last time. So the member line and each ack line name the instance of
// the block, which the member told its peers when the communicator was made. A writer that finds
// another instance there knows that the member has left. The member could do so only after reading
// everything, so the writer takes it as "all acked".
//
// The new owner stores generation 0 before it resets the counters. A reader loads the counter first
// (acquire) and the generation second. So it never takes a counter of the new instance for one of
// the old [acked_by].
//
// First use. Boards, channels and ack lines have addresses from the start, but no memory until
// their owner needs them. So peers never look at one before the owner says where it is:
//
//   ring      The writer backs a ring with memory and clears the ring's sequences. Then it stores
//             the ring's place with release: a board's in the directory, a channel's in the ack
//             line of the channel's reader [Queues::open]. The reader looks there while it knows no
//             ring [InQueue::open].
//   ack line  Before a reader reads its first record of a writer, it makes its ack line for that
//             writer. It stores generation 0, resets the counters, stores the instance of its
//             block, and then, with release, the line's place in its directory [Members::own_line].
//             The writer looks there while it knows no line [Members::line_of]. While there is
//             none, the reader has read nothing.
//
// A peer that finds a place loads it with acquire, and then the generation of the member line. The
// first word of a block changes when the block is given back, before anything else in it does. So a
// place that a later owner has stored is not taken for ours.
//
// Without memory the call of the ring's or line's owner fails. `no_memory` in its member line says
// so to the peers that wait for it, whose calls then fail as well.
//
// Moves. A queue of a rooted collective is full when its writer is ahead of its readers by as many
// records as it has. If the readers are long in coming, and the message lies in records, the writer
// moves the queue. It goes to a longer ring, in a block of its own [Queues::make_room]:
//
//   writer   clears the new ring's sequences. It stores the ring's place in `Moved::ring` of
//            its directory (a board) or of the reader's ack line (a channel). Then it stores with
//            release, in `Moved::at`, the position at which the queue goes on there. Records from
//            this position on lie in the new ring.
//   reader   finds no record at its position for a while and loads `at` with acquire. If `at` is
//            this position, the reader goes on in the new ring.
//
// Positions and acks go on as they were. The writer no longer writes to the old ring, so a reader
// that is behind finds all records in it. A queue moves again only when all readers have read in
// the new ring: until then each may need the word. The new ring is given back with the block, under
// the same rule: an unread record keeps both. The ring lies within what its readers have mapped of
// the writer's segment. All this costs the polling of a record nothing.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/collective.hpp"
#include "base/mistake.hpp"
#include "base/signature.hpp"
#include "base/tuning.hpp"
#include "shm/atomic.hpp"
#include "shm/journal.hpp"

namespace stretto::shm {

inline constexpr std::uint64_t kSegmentMagic = 0x6f74746572745331;  // "1Strette"

struct alignas(kLineBytes) SegmentHeader {
  std::uint64_t magic;
  // Random: proves that a descriptor leads to the process that announced it.
  std::uint64_t identity;
  std::uint32_t layout_version;
  std::uint32_t pid;
  Atomic<std::uint32_t> left;  // 1: its owner makes no more calls
};

enum class RecordKind : std::uint8_t { inlined, slot, single_copy, poison };

inline constexpr std::size_t kInlineBytes = 96;  // in one record
// Of the longest message in records.
inline constexpr std::size_t kMostInlineBytes = kTuning.inline_records * kInlineBytes;

// If a collective's data may go one of several ways, its records say which.
inline constexpr unsigned kWayShift = 5;
inline constexpr std::uint64_t kWays = 7u << kWayShift;
static_assert(kCollectives <= 1 << kWayShift);

struct alignas(kLineBytes) Record {
  Atomic<std::uint64_t> sequence;  // position in the ring's history + 1
  std::uint64_t call;              // call number << 8 | the way its data go << 5 | collective
  std::uint64_t message_bytes;     // length of the whole message
  std::uint32_t fragment_bytes;    // so many of them are in this record
  // RecordKind, and above it what sender and reader must agree on (Call::stamp).
  std::uint32_t kind_and_stamp;
  union {
    std::uint64_t slot_offset;  // kind slot: where in the writer's segment
    // Kind single_copy: where in the writer's memory the whole message lies.
    std::uint64_t address;
    // Kind inlined: short payloads share the first cache line with the header.
    char payload[kInlineBytes];
  };

  void describe(RecordKind kind, Stamp stamp) { kind_and_stamp = static_cast<std::uint32_t>(kind) | stamp << 8; }
  [[nodiscard]] std::uint64_t tag() const { return call & ~kWays; }
  [[nodiscard]] bool is_whole() const { return (call & kWays) == 0; }
  [[nodiscard]] RecordKind kind() const { return static_cast<RecordKind>(kind_and_stamp & 0xff); }
  [[nodiscard]] Stamp stamp() const { return kind_and_stamp >> 8; }
};
static_assert(sizeof(Record) == kLineBytes && offsetof(Record, payload) == 32);
// Of the payload, beside the header.
inline constexpr std::size_t kFirstLineBytes = 64 - offsetof(Record, payload);

// Where a queue goes on.
struct Moved {
  Atomic<std::uint64_t> at;    // the position of the first record there + 1; 0: it has not moved
  Atomic<std::uint64_t> ring;  // its offset in the writer's segment << 8 | log2 of its records
};

struct alignas(kLineBytes) Ack {
  Atomic<std::uint64_t> generation;  // instance of the block: each member has one of its own
  Atomic<std::uint64_t> board;       // records read from the board of this line's member
  Atomic<std::uint64_t> channel;     // records read from that member's channel to us
  // The call of a single-copy message that could not be read. Stored before the message is acked.
  Atomic<std::uint64_t> refused;
  // Why: an errno value, stored before `refused`.
  Atomic<std::uint64_t> error;
  // Call number << 32 | for so many long messages in it there are places (transport/shm.hpp).
  Atomic<std::uint64_t> ready;
  Atomic<std::uint64_t> channel_ring;  // this member's channel to that of the line, as Moved::ring; 0: none yet
  Moved channel_moved;
};
static_assert(sizeof(Ack) == kLineBytes);

// What a member tells all others. It is the first line of the member's block.
struct alignas(kLineBytes) MemberLine {
  Atomic<std::uint64_t> generation;  // as in Ack
  // The last call that this member gave up, those before it, and why: see GivenUp.
  Atomic<std::uint64_t> gave_up;
  // In this call and all before it, this member reads and publishes nothing more.
  Atomic<std::uint64_t> left;
  // The last call in which it had no memory for a ring or a line.
  Atomic<std::uint64_t> no_memory;
};
static_assert(sizeof(MemberLine) == kLineBytes);

// Where a member's board and its ack lines are, from their first use on.
struct Directory {
  Atomic<std::uint64_t> board_ring;  // as Moved::ring; 0: none yet
  Moved board_moved;
  // Place of the ack line for each member, in lines from the start of this member's segment. 0:
  // none yet.
  [[nodiscard]] const Atomic<std::uint32_t>& ack(unsigned member) const {
    return reinterpret_cast<const Atomic<std::uint32_t>*>(this + 1)[member];
  }
  [[nodiscard]] Atomic<std::uint32_t>& ack(unsigned member) {
    return reinterpret_cast<Atomic<std::uint32_t>*>(this + 1)[member];
  }
  [[nodiscard]] static constexpr std::size_t bytes(unsigned size) {
    return (sizeof(Directory) + size * sizeof(Atomic<std::uint32_t>) + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
};

// Where a member stands. It stores `call` after the note that says what the call is, and again when
// the call returns.
struct alignas(kLineBytes) ProgressLine {
  // The communicator's. As in Ack, a reader loads it last and its owner stores it first. Inverted
  // when the member has left.
  Atomic<std::uint64_t> generation;
  // Its latest call's number << 8 | kEnded, if it has ended | the place of its note.
  Atomic<std::uint64_t> call;
  // 1 + the member whose private memory it copies from; 0: none. A hint.
  Atomic<std::uint64_t> reading;
  Atomic<std::uint64_t> size_and_rank;  // members << 32 | which of them this is
  // Offset of another communicator's line (ledger.hpp). 0: this is the last.
  Atomic<std::uint64_t> next;
  Atomic<std::uint64_t> refused;  // the last call that was refused here: see Refused; 0: none
  static constexpr std::uint64_t kEnded = 0x80;
  static constexpr std::uint64_t kPlace = 0x7f;
};
static_assert(kNotes <= ProgressLine::kPlace + 1);

// A call whose arguments were refused before it began. It took no number: peers in the call of that
// number wait for the rank's next one.
struct Refused {
  std::uint64_t number = 0;  // of the rank's next call; 0: none was refused
  Collective collective{};
  Mistake mistake{};

  [[nodiscard]] std::uint64_t packed() const {
    return number << 16 | static_cast<std::uint64_t>(collective) << 8 | static_cast<std::uint64_t>(mistake);
  }
  static Refused unpacked(std::uint64_t word) {
    return {word >> 16, static_cast<Collective>(word >> 8 & 0xff), static_cast<Mistake>(word & 0xff)};
  }
};
static_assert(sizeof(ProgressLine) == kLineBytes);

inline constexpr unsigned kCallDescriptors = 2;  // no member is further ahead than one call
// A call given up. A rank may be unable to go on: its arguments are wrong, a peer's data are of
// another length, or a peer gave up. It says so and returns in the midst of the call.
//
// Records that it has not read stay in their queues. A rank that reads on there in a later call
// drops what belongs to an earlier one. Slots that only ranks which have left would read are free.
//
// The member stores `gave_up` before `left`, both with release, after all that it published and
// read in the call. A peer that sees `left` and still misses something from the member will miss it
// for ever. A slow peer may look only when this member has given up other calls since. So the last
// ones are remembered.
struct GivenUp {
  enum Why : unsigned { no, failed, other_length, lost };  // lost: a rank on another node
  static constexpr unsigned kRemembered = 12;
  static constexpr unsigned kBits = 2;
  static constexpr std::uint64_t kReasons = (std::uint64_t{1} << (kRemembered * kBits)) - 1;
  static constexpr std::uint64_t kNumbers = std::uint64_t{1} << (64 - kRemembered * kBits);
  // Number of the last such call % kNumbers << 24 | why << 2k for the call k before it.
  std::uint64_t word;

  [[nodiscard]] std::uint64_t last() const { return word >> (kRemembered * kBits); }
  [[nodiscard]] Why why(std::uint64_t number) const {
    const std::uint64_t before = (last() - number) % kNumbers;
    return before < kRemembered ? static_cast<Why>(word >> (before * kBits) & 3) : no;
  }
  [[nodiscard]] GivenUp then(std::uint64_t number, Why why) const {
    const std::uint64_t since = (number - last()) % kNumbers;
    const std::uint64_t earlier = since < kRemembered ? (word & kReasons) << (since * kBits) & kReasons : 0;
    return {number % kNumbers << (kRemembered * kBits) | earlier | why};
  }
};

// Records of a queue, a power of two. A writer that has filled a queue looks at the reader's ack
// line, and waits for that cache line. So queues are long where there are few of them.
inline constexpr unsigned kLeastRecords = 8;
inline constexpr unsigned kMostRecords = 32;
// Of all queues of a member together, where that leaves each the least.
inline constexpr unsigned kMemberRecords = 256;
constexpr unsigned queue_records(unsigned size) {
  const unsigned share = std::bit_floor(kMemberRecords / (size + 1));
  return share < kLeastRecords ? kLeastRecords : share > kMostRecords ? kMostRecords : share;
}

// A rank may be ahead of its readers by so many calls whose data lie in records. A queue that moves
// has room for them.
inline constexpr unsigned kCallsAhead = 256;
constexpr unsigned records_ahead(std::uint64_t message_bytes) {
  const std::uint64_t records = message_bytes <= kInlineBytes ? 1 : (message_bytes + kInlineBytes - 1) / kInlineBytes;
  return std::bit_ceil(kCallsAhead * static_cast<unsigned>(records));
}
// All queues of a member take so many bytes when they have moved: its board and a channel to each
// other member. In large communicators not all move.
constexpr std::size_t rings_bytes(unsigned size) {
  constexpr unsigned kMostQueues = 24;
  return (size < kMostQueues ? size : kMostQueues) * records_ahead(kMostInlineBytes) * sizeof(Record);
}

// Members with different builds of the library must not meet. The layout version depends on all
// that peers rely on.
inline constexpr std::uint32_t kProtocol = 20;  // advances when the meaning of a field changes
inline constexpr std::uint32_t kLayoutVersion = [] {
  std::uint32_t version = kProtocol;
  for (const std::size_t what : {std::size_t{kLeastRecords}, std::size_t{kMostRecords}, std::size_t{kMemberRecords},
                                 kInlineBytes, kMostInlineBytes, sizeof(Record), sizeof(Ack)}) {
    version = version * 31 + static_cast<std::uint32_t>(what);
  }
  return version;
}();

// Byte offsets within a block for `size` members. The block of a tier (team.hpp) is a directory.
// `size` is then the most members that a tier may have: the directory is in order before members
// know how many they are.
struct BlockLayout {
  unsigned size;
  bool tier = false;

  static constexpr unsigned kFewMembers = 8;  // so many have their ack lines in the block
  static constexpr unsigned kTiers = 12;      // of one rank
  static constexpr unsigned kTierMembers = 16;

  [[nodiscard]] constexpr unsigned records() const { return tier ? kLeastRecords : queue_records(size); }
  [[nodiscard]] constexpr std::size_t ring_bytes() const { return records() * sizeof(Record); }
  // The member line comes first.
  static constexpr std::size_t progress_line() { return sizeof(MemberLine); }
  static constexpr std::size_t call_descriptors() { return progress_line() + sizeof(ProgressLine); }
  // Room in the block for what is used first. A rank of many members mostly needs a ring and a line
  // of its tier. Payloads are stored without atomics, so no ring may come to lie on a line that a
  // late peer still looks at. Blocks of nearly the same length serve each other's communicators.
  // So those with as long rings have as much room for lines, too.
  [[nodiscard]] static constexpr std::size_t lines() { return call_descriptors() + kCallDescriptors * sizeof(Note); }
  [[nodiscard]] constexpr std::size_t lines_bytes() const {
    if (size > kFewMembers) return sizeof(Ack);
    unsigned most = size;
    while (most < kFewMembers && queue_records(most + 1) == queue_records(size)) ++most;
    return most * sizeof(Ack);
  }
  [[nodiscard]] constexpr std::size_t rings() const { return lines() + lines_bytes(); }
  [[nodiscard]] constexpr std::size_t directory() const { return tier ? 0 : rings() + ring_bytes(); }
  [[nodiscard]] constexpr std::size_t bytes() const { return directory() + Directory::bytes(size); }
  // The place of the rest, which has addresses only: ack lines, then rings. It is no part of the
  // block. There is an ack line and a channel for each member, a board, and the same of the tiers
  // and of the rails, which together have no more members.
  [[nodiscard]] constexpr std::size_t place_rings() const {
    return (2 * size + (kTiers + 1) * kTierMembers) * sizeof(Ack);
  }
  [[nodiscard]] constexpr std::size_t place_bytes() const {
    const std::size_t others = 2 * kTiers + (size + 1) + (kTierMembers + 1);
    return place_rings() + size * ring_bytes() + others * kLeastRecords * sizeof(Record);
  }
};

}  // namespace stretto::shm
