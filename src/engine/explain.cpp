// SPDX-License-Identifier: BSD-3-Clause
#include "engine/explain.hpp"

#include <cstdio>
#include <cstring>

#include "base/collective.hpp"
#include "base/log.hpp"
#include "engine/process.hpp"
#include "reduce/reduce.hpp"
#include "shm/call_check.hpp"
#include "sys/sys.hpp"

namespace stretto::engine {

namespace {

using ull = unsigned long long;
using shm::Difference;
using shm::NoteCopy;

constexpr const char* kOpNames[] = {"MPI_SUM",  "MPI_PROD", "MPI_MAX", "MPI_MIN",  "MPI_LAND",   "MPI_LOR",
                                    "MPI_LXOR", "MPI_BAND", "MPI_BOR", "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC"};
static_assert(sizeof kOpNames / sizeof kOpNames[0] == reduce::kOps);

const char* op_name(std::uint8_t op) {
  return op >= 1 && op <= reduce::kOps ? kOpNames[op - 1] : "an operation of the user's";
}

// "2 integers of 4 bytes", "1 real of 8 bytes", "12 bytes".
struct LengthWords {
  char text[48];
  LengthWords(std::uint64_t bytes, ElementCode element) {
    const ElementKind kind = kind_of(element);
    if (kind != ElementKind::integer && kind != ElementKind::real) {
      std::snprintf(text, sizeof text, "%llu bytes", ull{bytes});
      return;
    }
    const std::uint64_t count = bytes / bytes_of(element);
    std::snprintf(text, sizeof text, "%llu %s%s of %u bytes", ull{count},
                  kind == ElementKind::integer ? "integer" : "real", count == 1 ? "" : "s", bytes_of(element));
  }
};

// Calls whose blocks differ in length have no length to tell.
bool has_length(Collective c) {
  return c != Collective::barrier && c != Collective::alltoallv && c != Collective::alltoallw && !is_neighborhood(c);
}

const char* rule(Difference what) {
  switch (what) {
    case Difference::root: return "all ranks must name the same root";
    case Difference::op: return "all ranks must name the same operation";
    case Difference::element: return "all ranks must give the same datatype";
    case Difference::length: return "all ranks must give the same count";
    case Difference::collective:
    case Difference::none: break;
  }
  return "all ranks must call the same collectives in the same order";
}

Status status_of(Difference what) {
  switch (what) {
    case Difference::root: return Status::other_root;
    case Difference::op: return Status::other_op;
    case Difference::element: return Status::other_type;
    case Difference::length: return Status::other_length;
    case Difference::collective:
    case Difference::none: break;
  }
  return Status::mismatch;
}

bool account_of(const Comm& comm, int rank, std::uint64_t number, NoteCopy* note) {
  return note_find(comm.team->peer(rank).notes(), comm.team->generation(), number, note);
}

// The call that this thread is in.
NoteCopy own_call(const shm::Call& call) {
  NoteCopy mine;
  mine.call = call.tag();
  mine.descriptor = call.descriptor();
  mine.caller = shm::t_call.caller;
  mine.number = shm::t_call.note;
  return mine;
}

// The place of this rank's call, then of the other's. In programs whose ranks say their lines
// themselves, the other rank may be about to say its own: this one gives it a moment.
SiteWords sites_of(const Comm& comm, const NoteCopy& mine, int rank, const NoteCopy& theirs) {
  constexpr int kLooks = 20;
  constexpr std::uint64_t kLookNs = 1'000'000;
  const auto says = [](const shm::Note* notes, std::uint64_t number) {
    shm::SourceLine line;
    return shm::Segment::call_sites_beside(notes).lines.read(number, &line);
  };
  const shm::Note* const peers = comm.team->peer(rank).notes();
  NoteCopy now;
  for (int look = 0; look < kLooks && says(comm.process->journal.notes(), mine.number); ++look) {
    const bool is_open =
        note_read(peers[theirs.number % shm::kNotes], &now) && now.number == theirs.number && now.open();
    if (!is_open || says(peers, theirs.number)) break;
    sys::nap_ns(kLookNs);
  }
  SiteWords words;
  words.add(comm, comm.team->rank(), mine);
  words.add(comm, rank, theirs);
  return words;
}

Status contrast(const Comm& comm, const NoteCopy& mine, int rank, const NoteCopy& theirs, Difference what) {
  log_line(LogLevel::error, "communicator of %d ranks, call %llu there: rank %d calls %s, but rank %d calls %s: %s%s",
           comm.team->size(), ull{mine.call >> 8}, comm.team->rank(), CallWords(mine.call, mine.descriptor).text, rank,
           CallWords(theirs.call, theirs.descriptor).text, rule(what), sites_of(comm, mine, rank, theirs).text);
  return status_of(what);
}

// Both ranks make the same call, but one sends a message of another length than the other expects.
// Or it goes another way, which follows from what both give.
Status explain_length(const Comm& comm, const shm::Call& call, const shm::Call::Mismatch& other) {
  const ElementCode element = call.descriptor().element;
  NoteCopy theirs;
  const bool told = account_of(comm, other.rank, call.number(), &theirs);
  const bool other_way = told && other.bytes == other.expected_bytes;
  const std::uint64_t sent = other_way ? theirs.descriptor.bytes : other.bytes;
  const std::uint64_t expected = other_way ? call.descriptor().bytes : other.expected_bytes;
  log_line(LogLevel::error,
           "communicator of %d ranks, call %llu there, %s: rank %d sends %s, but rank %d expects %s: %s%s",
           comm.team->size(), ull{call.number()}, CallName(call.tag()).text, other.rank,
           LengthWords(sent, element).text, comm.team->rank(), LengthWords(expected, element).text,
           rule(Difference::length), sites_of(comm, own_call(call), other.rank, theirs).text);
  return Status::other_length;
}

// The other rank's note of the call is gone, so only its present call can be told.
Status explain_place(const Comm& comm, const shm::Call& call, const shm::Call::Mismatch& other) {
  NoteCopy theirs;
  (void)account_of(comm, other.rank, other.call >> 8, &theirs);
  log_line(LogLevel::error,
           "communicator of %d ranks: rank %d is in call %llu there, %s, but rank %d is in call %llu, %s: %s%s",
           comm.team->size(), comm.team->rank(), ull{call.number()}, CallName(call.tag()).text, other.rank,
           ull{other.call >> 8}, CallName(other.call).text, rule(Difference::none),
           sites_of(comm, own_call(call), other.rank, theirs).text);
  return Status::mismatch;
}

// Data of an earlier call that this rank did not take.
Status explain_left_over(const Comm& comm, int rank, std::uint64_t their_call) {
  NoteCopy mine, theirs;
  const bool told = note_find(comm.process->journal.notes(), comm.team->generation(), their_call >> 8, &mine) &&
                    account_of(comm, rank, their_call >> 8, &theirs);
  const Difference what = told ? difference(mine, theirs, comm.team->calls().check()) : Difference::none;
  if (what != Difference::none) return contrast(comm, mine, rank, theirs, what);
  SiteWords words;
  if (account_of(comm, rank, their_call >> 8, &theirs)) words.add(comm, rank, theirs);
  log_line(LogLevel::error,
           "communicator of %d ranks: rank %d sent data in call %llu there, %s, that rank %d did not take: %s%s",
           comm.team->size(), rank, ull{their_call >> 8}, CallName(their_call).text, comm.team->rank(), rule(what),
           words.text);
  return Status::mismatch;
}

// Looks for a rank that made another call. A peer that gave the call up or went on without this
// rank may have done so because of a third rank.
Status find_culprit(const Comm& comm, const NoteCopy& mine) {
  for (int r = 0; r < comm.team->size(); ++r) {
    NoteCopy theirs;
    if (r == comm.team->rank() || !account_of(comm, r, mine.call >> 8, &theirs)) continue;
    const Difference what = difference(mine, theirs, comm.team->calls().check());
    if (what != Difference::none) return contrast(comm, mine, r, theirs, what);
  }
  return Status::ok;
}

Status explain_mismatch(const Comm& comm, const shm::Call& call) {
  const shm::Call::Mismatch& other = call.mismatch();
  if (other.call >> 8 < call.number()) return explain_left_over(comm, other.rank, other.call);
  NoteCopy theirs;
  const NoteCopy mine = own_call(call);
  const bool told = account_of(comm, other.rank, call.number(), &theirs);
  const Difference what = told ? difference(mine, theirs, comm.team->calls().check()) : Difference::none;
  if (what != Difference::none) return contrast(comm, mine, other.rank, theirs, what);
  if (other.call == call.tag()) return explain_length(comm, call, other);
  if (const Status status = find_culprit(comm, mine); status != Status::ok) return status;
  // The other rank has gone on although its part in this call failed, and it has said why.
  if (told && (!theirs.descriptor.good || theirs.progress >= shm::Progress::failed)) return Status::peer_failed;
  return explain_place(comm, call, other);
}

void explain_gone(const Comm& comm, const shm::Call& call) {
  const shm::Peer& peer = comm.team->peer(call.mismatch().rank);
  const bool finalized = peer.header()->left.load_acquire() != 0;
  const shm::CallPlace place = comm.team->calls().place_of(call.mismatch().rank);
  SiteWords words;
  words.add(comm, comm.team->rank(), own_call(call));
  log_line(LogLevel::error,
           "communicator of %d ranks: rank %d (process %d) has %s after %llu calls there; rank %d waits for it in call "
           "%llu, %s%s",
           comm.team->size(), call.mismatch().rank, peer.pid(),
           finalized     ? "called MPI_Finalize"
           : place.freed ? "freed the communicator"
                         : "ended",
           ull{place.ended}, comm.team->rank(), ull{call.number()}, CallName(call.tag()).text, words.text);
}

// The data have the right length, but another type than the sender says. Programs work with that,
// so it is a warning by default.
Status explain_type_mismatch(Comm& comm, const shm::Call& call) {
  const shm::Call::TypeMismatch& type_mismatch = call.type_mismatch();
  const bool strict = comm.team->calls().check() >= shm::CheckLevel::strict;
  const bool fails = strict && !type_mismatch.mixture;
  if (!fails && (comm.types_told || (type_mismatch.mixture && !strict))) return Status::ok;
  comm.types_told = true;
  NoteCopy theirs;
  (void)note_find(comm.team->peer(type_mismatch.rank).notes(), comm.team->generation(), call.number(), &theirs);
  log_line(fails ? LogLevel::error : LogLevel::warn,
           "communicator of %d ranks, call %llu there: rank %d calls %s, rank %d calls %s: the sequence of basic "
           "datatypes sent is not the one "
           "received%s%s",
           comm.team->size(), ull{call.number()}, comm.team->rank(), CallWords(call.tag(), call.descriptor()).text,
           type_mismatch.rank, CallWords(call.tag(), theirs.descriptor).text,
           fails ? "" : " (told once for each communicator)",
           sites_of(comm, own_call(call), type_mismatch.rank, theirs).text);
  return fails ? Status::other_type : Status::ok;
}

// Says that the rank's call before was refused. A rank that goes on after that is one call behind.
void explain_refusal(const Comm& comm, int rank, std::uint64_t number) {
  const shm::Refused refused = comm.team->calls().refused(rank);
  if (refused.number != number) return;
  log_line(LogLevel::error, "communicator of %d ranks: rank %d's call before that, %s, was refused there: %s",
           comm.team->size(), rank, MpiName(refused.collective).text, kMistakeWords[static_cast<int>(refused.mistake)]);
}

}  // namespace

CallWords::CallWords(std::uint64_t call, const shm::CallDescriptor& descriptor) {
  char root[24] = "";
  if (descriptor.root >= 0) std::snprintf(root, sizeof root, "root %d, ", descriptor.root);
  const LengthWords length(descriptor.bytes, descriptor.element);
  const bool told = has_length(static_cast<Collective>(call & 0xff));
  std::snprintf(text, sizeof text, "%s%s%s%s%s%s%s", CallName(call).text, told ? " (" : "", root,
                descriptor.op != 0 ? op_name(descriptor.op) : "", descriptor.op != 0 ? ", " : "",
                told ? length.text : "", told ? ")" : "");
}

void SiteWords::add(const Comm& comm, int rank, const NoteCopy& note) {
  const bool is_own = rank == comm.team->rank();
  const shm::Note* const notes = is_own ? comm.process->journal.notes() : comm.team->peer(rank).notes();
  if (notes == nullptr || note.number == 0) return;
  const shm::CallSite site(shm::Segment::call_sites_beside(notes), note.number, note.caller);
  if (site.text[0] == 0) return;
  std::size_t length = std::strlen(text);
  if (length != 0) --length;  // the closing bracket
  std::snprintf(text + length, sizeof text - length, "%srank %d at %s)", length == 0 ? " (" : "; ", rank, site.text);
}

OwnSite::OwnSite(Process* process) {
  if (process == nullptr || !has_segment(*process)) return;
  locate_call(*process);
  const shm::CallSite site(process->segment.call_sites(), shm::t_call.note, shm::t_call.caller);
  std::memcpy(text, site.text, sizeof text);
}

void process_place(Process& process, char* place, std::size_t bytes) {
  const OwnSite site(&process);
  if (std::strlen(site.text) < bytes) std::memcpy(place, site.text, std::strlen(site.text) + 1);
}

void explain_end(const Comm& comm) {
  if (comm.team->calls().check() == shm::CheckLevel::none) return;
  int rank = 0;
  if (const std::uint64_t call = left_over(*comm.team, comm.team->calls().made() + 1, &rank)) {
    (void)explain_left_over(comm, rank, call);
    explain_refusal(comm, comm.team->rank(), call >> 8);
  }
}

Status explain(Comm& comm, const shm::Call& call) {
  Status status = call.status();
  locate_call(*comm.process);
  switch (status) {
    case Status::ok: return call.type_mismatch().rank >= 0 ? explain_type_mismatch(comm, call) : Status::ok;
    case Status::mismatch: status = explain_mismatch(comm, call); break;
    case Status::peer_gone: explain_gone(comm, call); break;
    default: return status;
  }
  for (const int rank : {call.whole().rank(), call.mismatch().rank}) explain_refusal(comm, rank, call.number());
  return status;
}

}  // namespace stretto::engine
