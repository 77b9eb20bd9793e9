// SPDX-License-Identifier: BSD-3-Clause
// The calls of one rank of an OTF2 archive, and the writer of its recording.
#pragma once
#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "otf2_collectives.hpp"
#include "otf2_job.hpp"
#include "record/writer.hpp"
#include "request.hpp"

namespace stretto::modelling {

inline constexpr double kImportBound = 0;                         // each time is kept
inline constexpr std::int64_t kTracedWorld = 0, kTracedSelf = 1;  // as the recorder numbers them

// A message, or a collective, as its event says.
struct Traced {
  enum What : std::uint8_t { nothing, send, receive, collective } what = nothing;
  OTF2_CollectiveOp operation = 0;
  OTF2_CommRef comm = 0;
  std::uint32_t peer = 0;  // or root
  std::uint32_t tag = 0;
  std::uint64_t bytes = 0, received = 0;  // collectives have both
  std::uint64_t request = 0;
};

// A call of MPI between its begin and its end.
struct TracedCall {
  OTF2_RegionRef region = 0, place = OTF2_UNDEFINED_REGION;
  std::uint64_t begin = 0;
  std::vector<Traced> begins;             // with requests
  std::vector<Traced> messages;           // without
  std::vector<std::uint64_t> ends, sees;  // requests: ended; looked at in vain
  std::optional<Traced> meets;            // a collective
  OTF2_CommRef made = OTF2_UNDEFINED_COMM;
};

// Writes the calls of a rank.
class RankWriter {
 public:
  RankWriter(const Otf2Job& job, std::size_t rank, const std::string& path) : job_(job), rank_(rank) {
    const Otf2Rank& its = job.ranks[rank];
    const std::string mpi = "traced by " + job.creator;
    const record::About about{static_cast<int>(rank),
                              static_cast<int>(job.ranks.size()),
                              kImportBound,
                              its.host.c_str(),
                              mpi.c_str(),
                              job.program.c_str(),
                              ""};
    if (const int error = writer_.open(path.c_str(), about)) stop(path + ": " + std::strerror(error));
    std::vector<std::uint64_t> all(job.ranks.size());
    for (std::size_t r = 0; r < all.size(); ++r) all[r] = r;
    define_comm(kTracedWorld, rank, all, {});
    define_comm(kTracedSelf, 0, {rank}, {});
    if (job.world != OTF2_UNDEFINED_COMM)
      comms_[job.world] = {kTracedWorld, static_cast<std::int64_t>(rank), all.size()};
  }

  // The calls begin here, at the end of MPI_Init: what was before is not recorded. Without it they
  // begin at the first event.
  void begin(std::uint64_t tick) {
    first_ = last_ = tick;
    has_begun_ = true;
  }
  void sees(std::uint64_t tick) {
    if (!has_begun_) begin(tick);
  }

  void call(const TracedCall& call, std::uint64_t end) {
    const std::uint64_t gap = call.begin > last_ ? nanoseconds(call.begin - last_) : 0;
    const std::uint64_t duration = nanoseconds(end - call.begin);
    last_ = end;
    times_ = {gap, duration};
    for (const Traced& each : call.begins) post(call, each);
    if (!call.messages.empty()) exchange(call);
    if (call.meets) meet(call);
    if (!call.ends.empty() || !call.sees.empty()) wait(call);
    if (times_) {
      name(call, name_of(call));
      put();
    }
  }

  // The last call that is recorded, as long as nothing.
  void finalize(std::uint64_t tick) {
    TracedCall call;
    call.begin = std::max(tick, last_);
    times_ = {nanoseconds(call.begin - last_), 0};
    last_ = call.begin;
    name(call, "MPI_Finalize");
    put();
  }

  void close() {
    const std::uint64_t begin = job_.real_ns + (first_ > job_.begin ? nanoseconds(first_ - job_.begin) : 0);
    writer_.set_clock(begin, begin + std::max<std::uint64_t>(1, nanoseconds(last_ - first_)));
    const int failure = writer_.failure();
    if (failure != 0) stop(std::string("the recording cannot be written: ") + std::strerror(failure));
    writer_.finish();
  }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

 private:
  using Role = record::Role;
  struct Times {
    std::uint64_t gap, duration;
  };
  struct Mine {
    std::int64_t id, rank;  // in it
    std::uint64_t peers;
  };

  [[nodiscard]] std::uint64_t nanoseconds(std::uint64_t ticks) const {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) * 1e9 / static_cast<double>(job_.resolution));
  }

  // ---- Words ----

  void word(Role role, std::int64_t value) { words_.insert(words_.end(), {static_cast<std::int64_t>(role), 1, value}); }
  void list(Role role, const std::vector<std::int64_t>& values) {
    words_.push_back(static_cast<std::int64_t>(role));
    words_.push_back(static_cast<std::int64_t>(values.size()));
    words_.insert(words_.end(), values.begin(), values.end());
  }
  // Begins the words of a call.
  void name(const TracedCall& call, const std::string& function) {
    words_.clear();
    const auto [known, is_new] = functions_.try_emplace(function, functions_.size());
    if (is_new) writer_.define(record::Definition::function, known->second, function.c_str());
    word(Role::function, static_cast<std::int64_t>(known->second));
    const auto region = job_.regions.find(call.place);
    if (region == job_.regions.end()) return;
    const auto [place, is_new_place] = places_.try_emplace(call.place, places_.size());
    if (is_new_place) writer_.define(record::Definition::place, place->second, region->second.place.c_str());
    word(Role::place, static_cast<std::int64_t>(place->second));
  }
  // Ends them. The first of several calls that stand for one has its times.
  void put() {
    const Times times = times_.value_or(Times{0, 0});
    times_.reset();
    writer_.call(writer_.term(words_.data(), words_.size()), times.gap, times.duration);
    ++calls_;
  }
  [[nodiscard]] std::string name_of(const TracedCall& call) const {
    const auto region = job_.regions.find(call.region);
    return region == job_.regions.end() ? "MPI_?" : region->second.name;
  }

  // ---- Communicators ----

  void define_comm(std::int64_t id, std::size_t me, const std::vector<std::uint64_t>& members,
                   const std::vector<std::uint64_t>& remote) {
    std::vector<std::int64_t> values{id, remote.empty() ? 0 : record::kInter, static_cast<std::int64_t>(me),
                                     static_cast<std::int64_t>(members.size()),
                                     static_cast<std::int64_t>(remote.size())};
    for (const auto* const ranks : {&members, &remote}) {
      for (std::size_t i = 0, end = 0; i < ranks->size(); i = end) {
        const auto at = [&](std::size_t place) { return static_cast<std::int64_t>((*ranks)[place]); };
        const std::int64_t step = i + 1 < ranks->size() ? at(i + 1) - at(i) : 0;
        for (end = i + 1; end < ranks->size() && at(end) - at(end - 1) == step;) ++end;
        values.insert(values.end(), {at(i), step, static_cast<std::int64_t>(end - i)});
      }
    }
    writer_.define(record::Definition::comm, values.data(), values.size());
  }

  Mine& comm(OTF2_CommRef ref) {
    const auto [mine, is_new] = comms_.try_emplace(ref, Mine{0, 0, 1});
    if (!is_new) return mine->second;
    const auto found = job_.comms.find(ref);
    if (found == job_.comms.end()) stop("rank " + std::to_string(rank_) + " uses a communicator without definition");
    const Otf2Comm& its = found->second;
    if (its.is_self) {
      mine->second = {kTracedSelf, 0, 1};
      return mine->second;
    }
    const auto place = [&](const std::vector<std::uint64_t>& in) {
      return std::find(in.begin(), in.end(), rank_) - in.begin();
    };
    const bool swaps = its.is_inter && place(its.members) == static_cast<std::ptrdiff_t>(its.members.size());
    const auto &own = swaps ? its.remote : its.members, &other = swaps ? its.members : its.remote;
    const std::ptrdiff_t me = place(own);
    if (me == static_cast<std::ptrdiff_t>(own.size()))
      stop("rank " + std::to_string(rank_) + " uses a communicator in which it is not");
    mine->second = {next_comm_++, me, its.is_inter ? other.size() : own.size()};
    define_comm(mine->second.id, static_cast<std::size_t>(me), own, other);
    return mine->second;
  }

  // Its peer, which some traces name by its rank in MPI_COMM_WORLD.
  std::int64_t rank_in(OTF2_CommRef ref, std::uint32_t peer) {
    const Otf2Comm& its = job_.comms.at(ref);
    if (!its.names_world) return peer;
    const auto found = std::find(its.members.begin(), its.members.end(), peer);
    return found - its.members.begin();
  }

  // ---- Calls ----

  void message(const Traced& traced) {
    const Mine mine = comm(traced.comm);
    const bool sends = traced.what == Traced::send;
    word(Role::comm, mine.id);
    word(sends ? Role::destination : Role::source,
         record::peer_word(record::PeerKind::rank, rank_in(traced.comm, traced.peer) - mine.rank));
    word(sends ? Role::send_tag : Role::receive_tag, traced.tag);
    word(sends ? Role::sends : Role::receives, static_cast<std::int64_t>(traced.bytes));
  }

  void collective(const Traced& traced) {
    const Mine mine = comm(traced.comm);
    word(Role::comm, mine.id);
    const Collective its = otf2_collective(traced.operation);
    const std::int64_t root = root_of(traced);
    if (traced.peer != OTF2_COLLECTIVE_ROOT_NONE) word(Role::root, root);
    const bool is_root = root == record::kRootHere || root == mine.rank;
    const std::uint64_t block = job_.sums_lengths
                                    ? otf2_block(its, {traced.bytes, traced.received}, mine.peers, is_root)
                                    : std::max(traced.bytes, traced.received);
    if (its != Collective::count_ && its != Collective::barrier) word(Role::sends, static_cast<std::int64_t>(block));
  }
  std::int64_t root_of(const Traced& traced) {
    if (traced.peer == OTF2_COLLECTIVE_ROOT_SELF) return record::kRootHere;
    if (traced.peer == OTF2_COLLECTIVE_ROOT_NONE || traced.peer == OTF2_COLLECTIVE_ROOT_THIS_GROUP)
      return record::kRootNone;
    return rank_in(traced.comm, traced.peer);
  }

  // A start of several persistent requests is as many calls.
  void post(const TracedCall& call, const Traced& traced) {
    const std::int64_t slot = take_slot(traced.request);
    std::string function = name_of(call);
    const bool several = call.begins.size() > 1 || function.rfind("MPI_Start", 0) == 0;
    if (traced.what == Traced::collective) {
      function = std::string("MPI_I") + (MpiName(otf2_collective(traced.operation)).text + 4);
      std::transform(function.begin() + 5, function.begin() + 6, function.begin() + 5, ::tolower);
    } else if (several) {
      function = traced.what == Traced::send ? "MPI_Isend" : "MPI_Irecv";
    }
    name(call, function);
    if (traced.what == Traced::collective)
      collective(traced);
    else if (traced.what != Traced::nothing)
      message(traced);
    word(Role::made, slot);
    put();
  }

  // One send and one receive are one call: MPI_Sendrecv.
  void exchange(const TracedCall& call) {
    const bool is_pair = call.messages.size() == 2 && call.messages[0].what != call.messages[1].what &&
                         call.messages[0].comm == call.messages[1].comm;
    for (std::size_t i = 0; i < call.messages.size(); ++i) {
      name(call, call.messages.size() == 1 || is_pair    ? name_of(call)
                 : call.messages[i].what == Traced::send ? "MPI_Send"
                                                         : "MPI_Recv");
      message(call.messages[i]);
      if (is_pair) message(call.messages[++i]);
      put();
    }
  }

  void meet(const TracedCall& call) {
    const Collective its = otf2_collective(call.meets->operation);
    name(call, its == Collective::count_ ? name_of(call) : MpiName(its).text);
    collective(*call.meets);
    if (call.made != OTF2_UNDEFINED_COMM) word(Role::made_comm, comm(call.made).id);
    put();
  }

  void wait(const TracedCall& call) {
    const bool in_vain = call.ends.empty();
    std::vector<std::int64_t> slots;
    for (const std::uint64_t request : in_vain ? call.sees : call.ends) {
      const auto found = slots_.find(request);
      if (found == slots_.end()) continue;
      slots.push_back(found->second);
      if (in_vain) continue;
      free_.insert(found->second);
      slots_.erase(found);
    }
    if (slots.empty()) return;
    name(call, name_of(call));
    list(Role::waited, slots);
    if (in_vain) word(Role::flag, 0);
    put();
  }

  // The least free one, as the recorder takes them.
  std::int64_t take_slot(std::uint64_t request) {
    if (const auto found = slots_.find(request); found != slots_.end()) return found->second;
    if (free_.empty()) free_.insert(static_cast<std::int64_t>(slots_.size()));
    const std::int64_t slot = *free_.begin();
    free_.erase(free_.begin());
    slots_[request] = slot;
    return slot;
  }

  const Otf2Job& job_;
  std::size_t rank_;
  record::Writer writer_;
  std::uint64_t first_ = 0, last_ = 0, calls_ = 0;
  bool has_begun_ = false;
  std::optional<Times> times_;  // of the call that is written; nothing: they are
  std::vector<std::int64_t> words_;
  std::unordered_map<std::string, std::uint64_t> functions_;
  std::unordered_map<OTF2_RegionRef, std::uint64_t> places_;
  std::unordered_map<OTF2_CommRef, Mine> comms_;
  std::int64_t next_comm_ = 2;
  std::unordered_map<std::uint64_t, std::int64_t> slots_;  // of requests
  std::set<std::int64_t> free_;
};

}  // namespace stretto::modelling
