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
int source_of(const topo::Tier& tier, int root) { return std::max(tier.member_over(root), 0); }

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
      if (source_of(tiers.groups[tier], root) == tiers.groups[tier].index) teams_[count_++] = tiers.teams[tier];
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
  shm::Team* teams_[topo::Tiers::kMost] = {};
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

// Where a rank finds the root's message: in its tier, or on the root's own board.
class Finder {
 public:
  Finder(shm::Call& call, shm::Team& tier, int source, int root)
      : call_(call), tier_(tier), tiered_(tier.member(source).board), flat_(call.whole().member(root).board) {}

  [[nodiscard]] shm::InQueue& tiered() const { return tiered_; }
  [[nodiscard]] bool is_flat() const { return found_ == &flat_; }
  [[nodiscard]] shm::InQueue* queue() const { return found_; }
  // Whether the message has begun to come, or cannot come any more.
  bool look() {
    const shm::Record* const tiered = head(tier_, tiered_);
    const shm::Record* const flat = head(call_.whole(), flat_);
    if (is_here(tiered)) found_ = &tiered_;
    if (is_here(flat)) found_ = &flat_;
    if (found_ != nullptr || tiered == nullptr || flat == nullptr) return found_ != nullptr;
    found_ = &flat_;  // both writers are in later calls
    return true;
  }
  // Looks again: a member that got the message from the root's board may have left since.
  [[nodiscard]] bool misses() { return !look() && tiered_.peek() == nullptr; }

 private:
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
  shm::Team& tier_;
  shm::InQueue& tiered_;
  shm::InQueue& flat_;
  shm::InQueue* found_ = nullptr;
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

// The tier from which this rank gets the message. It publishes on those below and above.
int tier_of(const Tiers& tiers, int root) {
  int tier = 0;
  while (source_of(tiers.groups[tier], root) == tiers.groups[tier].index) ++tier;
  return tier;
}

// `flat`: as is expected, the message comes on the root's own board.
void receive(shm::Call& call, const Region& buffer, int root, bool good, const Tiers& tiers, bool flat) {
  const int tier = tier_of(tiers, root);
  shm::Team& team = *tiers.teams[tier];
  const int source = source_of(tiers.groups[tier], root);
  Boards boards(call, tiers, root);
  Finder finder(call, team, source, root);
  if (good && (flat || boards.count() == 0)) {
    call.turn_to(flat ? call.whole() : team);
    shm::InQueue& queue = flat ? call.whole().member(root).board : finder.tiered();
    shm::Waiter waiter(team.policy());
    if (shm::receive_whole(call, queue, buffer, waiter, false)) return;
  }
  call.turn_to(team);
  run_behind(
      call, source, [&] { return finder.look(); }, [&] { return finder.queue() != nullptr; },
      [&] { return finder.misses(); });
  if (finder.queue() == nullptr) return;
  shm::InQueue& queue = *finder.queue();
  if (finder.is_flat()) {
    call.turn_to(call.whole());
    return receive_in_steps(call, queue, buffer, good);
  }
  if (boards.count() == 0) {
    shm::Incoming message;
    message.start(good ? buffer : kNothing, !good);
    return run_behind(
        call, source, [&] { return message.step(call, queue); }, [&] { return message.done(); },
        [&] { return misses(message, queue); });
  }
  HandingOn message(call, buffer, good, boards);
  run_behind(
      call, source, [&] { return message.step(queue); }, [&] { return message.done(); },
      [&] { return message.misses(queue); });
}

}  // namespace

void bcast_tiers(shm::Call& call, const Region& buffer, int root, bool good, const Tiers& tiers, bool flat) {
  if (call.whole().rank() != root) return receive(call, buffer, root, good, tiers, flat);
  Boards boards(call, tiers, root);
  flat ? send_one(call, call.whole().board(), buffer, good) : send_from_root(call, buffer, good, boards);
}

}  // namespace stretto::coll_shm
