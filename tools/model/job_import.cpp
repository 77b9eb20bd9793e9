// SPDX-License-Identifier: BSD-3-Clause
#include "job_import.hpp"

#include "json.hpp"
#include "request.hpp"

#if STRETTO_OTF2
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>

#include "job_file.hpp"
#include "otf2_collectives.hpp"
#include "otf2_job.hpp"
#include "record/writer.hpp"
#endif

namespace stretto::modelling {

#if !STRETTO_OTF2

Imported import_otf2(const std::string& anchor, const std::string& /*file*/) {
  stop(anchor + ": this build reads no OTF2: install libotf2-trace-dev (version 3)");
}

#else

namespace {

using record::Role;

constexpr double kImportBound = 0;                     // each time is kept
constexpr std::int64_t kWorldComm = 0, kSelfComm = 1;  // as the recorder numbers them

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

// What begins with a request, in the order of the events, with what is known when it ends.
class Requests {
 public:
  void begins(std::uint64_t request) {
    const auto [place, is_new] = open_.try_emplace(request, all_.size());
    if (!is_new) ++lost_;  // the trace does not say when the one before has ended
    place->second = all_.size();
    all_.emplace_back();
  }
  void knows(std::uint64_t request, const Traced& traced) {
    if (const auto found = open_.find(request); found != open_.end()) all_[found->second] = traced;
  }
  void ends(std::uint64_t request) { open_.erase(request); }
  // Those whose end is not in the trace.
  [[nodiscard]] std::uint64_t open() const { return open_.size() + lost_; }
  const Traced& next() { return all_[next_++]; }

 private:
  std::vector<Traced> all_;
  std::unordered_map<std::uint64_t, std::size_t> open_;
  std::uint64_t lost_ = 0;
  std::size_t next_ = 0;
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
    define_comm(kWorldComm, rank, all, {});
    define_comm(kSelfComm, 0, {rank}, {});
    if (job.world != OTF2_UNDEFINED_COMM) comms_[job.world] = {kWorldComm, static_cast<std::int64_t>(rank), all.size()};
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
      mine->second = {kSelfComm, 0, 1};
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

// What both looks at the events of a location have in common: the first finds what requests become,
// the second makes calls.
struct Look {
  const Otf2Job& job;
  Requests& requests;
  RankWriter* writer = nullptr;  // of the second look
  bool uses_mpi = false;
  bool has_ended = false;  // by MPI_Finalize
  std::uint64_t one_sided = 0;
  std::uint64_t depth = 0;  // of regions of MPI: a call may make others
  std::vector<OTF2_RegionRef> places = {};
  TracedCall call = {};
};

Look& look(void* data) {
  Look& its = *static_cast<Look*>(data);
  its.uses_mpi = true;
  return its;
}

OTF2_CallbackCode on_enter(OTF2_LocationRef /*location*/, OTF2_TimeStamp time, std::uint64_t /*position*/, void* data,
                           OTF2_AttributeList* /*attributes*/, OTF2_RegionRef region) {
  Look& its = *static_cast<Look*>(data);
  if (its.writer == nullptr || its.has_ended) return OTF2_CALLBACK_SUCCESS;
  its.writer->sees(time);
  const auto known = its.job.regions.find(region);
  if (known == its.job.regions.end() || !known->second.is_mpi) {
    its.places.push_back(region);
    return OTF2_CALLBACK_SUCCESS;
  }
  if (its.depth++ != 0) return OTF2_CALLBACK_SUCCESS;
  its.call = {};
  its.call.region = region;
  its.call.begin = time;
  if (!its.places.empty()) its.call.place = its.places.back();
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode on_leave(OTF2_LocationRef /*location*/, OTF2_TimeStamp time, std::uint64_t /*position*/, void* data,
                           OTF2_AttributeList* /*attributes*/, OTF2_RegionRef region) {
  Look& its = *static_cast<Look*>(data);
  if (its.writer == nullptr || its.has_ended) return OTF2_CALLBACK_SUCCESS;
  const auto known = its.job.regions.find(region);
  if (known == its.job.regions.end() || !known->second.is_mpi) {
    if (!its.places.empty()) its.places.pop_back();
    return OTF2_CALLBACK_SUCCESS;
  }
  if (its.depth == 0 || --its.depth != 0) return OTF2_CALLBACK_SUCCESS;
  const std::string& name = known->second.name;
  if (name.rfind("MPI_Init", 0) == 0) {  // MPI_Initialized, too
    its.writer->begin(time);
  } else if (name == "MPI_Finalize") {
    its.writer->finalize(its.call.begin);
    its.has_ended = true;
  } else {
    its.writer->call(its.call, time);
  }
  return OTF2_CALLBACK_SUCCESS;
}

OTF2_CallbackCode on_send(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                          void* data, OTF2_AttributeList* /*attributes*/, std::uint32_t to, OTF2_CommRef comm,
                          std::uint32_t tag, std::uint64_t bytes) {
  look(data).call.messages.push_back({Traced::send, 0, comm, to, tag, bytes});
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_recv(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                          void* data, OTF2_AttributeList* /*attributes*/, std::uint32_t from, OTF2_CommRef comm,
                          std::uint32_t tag, std::uint64_t bytes) {
  look(data).call.messages.push_back({Traced::receive, 0, comm, from, tag, bytes});
  return OTF2_CALLBACK_SUCCESS;
}

// A request begins: the first look notes it, the second takes what it became.
void begins(Look& its, std::uint64_t request) {
  if (its.writer == nullptr) return its.requests.begins(request);
  its.call.begins.push_back(its.requests.next());
  its.call.begins.back().request = request;
}
void ends(Look& its, std::uint64_t request, const Traced& traced) {
  if (its.writer != nullptr) return its.call.ends.push_back(request);
  its.requests.knows(request, traced);
  its.requests.ends(request);
}

OTF2_CallbackCode on_isend(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                           void* data, OTF2_AttributeList* /*attributes*/, std::uint32_t to, OTF2_CommRef comm,
                           std::uint32_t tag, std::uint64_t bytes, std::uint64_t request) {
  Look& its = look(data);
  begins(its, request);
  // Unless it is cancelled it is known already.
  if (its.writer == nullptr) its.requests.knows(request, {Traced::send, 0, comm, to, tag, bytes});
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_isend_end(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                               void* data, OTF2_AttributeList* /*attributes*/, std::uint64_t request) {
  Look& its = look(data);
  if (its.writer == nullptr)
    its.requests.ends(request);
  else
    its.call.ends.push_back(request);
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_request(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                             void* data, OTF2_AttributeList* /*attributes*/, std::uint64_t request) {
  begins(look(data), request);
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_irecv(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                           void* data, OTF2_AttributeList* /*attributes*/, std::uint32_t from, OTF2_CommRef comm,
                           std::uint32_t tag, std::uint64_t bytes, std::uint64_t request) {
  ends(look(data), request, {Traced::receive, 0, comm, from, tag, bytes});
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_test(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                          void* data, OTF2_AttributeList* /*attributes*/, std::uint64_t request) {
  look(data).call.sees.push_back(request);
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_cancelled(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                               void* data, OTF2_AttributeList* /*attributes*/, std::uint64_t request) {
  ends(look(data), request, {});
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_collective(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                                void* data, OTF2_AttributeList* /*attributes*/, OTF2_CollectiveOp operation,
                                OTF2_CommRef comm, std::uint32_t root, std::uint64_t sent, std::uint64_t received) {
  look(data).call.meets = Traced{Traced::collective, operation, comm, root, 0, sent, received};
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_icollective(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                                 void* data, OTF2_AttributeList* /*attributes*/, OTF2_CollectiveOp operation,
                                 OTF2_CommRef comm, std::uint32_t root, std::uint64_t sent, std::uint64_t received,
                                 std::uint64_t request) {
  ends(look(data), request, {Traced::collective, operation, comm, root, 0, sent, received});
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_comm_made(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                               void* data, OTF2_AttributeList* /*attributes*/, OTF2_CommRef comm) {
  look(data).call.made = comm;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_put_or_get(OTF2_LocationRef /*location*/, OTF2_TimeStamp /*time*/, std::uint64_t /*position*/,
                                void* data, OTF2_AttributeList* /*attributes*/, OTF2_RmaWinRef /*window*/,
                                std::uint32_t /*remote*/, std::uint64_t /*bytes*/, std::uint64_t /*matching*/) {
  ++look(data).one_sided;
  return OTF2_CALLBACK_SUCCESS;
}

using EventCallbacks = std::unique_ptr<OTF2_EvtReaderCallbacks, void (*)(OTF2_EvtReaderCallbacks*)>;

EventCallbacks event_callbacks() {
  EventCallbacks calls(OTF2_EvtReaderCallbacks_New(), OTF2_EvtReaderCallbacks_Delete);
  OTF2_EvtReaderCallbacks_SetEnterCallback(calls.get(), on_enter);
  OTF2_EvtReaderCallbacks_SetLeaveCallback(calls.get(), on_leave);
  OTF2_EvtReaderCallbacks_SetMpiSendCallback(calls.get(), on_send);
  OTF2_EvtReaderCallbacks_SetMpiRecvCallback(calls.get(), on_recv);
  OTF2_EvtReaderCallbacks_SetMpiIsendCallback(calls.get(), on_isend);
  OTF2_EvtReaderCallbacks_SetMpiIsendCompleteCallback(calls.get(), on_isend_end);
  OTF2_EvtReaderCallbacks_SetMpiIrecvRequestCallback(calls.get(), on_request);
  OTF2_EvtReaderCallbacks_SetMpiIrecvCallback(calls.get(), on_irecv);
  OTF2_EvtReaderCallbacks_SetMpiRequestTestCallback(calls.get(), on_test);
  OTF2_EvtReaderCallbacks_SetMpiRequestCancelledCallback(calls.get(), on_cancelled);
  OTF2_EvtReaderCallbacks_SetMpiCollectiveEndCallback(calls.get(), on_collective);
  OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(calls.get(), on_request);
  OTF2_EvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(calls.get(), on_icollective);
  OTF2_EvtReaderCallbacks_SetCommCreateCallback(calls.get(), on_comm_made);
  OTF2_EvtReaderCallbacks_SetRmaPutCallback(calls.get(), on_put_or_get);
  OTF2_EvtReaderCallbacks_SetRmaGetCallback(calls.get(), on_put_or_get);
  return calls;
}

// An archive that is open for reading. The library's own messages are replaced by ours.
class TraceArchive {
 public:
  explicit TraceArchive(std::string name) : name_(std::move(name)), callbacks_(event_callbacks()) {
    OTF2_Error_RegisterCallback(
        [](void*, const char*, std::uint64_t, const char*, OTF2_ErrorCode code, const char*, va_list) { return code; },
        nullptr);
    reader_ = OTF2_Reader_Open(name_.c_str());
    if (reader_ == nullptr) stop(name_ + " is no anchor file of an OTF2 archive that can be read");
    OTF2_Reader_SetSerialCollectiveCallbacks(reader_);
    job_ = read_otf2_job(reader_, name_);
    job_.creator = text(OTF2_Reader_GetCreator);
    job_.sums_lengths = job_.creator.rfind("Score-P", 0) == 0 || job_.creator == kOtf2Creator;
    job_.program = name_;
    for (const Otf2Rank& rank : job_.ranks) OTF2_Reader_SelectLocation(reader_, rank.location);
    for (const OTF2_LocationRef each : job_.beside) OTF2_Reader_SelectLocation(reader_, each);
    const bool has_own = OTF2_Reader_OpenDefFiles(reader_) == OTF2_SUCCESS;
    if (OTF2_Reader_OpenEvtFiles(reader_) != OTF2_SUCCESS) stop(name_ + ": its events cannot be read");
    for (const Otf2Rank& rank : job_.ranks) read_own(rank.location, has_own);
    for (const OTF2_LocationRef each : job_.beside) read_own(each, has_own);
    if (has_own) OTF2_Reader_CloseDefFiles(reader_);
  }
  ~TraceArchive() { OTF2_Reader_Close(reader_); }
  TraceArchive(const TraceArchive&) = delete;
  TraceArchive& operator=(const TraceArchive&) = delete;

  [[nodiscard]] const Otf2Job& job() const { return job_; }

  // All events of a location.
  void read(OTF2_LocationRef location, Look& look) {
    OTF2_EvtReader* const events = OTF2_Reader_GetEvtReader(reader_, location);
    if (events == nullptr) stop(name_ + ": the events of location " + std::to_string(location) + " are missing");
    OTF2_Reader_RegisterEvtCallbacks(reader_, events, callbacks_.get(), &look);
    std::uint64_t read = 0;
    const OTF2_ErrorCode code = OTF2_Reader_ReadAllLocalEvents(reader_, events, &read);
    OTF2_Reader_CloseEvtReader(reader_, events);
    if (code != OTF2_SUCCESS)
      stop(name_ + ": the events of location " + std::to_string(location) + " are damaged behind " +
           std::to_string(read));
  }

 private:
  // Its clock's offsets, and what its numbers mean: the reader applies them.
  void read_own(OTF2_LocationRef location, bool has_own) {
    if (has_own) {
      OTF2_DefReader* const own = OTF2_Reader_GetDefReader(reader_, location);
      std::uint64_t read = 0;
      if (own != nullptr) {
        OTF2_Reader_ReadAllLocalDefinitions(reader_, own, &read);
        OTF2_Reader_CloseDefReader(reader_, own);
      }
    }
    (void)OTF2_Reader_GetEvtReader(reader_, location);
  }
  std::string text(OTF2_ErrorCode (*get)(OTF2_Reader*, char**)) {
    char* found = nullptr;
    if (get(reader_, &found) != OTF2_SUCCESS || found == nullptr) return "another tool";
    std::string copy = found;
    std::free(found);
    return copy;
  }

  std::string name_;
  EventCallbacks callbacks_;
  OTF2_Reader* reader_ = nullptr;
  Otf2Job job_;
};

void import_rank(TraceArchive& archive, std::size_t rank, const std::string& path, Imported& imported) {
  const Otf2Job& job = archive.job();
  Requests requests;
  Look first{job, requests};
  archive.read(job.ranks[rank].location, first);
  RankWriter writer(job, rank, path);
  Look second{job, requests, &writer};
  archive.read(job.ranks[rank].location, second);
  writer.close();
  imported.calls += writer.calls();
  imported.one_sided += first.one_sided;
  imported.open += requests.open();
}

}  // namespace

Imported import_otf2(const std::string& anchor, const std::string& file) {
  TraceArchive archive(anchor);
  const Otf2Job& job = archive.job();
  Imported imported;
  imported.ranks = static_cast<int>(job.ranks.size());
  imported.beside = job.beside.size();
  for (const OTF2_LocationRef location : job.beside) {
    Requests requests;
    Look look{job, requests};
    archive.read(location, look);
    if (look.uses_mpi)
      stop(anchor + ": several threads of a rank call MPI (location " + std::to_string(location) +
           "): their calls have no order");
  }
  std::vector<std::string> parts;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    parts.push_back(file + "." + std::to_string(rank));
    import_rank(archive, rank, parts.back(), imported);
  }
  (void)JobFile(parts).pack(file);
  for (const std::string& part : parts) std::remove(part.c_str());
  return imported;
}

#endif

void import_job(const std::vector<std::string>& words) {
  const Imported imported = import_otf2(words[0], words[1]);
  Json json;
  json.open('{');
  json.key("ranks").integer(imported.ranks);
  json.key("calls").integer(static_cast<std::int64_t>(imported.calls));
  json.key("beside").integer(static_cast<std::int64_t>(imported.beside));
  json.key("one_sided").integer(static_cast<std::int64_t>(imported.one_sided));
  json.key("open").integer(static_cast<std::int64_t>(imported.open));
  json.close('}');
  json.end();
}

}  // namespace stretto::modelling
