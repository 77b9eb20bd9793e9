// SPDX-License-Identifier: BSD-3-Clause
#include "shm/call_check.hpp"

#include "base/log.hpp"
#include "shm/message.hpp"
#include "sys/sys.hpp"

namespace stretto::shm {

namespace {

bool is_reduction(Collective c) { return c >= Collective::reduce; }

NoteCopy account_of(const Call& call) {
  NoteCopy note;
  note.generation = call.team().generation();
  note.call = call.tag();
  note.descriptor = call.descriptor();
  return note;
}

// Finds what that member noted of this call. Its progress line names the note of its latest call.
// The notes of earlier calls must be searched for.
bool find_theirs(const Call& call, const Member& peer, const Place& place, NoteCopy* theirs) {
  const std::uint64_t generation = call.team().generation();
  if (place.begun != call.number()) return note_find(peer.notes, generation, call.number(), theirs);
  return note_read(peer.notes[place.note], theirs) && theirs->generation == generation &&
         theirs->call >> 8 == place.begun;
}

// The result of a look at one peer.
enum class Finding : std::uint8_t { nothing, failed, proof };

// Whether the account of a peer that has begun this call agrees with ours.
Finding compare(Call& call, int peer, const Place& place, std::uint64_t waited_ns) {
  NoteCopy theirs;
  if (!find_theirs(call, call.team().member(peer), place, &theirs)) return Finding::nothing;
  if (difference(account_of(call), theirs, CheckLevel::usual) != Difference::none) {
    call.report_mismatch({peer, theirs.call});
    return Finding::proof;
  }
  const bool failed =
      theirs.progress == Progress::gave_up || (!theirs.descriptor.good && waited_ns >= kTuning.look_every_ns);
  return failed ? Finding::failed : Finding::nothing;
}

Finding examine(Call& call, int peer, std::uint64_t waited_ns) {
  const Place place = where(call.team(), peer);
  if (!place.known) return Finding::nothing;
  if (place.begun >= call.number()) {
    const Finding finding = compare(call, peer, place, waited_ns);
    if (finding != Finding::nothing) return finding;
  }
  if (place.ended >= call.number() || !(place.freed || has_ended(call, peer, waited_ns))) return Finding::nothing;
  const Place last = where(call.team(), peer);  // it may have done its part before it went
  if (!last.known || last.ended >= call.number()) return Finding::nothing;
  call.peer_died(peer);
  return Finding::proof;
}

const Record* unread(Team& team, InQueue& queue, std::uint64_t number) {
  const Record* const record = head_of(team, queue);
  return record && record->call >> 8 < number ? record : nullptr;
}

// What that member said of its failure, unless what is known says more.
Status failure_of(const Team& team, int member, std::uint64_t number, Status known) {
  const Status said = team.given_up(member, number);
  if (known != Status::ok && (said == Status::ok || said == Status::peer_failed)) return known;
  return said != Status::ok ? said : Status::peer_failed;
}

// Drops what calls that failed here have left. It fills the peers' queues, and they may wait until
// we have read it.
void clear_away(Call& call) {
  Team& team = call.team();
  for (int r = 0; r < team.size(); ++r) {
    if (r == team.rank()) continue;
    for (InQueue* queue : {&team.member(r).board, &team.member(r).channel}) {
      while (unread(team, *queue, call.number())) queue->consume();
    }
  }
}

// Whether that member is in this call.
bool is_here(const Call& call, int peer) {
  const Place place = where(call.team(), peer);
  return place.known && place.begun == call.number() && place.ended < call.number();
}

// Peers that have not come because their call was refused may still come, so it is right to wait
// for them. The lowest rank that waits logs it.
void tell_refusals(const Call& call) {
  const Team& team = call.team();
  for (int r = 0; r < team.rank(); ++r) {
    if (is_here(call, r)) return;
  }
  for (int r = 0; r < team.size(); ++r) {
    const Refused refused = team.refused(r);
    if (r == team.rank() || refused.number == 0 || refused.number > call.number()) continue;
    const Place place = where(team, r);
    if (!place.known || place.begun >= refused.number) continue;
    log_line(LogLevel::warn,
             "communicator of %d ranks: rank %d waits in call %llu there, %s: rank %d's last call there, %s, was "
             "refused there: %s",
             team.size(), team.rank(), static_cast<unsigned long long>(call.number()),
             MpiName(static_cast<Collective>(call.tag() & 0xff)).text, r, MpiName(refused.collective).text,
             kMistakeWords[static_cast<int>(refused.mistake)]);
  }
}

struct Trouble {
  bool proven = false;        // the call cannot end, and has failed for that reason
  Status peers = Status::ok;  // what the failures of peers amount to
};

Trouble look_for_trouble(Call& call, std::uint64_t waited_ns) {
  Team& team = call.team();
  if (team.troubled()) clear_away(call);
  if (team.check() == CheckLevel::none) return {};
  int rank = 0;
  if (const std::uint64_t theirs = left_over(team, call.number(), &rank)) {
    call.report_mismatch({rank, theirs});
    return {true};
  }
  if (waited_ns >= kTuning.refusal_told_ns && call.tells_refusals()) tell_refusals(call);
  Trouble trouble;
  for (int r = 0; r < team.size(); ++r) {
    const Finding finding = r == team.rank() ? Finding::nothing : examine(call, r, waited_ns);
    if (finding == Finding::proof) return {true};
    if (finding == Finding::failed) trouble.peers = failure_of(team, r, call.number(), trouble.peers);
  }
  return trouble;
}

bool all_have_described(Call& call) {
  const Team& team = call.team();
  for (int r = 0; r < team.size(); ++r) {
    NoteCopy described;
    if (r == team.rank()) continue;
    if (!note_read(team.member(r).call_descriptors[call.number() % kCallDescriptors], &described)) return false;
    if (described.number != call.number() || described.generation != team.generation()) return false;
  }
  return true;
}

NoteCopy described_by(const Call& call, int rank) {
  NoteCopy described = account_of(call);
  if (rank != call.team().rank())
    (void)note_read(call.team().member(rank).call_descriptors[call.number() % kCallDescriptors], &described);
  return described;
}

// Compares every rank with the first one whose arguments are sound. All members do the same.
bool same_verdict(Call& call) {
  const Team& team = call.team();
  int first = 0;
  while (first < team.size() && !described_by(call, first).descriptor.good) ++first;
  for (int r = first + 1; r < team.size(); ++r) {
    const NoteCopy other = described_by(call, r);
    if (difference(described_by(call, first), other, CheckLevel::strict) == Difference::none) continue;
    call.report_mismatch({r == team.rank() ? first : r, other.call});
    return false;
  }
  return true;
}

}  // namespace

// A process that has ended is first left to the launcher, which usually ends the job.
bool has_ended(Call& call, int peer, std::uint64_t waited_ns) {
  const Member& m = call.team().member(peer);
  if (m.header->left.load_acquire() != 0) return true;
  if (m.started == 0 || waited_ns < kTuning.look_every_ns) return false;
  if (!sys::process_gone(m.pid, m.started)) return false;
  return call.missed_for_ns(sys::now_ns()) >= kTuning.launcher_patience_ns;
}

bool elements_differ(ElementCode a, ElementCode b) {
  const auto open = [](ElementCode code) { return code == 0 || kind_of(code) == ElementKind::bytes; };
  return a != b && !open(a) && !open(b);
}

Difference difference(const NoteCopy& mine, const NoteCopy& theirs, CheckLevel level) {
  if (mine.call != theirs.call) return Difference::collective;
  const CallDescriptor& a = mine.descriptor;
  const CallDescriptor& b = theirs.descriptor;
  // The rank whose arguments are wrong has said so.
  if (!a.good || !b.good) return Difference::none;
  if (a.root != b.root) return Difference::root;
  const auto collective = static_cast<Collective>(mine.call & 0xff);
  // Receivers of a Bcast may have room for more; programs do so.
  const bool same_length = is_reduction(collective) || (level >= CheckLevel::strict && collective == Collective::bcast);
  if (is_reduction(collective)) {
    if (a.op != b.op) return Difference::op;
    if (elements_differ(a.element, b.element)) return Difference::element;
  }
  return same_length && a.bytes != b.bytes ? Difference::length : Difference::none;
}

const Record* head_of(Team& team, InQueue& queue) {
  const Record* record = queue.peek();
  if (!record && team.follow(queue)) record = queue.peek();
  return record && team.member(queue.writer).progress_line->generation.load_acquire() == team.generation() ? record
                                                                                                           : nullptr;
}

Place where(const Team& team, int peer) {
  const ProgressLine& line = *team.member(peer).progress_line;
  const std::uint64_t call = line.call.load_acquire();
  const std::uint64_t generation = line.generation.load_acquire();  // loaded last: see lines.hpp
  const bool freed = generation == ~team.generation();
  const std::uint64_t begun = call >> 8;
  return {begun, (call & ProgressLine::kEnded) != 0 ? begun : begun - 1,
          static_cast<unsigned>(call & ProgressLine::kPlace),
          freed || team.has_retired(peer),  // it may keep its block for a while
          freed || generation == team.generation()};
}

std::uint64_t left_over(Team& team, std::uint64_t number, int* rank) {
  for (int r = 0; r < team.size(); ++r) {
    if (r == team.rank()) continue;
    for (InQueue* queue : {&team.member(r).board, &team.member(r).channel}) {
      const Record* const record = unread(team, *queue, number);
      if (!record || !team.is_odd(r, *record)) continue;
      *rank = r;
      return record->tag();
    }
  }
  return 0;
}

bool check_peers(Call& call, std::uint64_t waited_ns) {
  const bool moved = call.team().make_room();
  if (call.team().follow() || moved) return true;
  const Trouble trouble = look_for_trouble(call, waited_ns);
  call.fail(trouble.peers);
  return !trouble.proven && trouble.peers == Status::ok;
}

// The peer itself may contradict this rank, or it has met another one that does.
bool finds_mismatch(Call& call, int peer) {
  const Team& team = call.team();
  for (int step = 0; step < team.size(); ++step) {
    const int r = (peer + step) % team.size();
    NoteCopy theirs;
    if (r == team.rank() || !note_find(team.member(r).notes, team.generation(), call.number(), &theirs)) continue;
    if (difference(account_of(call), theirs, CheckLevel::usual) == Difference::none) continue;
    call.report_mismatch({r, theirs.call});
    return true;
  }
  return false;
}

void fail_because_of(Call& call, int peer) {
  if (!finds_mismatch(call, peer)) call.fail(failure_of(call.team(), peer, call.number(), Status::ok));
}

void give_up(Call& call) {
  Team& team = call.team();
  bool length = call.status() == Status::other_length;
  if (call.status() == Status::mismatch) {
    NoteCopy theirs;
    const Call::Mismatch& other = call.mismatch();
    const bool told = note_find(team.member(other.rank).notes, team.generation(), call.number(), &theirs);
    length =
        told ? difference(account_of(call), theirs, CheckLevel::usual) == Difference::length : other.call == call.tag();
  }
  team.give_up(call.number(), length ? GivenUp::other_length : GivenUp::failed);
}

// A description stays until every member has described the next call. A member does that after it
// has read all descriptions of this one.
bool match_calls(Call& call) {
  Team& team = call.team();
  note_write(team.call_descriptors()[call.number() % kCallDescriptors], call.number(), team.generation(), call.tag(),
             call.descriptor());
  Waiter waiter(team.policy());
  while (!all_have_described(call)) {
    if (!waiter.step()) continue;
    const Trouble trouble = look_for_trouble(call, waiter.waited_ns());
    if (trouble.proven) return false;
    // A rank that found a contradiction had read all descriptions. These say more than the fact
    // that a rank gave up.
    if (trouble.peers == Status::ok || all_have_described(call)) continue;
    call.fail(trouble.peers);
    return false;
  }
  return same_verdict(call);
}

}  // namespace stretto::shm
