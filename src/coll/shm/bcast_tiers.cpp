// SPDX-License-Identifier: BSD-3-Clause
// Bcast by tiers. A rank that leads the root, or leads ranks that the root is not among, publishes
// the message on its boards of those tiers. Other members of these tiers copy it out. So each group
// reads what goes to it once from outside. A message is one copy of a fragment deep for each tier,
// and fragments follow one another.
//
// The root alone decides whether it goes this way, because a receiver may have declared more than
// the root sends. A receiver expects what follows from its own length, and looks at the root's
// board as well when that does not come.
//
// A rank that hands the message on copies it to its own slots first, as it came: with the length
// and stamp of the root, and whether or not its own buffer is long enough.
#include <algorithm>

#include "coll/shm/collectives.hpp"
#include "coll/shm/tiers.hpp"

namespace stretto::coll_shm {

namespace {

// The member of a tier that has the message first.
int source_of(const Tiers& tiers, int tier, int root) { return std::max(tiers.member_over(tier, root), 0); }

// Runs `steps` until `done()`. Fails the call if a member of call.team() that this rank reads from
// has left, and `misses()`. That other ranks failed is no reason: they may have declared too
// little.
template <class Steps, class Done, class Misses>
void run_behind(shm::Call& call, int source, Steps steps, Done done, Misses misses) {
  shm::Team& team = call.team();
  shm::Waiter waiter(team.policy());
  while (!done()) {
    if (steps()) {
      waiter.moved();
    } else if (waiter.step()) [[unlikely]] {
      if (!shm::CallCheck(call).check_peers(waiter.waited_ns())) return;
      if (source < 0 || !team.calls().has_left(source, call.number()) || !misses()) continue;
      return shm::CallCheck(call).fail_because_of(team.rank_of(source));
    }
  }
}

// This rank's boards that a message goes to, the highest tier first.
class Boards {
 public:
  Boards(shm::Call& call, const Tiers& tiers, int root) : call_(call) {
    for (int tier = tiers.count() - 1; tier >= 0; --tier) {
      if (source_of(tiers, tier, root) == tiers.groups[tier].index) teams_[count_++] = tiers.teams[tier];
    }
  }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] shm::Team& only() const { return *teams_[0]; }

  // What each record says of its message.
  struct Message {
    std::uint64_t bytes = 0;
    Stamp stamp = 0;  // of the first record
  };

  // At most this many bytes go at once.
  [[nodiscard]] std::size_t most_bytes(const Message& message) const {
    if (message.bytes <= shm::kMostInlineBytes || call_.lane() == nullptr) return shm::kInlineBytes;
    return call_.fragment_bytes(message.bytes);
  }

  // Publishes the next `bytes` bytes of a message, which `fill(target)` puts there. Returns where
  // they lie now, and null if readers must move first.
  template <class Fill>
  const char* publish(const Message& message, std::size_t bytes, bool first, Fill fill) {
    for (int i = 0; i < count_; ++i) {
      if (teams_[i]->queues().claim(teams_[i]->board()) != nullptr) continue;
      if (message.bytes <= shm::kMostInlineBytes) teams_[i]->board().wanted = shm::records_ahead(message.bytes);
      return nullptr;
    }
    const bool in_slot = bytes > shm::kInlineBytes;
    shm::Slot slot;
    if (in_slot && !call_.lane()->take(*teams_[0], bytes, false, &slot)) return nullptr;
    const char* place = slot.data;
    if (in_slot) fill(slot.data);
    for (int i = 0; i < count_; ++i) {
      shm::OutQueue& board = teams_[i]->board();
      shm::Record* const record = teams_[i]->queues().claim(board);
      if (in_slot) {
        const bool last = i == count_ - 1;
        last ? call_.lane()->lease(slot, teams_[i], board, call_.number())
             : call_.lane()->share(teams_[i], board, call_.number());
        record->slot_offset = slot.offset;
      } else if (i == 0) {
        fill(record->payload);
        place = record->payload;
      } else {
        std::memcpy(record->payload, place, bytes);
      }
      send(*record, board, in_slot ? shm::RecordKind::slot : shm::RecordKind::inlined, message, bytes, first);
    }
    call_.account(bytes, in_slot ? Path::cico : Path::inlined);
    return place;
  }

  // Tells readers that the message cannot come. False: readers must move first.
  bool poison() {
    for (int i = 0; i < count_; ++i) {
      if (teams_[i]->queues().claim(teams_[i]->board()) == nullptr) return false;
    }
    for (int i = 0; i < count_; ++i) {
      shm::OutQueue& board = teams_[i]->board();
      send(*teams_[i]->queues().claim(board), board, shm::RecordKind::poison, {}, 0, false);
    }
    return true;
  }

 private:
  void send(shm::Record& record, shm::OutQueue& board, shm::RecordKind kind, const Message& message, std::size_t bytes,
            bool first) {
    record.describe(kind, first ? message.stamp : 0);
    record.fragment_bytes = static_cast<std::uint32_t>(bytes);
    record.call = call_.mark();
    record.message_bytes = message.bytes;
    shm::Queues::publish(board, &record);
  }

  shm::Call& call_;
  int count_ = 0;
  shm::Team* teams_[topo::Groups::kMostLevels] = {};
};

void send_from_root(shm::Call& call, const Region& buffer, bool good, Boards& boards) {
  call.turn_to(boards.only());
  if (boards.count() == 1) return send_one(call, boards.only().board(), buffer, good);
  const Boards::Message message = {buffer.bytes(), shm::whole::stamp_of(call, buffer)};
  Stream stream(buffer);
  bool done = false;
  const auto send = [&] {
    if (!good) return done = boards.poison();
    const bool first = stream.left() == message.bytes;
    const std::size_t bytes = std::min<std::uint64_t>(stream.left(), boards.most_bytes(message));
    if (boards.publish(message, bytes, first, [&](char* to) { stream.pack(to, bytes); }) == nullptr) return false;
    done = stream.left() == 0;
    return true;
  };
  run_behind(call, -1, send, [&] { return done; }, [] { return false; });
}

// The tiers by which a message of so many bytes goes. That of a root which cannot read its data has
// none.
const Tiers& tiers_of(const TierChoice& choice, std::uint64_t bytes) {
  return bytes <= kTuning.bcast_far_bytes ? *choice.placed : *choice.deep;
}

// The tier from which this rank gets the message. It publishes on those below and above.
int tier_of(const Tiers& tiers, int root) {
  int tier = 0;
  while (source_of(tiers, tier, root) == tiers.groups[tier].index) ++tier;
  return tier;
}

// Where this rank gets a message that goes by these tiers.
struct Source {
  Source(const Tiers& of, int root)
      : tiers(of), tier(tier_of(of, root)), team(*of.teams[tier]), member(source_of(of, tier, root)) {}

  const Tiers& tiers;
  int tier;
  shm::Team& team;
  int member;
  [[nodiscard]] shm::InQueue& queue() const { return team.member(member).board; }
  [[nodiscard]] bool has_left(std::uint64_t call) const { return team.calls().has_left(member, call); }
};

// Finds the root's message: in a tier, or on the root's own board.
class Finder {
 public:
  Finder(shm::Call& call, const TierChoice& choice, int root)
      : call_(call),
        choice_(choice),
        sources_{Source(*choice.placed, root), Source(*choice.deep, root)},
        flat_(call.whole().member(root).board) {}

  // By which tiers it comes; null: by none. Known when it has been found.
  [[nodiscard]] const Source* source() const { return found_; }
  // Waits until the message has begun to come, or cannot come any more. False: the call has failed.
  bool find() {
    shm::Waiter waiter(call_.whole().policy());
    while (!look()) {
      if (!waiter.step()) continue;
      if (!shm::CallCheck(call_).check_peers(waiter.waited_ns())) return false;
      const bool left = sources_[0].has_left(call_.number()) && sources_[1].has_left(call_.number());
      // A member that got the message from the root's board may have left since.
      if (!left || look()) continue;
      shm::CallCheck(call_).fail_because_of(sources_[0].team.rank_of(sources_[0].member));
      return false;
    }
    return true;
  }

 private:
  bool look() {
    bool later = true;  // all writers are in later calls
    for (const Source& source : sources_) {
      const shm::Record* const record = head(source.team, source.queue());
      if (is_here(record)) {
        // Both tiers may be one group, so the length decides.
        const Tiers& by = tiers_of(choice_, record->message_bytes);
        found_ = &sources_[&by == &sources_[0].tiers ? 0 : 1];
        return true;
      }
      later = later && record != nullptr;
    }
    const shm::Record* const flat = head(call_.whole(), flat_);
    return is_here(flat) || (later && flat != nullptr);
  }
  [[nodiscard]] bool is_here(const shm::Record* record) const {
    return record != nullptr && record->call >> 8 == call_.number();
  }
  // The first record that is not of an earlier call.
  const shm::Record* head(shm::Team& team, shm::InQueue& queue) const {
    const shm::Record* record = queue.peek();
    for (; record != nullptr && record->call >> 8 < call_.number(); record = queue.peek()) {
      if (call_.checked() && team.calls().is_odd(queue.writer, *record))
        call_.report_mismatch({team.rank_of(queue.writer), record->tag()});
      queue.consume();
    }
    return record;
  }

  shm::Call& call_;
  const TierChoice& choice_;
  Source sources_[2];
  shm::InQueue& flat_;
  const Source* found_ = nullptr;
};

// Copies a message to this rank's boards, and from there to its buffer.
class HandingOn {
 public:
  HandingOn(shm::Call& call, const Region& buffer, bool good, Boards& boards)
      : call_(call),
        boards_(boards),
        stream_(good ? buffer : kNothing),
        expected_(good ? buffer.stamp() : 0),
        dropping_(!good) {}
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] bool misses(shm::InQueue& queue) const { return coll_shm::misses(reader_, queue); }

  bool step(shm::InQueue& queue) {
    if (!reader_.poll(call_, queue)) return false;
    if (reader_.failed()) return done_ = boards_.poison();
    const Boards::Message message = {reader_.message_bytes(), reader_.stamp()};
    const std::size_t bytes = std::min(reader_.bytes(), boards_.most_bytes(message));
    const char* const place =
        boards_.publish(message, bytes, published_ == 0, [&](char* to) { std::memcpy(to, reader_.data(), bytes); });
    if (place == nullptr) return false;
    if (published_ == 0) compare(message, queue.writer);
    published_ += bytes;
    if (bytes != 0) reader_.take(queue, bytes);
    if (bytes > stream_.left() && !dropping_) call_.fail(Status::truncated);
    stream_.unpack(place, std::min<std::uint64_t>(bytes, stream_.left()));
    done_ = reader_.done();
    return true;
  }

 private:
  // As other receivers do (Incoming::compare).
  void compare(const Boards::Message& message, int source) {
    const bool same = message.stamp == expected_ || message.stamp == 0 || expected_ == 0;
    if (!same && stream_.left() == message.bytes)
      call_.report_type_mismatch(source, has_bytes(expected_) || has_bytes(message.stamp));
  }

  shm::Call& call_;
  Boards& boards_;
  Stream stream_;
  Stamp expected_;
  bool dropping_;
  bool done_ = false;
  shm::Reader reader_;
  std::uint64_t published_ = 0;
};

// `flat`: as is expected, the message comes on the root's own board.
void receive(shm::Call& call, const Region& buffer, int root, bool good, const TierChoice& choice, bool flat) {
  if (good) {
    const Source expected(tiers_of(choice, buffer.bytes()), root);
    if (flat || Boards(call, expected.tiers, root).count() == 0) {
      call.turn_to(flat ? call.whole() : expected.team);
      shm::InQueue& queue = flat ? call.whole().member(root).board : expected.queue();
      shm::Waiter waiter(call.team().policy());
      if (shm::receive_whole(call, queue, buffer, waiter, false)) return;
    }
  }
  Finder finder(call, choice, root);
  if (!finder.find()) return;
  const Source* const source = finder.source();
  if (source == nullptr) {
    call.turn_to(call.whole());
    return receive_in_steps(call, call.whole().member(root).board, buffer, good);
  }
  call.turn_to(source->team);
  shm::InQueue& queue = source->queue();
  Boards boards(call, source->tiers, root);
  if (boards.count() == 0) {
    shm::Incoming message;
    message.start(good ? buffer : kNothing, !good);
    return run_behind(
        call, source->member, [&] { return message.step(call, queue); }, [&] { return message.done(); },
        [&] { return misses(message, queue); });
  }
  HandingOn message(call, buffer, good, boards);
  run_behind(
      call, source->member, [&] { return message.step(queue); }, [&] { return message.done(); },
      [&] { return message.misses(queue); });
}

}  // namespace

void bcast_tiers(shm::Call& call, const Region& buffer, int root, bool good, const TierChoice& choice, bool flat) {
  if (call.whole().rank() != root) return receive(call, buffer, root, good, choice, flat);
  if (flat) return send_one(call, call.whole().board(), buffer, good);
  Boards boards(call, tiers_of(choice, good ? buffer.bytes() : 0), root);
  send_from_root(call, buffer, good, boards);
}

}  // namespace stretto::coll_shm
