// SPDX-License-Identifier: BSD-3-Clause
#include "shm/call_check.hpp"

#include "base/log.hpp"
#include "shm/segment.hpp"
#include "sys/sys.hpp"

namespace stretto::shm {

namespace {

const Record* unread(Team& team, InQueue& queue, std::uint64_t number) {
  const Record* const record = head_of(team, queue);
  return record && record->call >> 8 < number ? record : nullptr;
}

}  // namespace

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
  if (!record && team.queues().follow(queue)) record = queue.peek();
  return record && team.peer(queue.writer).progress_line().generation.load_acquire() == team.generation() ? record
                                                                                                          : nullptr;
}

std::uint64_t left_over(Team& whole, std::uint64_t number, int* rank) {
  std::uint64_t found = 0;
  each_queue(whole, [&](Team& team, InQueue& queue) {
    const Record* const record = unread(team, queue, number);
    if (found != 0 || !record || !team.calls().is_odd(queue.writer, *record)) return;
    *rank = team.rank_of(queue.writer);
    found = record->tag();
  });
  return found;
}

// ---- The checks of one call ----

CallCheck::CallCheck(Call& call) : call_(call), team_(call.whole()) {}

NoteCopy CallCheck::own_account() const {
  NoteCopy note;
  note.generation = team_.generation();
  note.call = call_.tag();
  note.descriptor = call_.descriptor();
  note.caller = t_call.caller;
  return note;
}

// Finds what that member noted of this call. Its progress line names the note of its latest call.
// The notes of earlier calls must be searched for.
bool CallCheck::find_theirs(const Peer& peer, const CallPlace& place, NoteCopy* theirs) const {
  const std::uint64_t generation = team_.generation();
  if (place.begun != call_.number()) return note_find(peer.notes(), generation, call_.number(), theirs);
  return note_read(peer.notes()[place.note], theirs) && theirs->generation == generation &&
         theirs->call >> 8 == place.begun;
}

// Whether the account of a peer that has begun this call agrees with ours.
CallCheck::Finding CallCheck::compare(int peer, const CallPlace& place, std::uint64_t waited_ns) {
  NoteCopy theirs;
  if (!find_theirs(team_.peer(peer), place, &theirs)) return Finding::nothing;
  if (difference(own_account(), theirs, CheckLevel::usual) != Difference::none) {
    call_.report_mismatch({peer, theirs.call});
    return Finding::proof;
  }
  const bool failed =
      theirs.progress == Progress::gave_up || (!theirs.descriptor.good && waited_ns >= kTuning.look_every_ns);
  return failed ? Finding::failed : Finding::nothing;
}

CallCheck::Finding CallCheck::examine(int peer, std::uint64_t waited_ns) {
  const CallPlace place = team_.calls().place_of(peer);
  if (!place.known) return Finding::nothing;
  if (place.begun >= call_.number()) {
    const Finding finding = compare(peer, place, waited_ns);
    if (finding != Finding::nothing) return finding;
  }
  if (place.ended >= call_.number() || !(place.freed || has_ended(peer, waited_ns))) return Finding::nothing;
  const CallPlace last = team_.calls().place_of(peer);  // it may have done its part before it went
  if (!last.known || last.ended >= call_.number()) return Finding::nothing;
  call_.peer_died(peer);
  return Finding::proof;
}

// What that member said of its failure, unless what is known says more.
Status CallCheck::failure_of(int member, Status known) const {
  const Status said = team_.calls().given_up(member, call_.number());
  if (known != Status::ok && (said == Status::ok || said == Status::peer_failed)) return known;
  return said != Status::ok ? said : Status::peer_failed;
}

// Drops what calls that failed here have left. It fills the peers' queues, and they may wait until
// we have read it.
void CallCheck::clear_away() {
  each_queue(team_, [&](Team& team, InQueue& queue) {
    while (unread(team, queue, call_.number())) queue.consume();
  });
}

// Whether that member is in this call.
bool CallCheck::is_here(int peer) const {
  const CallPlace place = team_.calls().place_of(peer);
  return place.known && place.begun == call_.number() && place.ended < call_.number();
}

// Peers that have not come because their call was refused may still come, so it is right to wait
// for them. The lowest rank that waits logs it.
void CallCheck::tell_refusals() const {
  for (int r = 0; r < team_.rank(); ++r) {
    if (is_here(r)) return;
  }
  for (int r = 0; r < team_.size(); ++r) {
    const Refused refused = team_.calls().refused(r);
    if (r == team_.rank() || refused.number == 0 || refused.number > call_.number()) continue;
    const CallPlace place = team_.calls().place_of(r);
    if (!place.known || place.begun >= refused.number) continue;
    log_line(LogLevel::warn,
             "communicator of %d ranks: rank %d waits in call %llu there, %s: rank %d's last call there, %s, was "
             "refused there: %s",
             team_.size(), team_.rank(), static_cast<unsigned long long>(call_.number()),
             MpiName(static_cast<Collective>(call_.tag() & 0xff)).text, r, MpiName(refused.collective).text,
             kMistakeWords[static_cast<int>(refused.mistake)]);
  }
}

CallCheck::Trouble CallCheck::look_for_trouble(std::uint64_t waited_ns) {
  if (team_.policy().locate != nullptr) team_.policy().locate(team_.policy().locator);
  if (team_.calls().troubled()) clear_away();
  if (team_.calls().check() == CheckLevel::none) return {};
  int rank = 0;
  if (const std::uint64_t theirs = left_over(team_, call_.number(), &rank)) {
    call_.report_mismatch({rank, theirs});
    return {true};
  }
  if (waited_ns >= kTuning.refusal_told_ns && call_.tells_refusals()) tell_refusals();
  Trouble trouble;
  for (int r = 0; r < team_.size(); ++r) {
    const Finding finding = r == team_.rank() ? Finding::nothing : examine(r, waited_ns);
    if (finding == Finding::proof) return {true};
    if (finding == Finding::failed) trouble.peers = failure_of(r, trouble.peers);
  }
  return trouble;
}

bool CallCheck::all_have_described() const {
  for (int r = 0; r < team_.size(); ++r) {
    NoteCopy described;
    if (r == team_.rank()) continue;
    if (!note_read(team_.peer(r).call_descriptors()[call_.number() % kCallDescriptors], &described)) return false;
    if (described.number != call_.number() || described.generation != team_.generation()) return false;
  }
  return true;
}

NoteCopy CallCheck::described_by(int rank) const {
  NoteCopy described = own_account();
  if (rank != team_.rank())
    (void)note_read(team_.peer(rank).call_descriptors()[call_.number() % kCallDescriptors], &described);
  return described;
}

// Compares every rank with the first one whose arguments are sound. All members do the same.
bool CallCheck::same_verdict() {
  int first = 0;
  while (first < team_.size() && !described_by(first).descriptor.good) ++first;
  for (int r = first + 1; r < team_.size(); ++r) {
    const NoteCopy other = described_by(r);
    if (difference(described_by(first), other, CheckLevel::strict) == Difference::none) continue;
    call_.report_mismatch({r == team_.rank() ? first : r, other.call});
    return false;
  }
  return true;
}

// A process that has ended is first left to the launcher, which usually ends the job.
bool CallCheck::has_ended(int peer, std::uint64_t waited_ns) {
  const Peer& m = team_.peer(peer);
  if (m.header()->left.load_acquire() != 0) return true;
  if (m.started == 0 || waited_ns < kTuning.look_every_ns) return false;
  if (!sys::process_gone(m.pid(), m.started)) return false;
  return call_.missed_for_ns(sys::now_ns()) >= kTuning.launcher_patience_ns;
}

bool CallCheck::check_peers(std::uint64_t waited_ns) {
  const bool moved = team_.make_room();
  if (team_.follow() || moved) return true;
  if (team_.members().lacks_memory()) {
    team_.members().tell_no_memory(call_.number());
    call_.fail(Status::no_memory);
    return false;
  }
  const Trouble trouble = look_for_trouble(waited_ns);
  call_.fail(trouble.peers);
  return !trouble.proven && trouble.peers == Status::ok;
}

// The peer itself may contradict this rank, or it has met another one that does.
bool CallCheck::finds_mismatch(int peer) {
  for (int step = 0; step < team_.size(); ++step) {
    const int r = (peer + step) % team_.size();
    NoteCopy theirs;
    if (r == team_.rank() || !note_find(team_.peer(r).notes(), team_.generation(), call_.number(), &theirs)) continue;
    if (difference(own_account(), theirs, CheckLevel::usual) == Difference::none) continue;
    call_.report_mismatch({r, theirs.call});
    return true;
  }
  return false;
}

void CallCheck::report_record(int member, const Record& record) {
  const int rank = call_.team().rank_of(member);
  const bool gave_up = record.call >> 8 != call_.number() && team_.calls().given_up(rank, call_.number()) != Status::ok;
  gave_up ? fail_because_of(rank) : call_.report_mismatch({rank, record.tag()});
}

void CallCheck::fail_because_of(int peer) {
  if (!finds_mismatch(peer)) call_.fail(failure_of(peer, Status::ok));
}

void CallCheck::give_up() {
  bool length = call_.status() == Status::other_length;
  if (call_.status() == Status::mismatch) {
    NoteCopy theirs;
    const Call::Mismatch& other = call_.mismatch();
    const bool told = note_find(team_.peer(other.rank).notes(), team_.generation(), call_.number(), &theirs);
    const Difference found = told ? difference(own_account(), theirs, CheckLevel::usual) : Difference::none;
    // In the same call without another difference, the data went another way, which follows from
    // the length.
    length = found == Difference::length || (found == Difference::none && other.call == call_.tag());
  }
  team_.give_up(call_.number(), length ? GivenUp::other_length : GivenUp::failed);
}

// A description stays until every member has described the next call. A member does that after it
// has read all descriptions of this one.
bool CallCheck::match_calls() {
  note_write(team_.members().call_descriptors()[call_.number() % kCallDescriptors], call_.number(), team_.generation(),
             call_.tag(), call_.descriptor());
  Waiter waiter(team_.policy());
  while (!all_have_described()) {
    if (!waiter.step()) continue;
    const Trouble trouble = look_for_trouble(waiter.waited_ns());
    if (trouble.proven) return false;
    // A rank that found a contradiction had read all descriptions. These say more than the fact
    // that a rank gave up.
    if (trouble.peers == Status::ok || all_have_described()) continue;
    call_.fail(trouble.peers);
    return false;
  }
  return same_verdict();
}

}  // namespace stretto::shm
