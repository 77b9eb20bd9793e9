// SPDX-License-Identifier: BSD-3-Clause
// The recording of one rank: a file that its process fills by stores (sys::growing_file_map), so
// that it can be read whatever ends the process. docs/recording-format.md describes it for readers
// of other projects.
//
//   Header    kChunkBytes, of which the struct takes the beginning
//   Chunk     kChunkBytes each: which stream it belongs to, how many bytes are used, the bytes
//
// A stream is what its chunks hold, in the order of the file. All numbers are little-endian. A
// varint has 7 bits a byte, the lowest first; a zigzag varint maps 0, -1, 1, -2 to 0, 1, 2, 3.
//
// The calls of a rank are a sequence of terms. A term is all that is known of a call but its times:
// function, communicator, peers relative to the rank, lengths, requests by slot. So the calls of a
// loop have the same terms in each turn, and the same terms on all ranks of a regular program.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::record {

inline constexpr char kMagic[8] = {'S', 'T', 'R', 'E', 'T', 'R', 'E', 'C'};
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::uint32_t kOldestVersion = 1;  // that is read; it lacks Role::group
inline constexpr std::size_t kChunkBytes = std::size_t{16} << 10;
inline constexpr std::size_t kTextBytes = 256;

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t chunk_bytes;
  std::int32_t rank, ranks;
  std::uint32_t finished;   // 1: the rank has reached MPI_Finalize
  std::uint32_t one_clock;  // 1: the same on all hosts
  // sys::counter() and the real-time clock in nanoseconds: at the first call's begin, and when the
  // newest chunk began. Counter ticks become seconds by their differences.
  std::uint64_t first_counter, last_counter;
  std::uint64_t first_ns, last_ns;
  double bound;                 // how far a sum of times may be off, as a part of it
  std::uint64_t unused;         // 0
  char host[kTextBytes];        // its name
  char mpi[kTextBytes];         // what the MPI says of its version
  char program[kTextBytes];     // the command line, cut
  char processors[kTextBytes];  // those that the rank may use
};
static_assert(sizeof(Header) <= kChunkBytes);

enum class Stream : std::uint32_t {
  none,         // the chunk has no stream yet
  definitions,  // Definition after Definition
  sequence,     // which term each call has: tokens
  gaps,         // before each call: from the end of the one before in its thread. Codes of times
  durations,    // of each call. Codes of times
  processor,    // of some gaps: how much of it the thread had a processor
  totals,       // at the end: what the times of each term sum up to exactly
  count_
};
inline constexpr int kStreams = static_cast<int>(Stream::count_);

struct Chunk {
  std::uint32_t stream;
  std::uint32_t used;  // grows; never above kChunkBytes - sizeof(Chunk)
};
inline constexpr std::size_t kChunkRoom = kChunkBytes - sizeof(Chunk);

// ---- Definitions: a kind and a length in bytes as varints, then so many bytes ----

enum class Definition : std::uint8_t {
  term,       // words: for each a role and a count of values as varints, then zigzag varints
  function,   // number of the function, then its name
  place,      // number of a place in the program, then "/path/app+0x1234" or "solve.py:33 in step"
  comm,       // zigzag varints: id, flags, my rank, size, remote size, then runs of ranks in
              // MPI_COMM_WORLD: (first, step, count). A communicator that is made when another one
              // with the same members has gone has its id
  neighbors,  // zigzag varints: comm, number of sources, sources, number of destinations, these
};
inline constexpr int kDefinitions = 5;

// Flags of a communicator.
inline constexpr std::int64_t kInter = 1, kForeign = 2;  // foreign: members outside of MPI_COMM_WORLD

// What a word of a term says. Lengths are in bytes.
enum class Role : std::uint8_t {
  function,       // number of its name
  place,          // where in the program
  thread,         // 0 is left out
  comm,           //
  destination,    // a Peer
  source,         // a Peer
  send_tag,       //
  receive_tag,    // kAnyTag
  sends,          // bytes; of a collective with one count for all: to each peer
  receives,       // room in bytes
  root,           // rank in the communicator; kRootHere, kRootNone of intercommunicators
  sends_each,     // bytes to each peer
  receives_each,  // bytes from each peer
  made,           // slots of requests that the call has made
  waited,         // slots of requests that it was given
  ended,          // which of `waited` have ended, by position. Without it all, unless `flag` is 0
  flag,           // what MPI_Test, MPI_Iprobe and their like have said
  got,            // of receives and probes with wildcards: position in `waited` or 0, source as a Peer, tag
  made_comm,      // its id; `comm` is what it was made of
  window,         // number
  target,         // rank in the window
  file,           // number
  in_place,       //
  commutes,       // 0: the operation does not commute
  code,           // what the call has returned, if it was no success
  started,        // slots of persistent requests that begin
  partitions,     //
  element,        // bytes of an element that a reduction combines
  named,          // slots of requests that the call looks at, cancels or gives up
  group,          // Peers in MPI_COMM_WORLD: of MPI_Win_post and MPI_Win_start
  count_
};
inline constexpr int kRoles = static_cast<int>(Role::count_);

inline constexpr std::int64_t kAnyTag = -1;
inline constexpr std::int64_t kRootHere = -3, kRootNone = -2;

// A peer as a word: relative to the rank, so that neighbours are the same word on all ranks.
enum class PeerKind : std::uint8_t { rank, any, none };
inline constexpr std::int64_t peer_word(PeerKind kind, std::int64_t relative = 0) {
  return relative * 4 + static_cast<std::int64_t>(kind);
}
inline constexpr PeerKind peer_kind(std::int64_t word) { return static_cast<PeerKind>(word & 3); }
inline constexpr std::int64_t peer_relative(std::int64_t word) { return (word - (word & 3)) / 4; }

// ---- Tokens of the sequence ----
// A byte below kWide is the number of a term. Behind kWide it follows as a varint. Behind kCopy a
// distance follows as a varint, and a length of 8 bytes: so many terms are those that came
// `distance` before. The length grows in place while the loop goes on.
inline constexpr std::uint8_t kWide = 254, kCopy = 255;

// ---- Codes of times ----
// A byte below kExplicit: so many times are as their terms' last explicit ones. Else 15 bits, of
// which this byte has the higher 7: a length in ticks of the counter on a scale of kStepsEach steps
// an octave; 0 is none.
inline constexpr std::uint8_t kExplicit = 128;
inline constexpr double kStepsEach = 64;

}  // namespace stretto::record
