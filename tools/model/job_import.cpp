// SPDX-License-Identifier: BSD-3-Clause
#include "job_import.hpp"

#include "json.hpp"
#include "request.hpp"

#if STRETTO_OTF2
#include <cstdio>

#include "job_file.hpp"
#include "otf2_calls.hpp"
#endif

namespace stretto::modelling {

#if !STRETTO_OTF2

Imported import_otf2(const std::string& anchor, const std::string& /*file*/) {
  stop(anchor + ": this build reads no OTF2: install libotf2-trace-dev (version 3)");
}

#else

namespace {

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
