// SPDX-License-Identifier: BSD-3-Clause
#include "shm/member_calls.hpp"

#include "shm/segment.hpp"

namespace stretto::shm {

CallPlace MemberCalls::place_of(int member) const {
  const ProgressLine& line = members_.peer(member).progress_line();
  const std::uint64_t call = line.call.load_acquire();
  const std::uint64_t generation = line.generation.load_acquire();  // loaded last: see lines.hpp
  const bool freed = generation == ~generation_;
  if (!freed && generation != generation_) {
    std::uint64_t calls = 0;
    const bool told = Segment::ledger_beside(members_.peer(member).notes()).departures.find(generation_, &calls);
    return {calls, calls, 0, true, told};
  }
  const std::uint64_t begun = call >> 8;
  return {begun, (call & ProgressLine::kEnded) != 0 ? begun : begun - 1,
          static_cast<unsigned>(call & ProgressLine::kPlace),
          freed || has_retired(member),  // it may keep its block for a while
          true};
}

// Those that wait in a tier look at the same line.
void MemberCalls::leave(std::uint64_t number, std::uint64_t gave_up) {
  members_.line().gave_up.store_release(gave_up);
  members_.line().left.store_release(number);  // pairs with has_left
}

void MemberCalls::give_up(std::uint64_t number, GivenUp::Why why) {
  given_up_ = GivenUp{given_up_}.then(number, why).word;
  left_ = number;
  leave(number, given_up_);
}

Status MemberCalls::given_up(int member, std::uint64_t number) const {
  const Peer& p = members_.peer(member);
  const GivenUp::Why why = GivenUp{p.line().gave_up.load_acquire()}.why(number);
  if (why == GivenUp::no || !p.is_here()) return Status::ok;
  switch (why) {
    case GivenUp::other_length: return Status::other_length;
    case GivenUp::lost: return Status::peer_lost;
    default: return Status::peer_failed;
  }
}

// Whether it has, or has given up so many calls since that the line does not tell.
bool MemberCalls::may_have_given_up(int member, std::uint64_t number) const {
  const GivenUp given{members_.peer(member).line().gave_up.load_acquire()};
  const std::uint64_t since = (given.last() - number) % GivenUp::kNumbers;
  if (given.word == 0 || since >= GivenUp::kNumbers / 2) return false;
  return since >= GivenUp::kRemembered || given.why(number) != GivenUp::no;
}

bool MemberCalls::is_odd(int writer, const Record& record) const {
  const auto collective = static_cast<Collective>(record.tag() & 0xff);
  const bool excused = collective > Collective::reduce || (collective == Collective::reduce && !record.is_whole());
  return !troubled_ && !excused && record.kind() != RecordKind::poison && !may_have_given_up(writer, record.call >> 8);
}

Refused MemberCalls::refused(int rank) const {
  const ProgressLine& line = rank == members_.rank() ? *progress_line_ : members_.peer(rank).progress_line();
  const std::uint64_t word = line.refused.load_acquire();
  return line.generation.load_acquire() == generation_ ? Refused::unpacked(word) : Refused{};
}

}  // namespace stretto::shm
