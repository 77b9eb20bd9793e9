// SPDX-License-Identifier: BSD-3-Clause
// Recorded jobs as archives of OTF2, by its own library.
#include "job_export.hpp"
#include "request.hpp"

#if STRETTO_OTF2
#include <otf2/otf2.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "job_clocks.hpp"
#include "job_replay.hpp"
#include "job_walk.hpp"
#include "otf2_collectives.hpp"
#include "otf2_job.hpp"
#endif

namespace stretto::modelling {

#if !STRETTO_OTF2

std::uint64_t export_otf2(const JobFile& /*job*/, const std::string& name) {
  stop(name + ": this build writes no OTF2: install libotf2-trace-dev (version 3)");
}

#else

namespace {

constexpr std::uint64_t kTicks = 1'000'000'000;  // a second
constexpr const char* kProgram = "program";      // the region around all calls
constexpr std::uint64_t kMemory = 1 << 20, kDefinitionMemory = 4 << 20;

std::uint64_t ticks(double seconds) { return static_cast<std::uint64_t>(std::llround(seconds * 1e9)); }

OTF2_FlushType flush(void* /*data*/, OTF2_FileType /*type*/, OTF2_LocationRef /*location*/, void* /*caller*/,
                     bool /*final*/) {
  return OTF2_FLUSH;
}
constexpr OTF2_FlushCallbacks kFlush = {flush, nullptr};

// What events refer to, of all ranks.
struct Names {
  std::map<std::string, OTF2_RegionRef> regions;
  std::map<std::vector<int>, OTF2_CommRef> comms;  // by members; MPI_COMM_WORLD is 0

  OTF2_RegionRef region(const std::string& name) {
    return regions.try_emplace(name, static_cast<OTF2_RegionRef>(regions.size())).first->second;
  }
  OTF2_CommRef comm(const std::vector<int>& members) {
    return comms.try_emplace(members, static_cast<OTF2_CommRef>(comms.size())).first->second;
  }
};

// The events of a rank. Messages are those of MPI_COMM_WORLD.
class Events : public Visitor {
 public:
  Events(OTF2_EvtWriter* writer, Names& names) : writer_(writer), names_(names) {}

  void enters(const Action& action, std::uint32_t term, double time, double end) override {
    begin_ = ticks(time);
    end_ = ticks(end);
    if (regions_.size() <= term) regions_.resize(term + 1, OTF2_UNDEFINED_REGION);
    if (regions_[term] == OTF2_UNDEFINED_REGION) regions_[term] = names_.region("MPI_" + action.function);
    region_ = regions_[term];
    OTF2_EvtWriter_Enter(writer_, nullptr, begin_, region_);
  }
  void leaves(double /*time*/) override { OTF2_EvtWriter_Leave(writer_, nullptr, end_, region_); }
  void computes(double /*seconds*/) override {}
  [[nodiscard]] std::uint64_t end() const { return end_; }  // of the last call
  void sends(const WalkedMessage& message) override {
    OTF2_EvtWriter_MpiIsend(writer_, nullptr, begin_, static_cast<std::uint32_t>(message.peer), 0, tag_of(message),
                            message.bytes, message.number);
    under_way_[message.number] = {message, true};
  }
  void receives(const WalkedMessage& message) override {
    OTF2_EvtWriter_MpiIrecvRequest(writer_, nullptr, begin_, message.number);
    under_way_[message.number] = {message, false};
  }
  void waits(std::size_t number) override {
    const auto found = under_way_.find(number);
    if (found == under_way_.end()) return;
    const auto& [message, is_send] = found->second;
    if (is_send)
      OTF2_EvtWriter_MpiIsendComplete(writer_, nullptr, end_, number);
    else
      OTF2_EvtWriter_MpiIrecv(writer_, nullptr, end_, static_cast<std::uint32_t>(message.peer), 0, tag_of(message),
                              message.bytes, number);
    under_way_.erase(found);
  }
  void meets(const Action& action, const std::vector<int>& members, int me) override {
    if (is_neighborhood(action.collective)) return;
    const bool rooted = is_rooted(action.collective) && action.root >= 0;
    const Otf2Lengths lengths = otf2_lengths(action.collective, action.bytes, members.size(),
                                             static_cast<std::uint64_t>(me), rooted && action.root == me);
    OTF2_EvtWriter_MpiCollectiveBegin(writer_, nullptr, begin_);
    OTF2_EvtWriter_MpiCollectiveEnd(writer_, nullptr, end_, otf2_operation(action.collective), names_.comm(members),
                                    rooted ? static_cast<std::uint32_t>(action.root) : OTF2_UNDEFINED_UINT32,
                                    lengths.sent, lengths.received);
  }

 private:
  static std::uint32_t tag_of(const WalkedMessage& message) { return static_cast<std::uint32_t>(message.tag); }

  OTF2_EvtWriter* writer_;
  Names& names_;
  std::uint64_t begin_ = 0, end_ = 0;
  OTF2_RegionRef region_ = 0;
  std::vector<OTF2_RegionRef> regions_;  // by term
  std::map<std::size_t, std::pair<WalkedMessage, bool> > under_way_;
};

// The keys of a map from names to numbers, by number: readers want definitions in order.
template <class Name, class Number>
std::vector<Name> by_number(const std::map<Name, Number>& numbers) {
  std::vector<Name> names(numbers.size());
  for (const auto& [name, number] : numbers) names[number] = name;
  return names;
}

// Definitions, with the number of each string.
class Definitions {
 public:
  explicit Definitions(OTF2_GlobalDefWriter* writer) : writer_(writer) {}

  OTF2_StringRef text(const std::string& text) {
    const auto [place, is_new] = texts_.try_emplace(text, static_cast<OTF2_StringRef>(texts_.size()));
    if (is_new) OTF2_GlobalDefWriter_WriteString(writer_, place->second, text.c_str());
    return place->second;
  }
  void regions(const Names& names) {
    OTF2_RegionRef number = 0;
    for (const std::string& name : by_number(names.regions)) {
      OTF2_GlobalDefWriter_WriteRegion(writer_, number++, text(name), text(name), text(""), OTF2_REGION_ROLE_FUNCTION,
                                       name == kProgram ? OTF2_PARADIGM_USER : OTF2_PARADIGM_MPI, OTF2_REGION_FLAG_NONE,
                                       text(name == kProgram ? "" : "MPI"), 0, 0);
    }
  }
  void ranks(const JobFile& job, const std::vector<std::uint64_t>& events) {
    OTF2_GlobalDefWriter_WriteSystemTreeNode(writer_, 0, text("job"), text("machine"), OTF2_UNDEFINED_SYSTEM_TREE_NODE);
    std::map<std::string, OTF2_SystemTreeNodeRef> hosts;
    std::vector<std::uint64_t> locations;
    for (int r = 0; r < job.ranks(); ++r) {
      const std::string host = job.of(r).header().host, name = "rank " + std::to_string(r);
      const auto [place, is_new] = hosts.try_emplace(host, static_cast<OTF2_SystemTreeNodeRef>(hosts.size() + 1));
      if (is_new) OTF2_GlobalDefWriter_WriteSystemTreeNode(writer_, place->second, text(host), text("node"), 0);
      const auto group = static_cast<OTF2_LocationGroupRef>(r);
      OTF2_GlobalDefWriter_WriteLocationGroup(writer_, group, text(name), OTF2_LOCATION_GROUP_TYPE_PROCESS,
                                              place->second, OTF2_UNDEFINED_LOCATION_GROUP);
      OTF2_GlobalDefWriter_WriteLocation(writer_, static_cast<OTF2_LocationRef>(r), text(name),
                                         OTF2_LOCATION_TYPE_CPU_THREAD, events[static_cast<std::size_t>(r)], group);
      locations.push_back(static_cast<std::uint64_t>(r));
    }
    OTF2_GlobalDefWriter_WriteGroup(writer_, 0, text(""), OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI,
                                    OTF2_GROUP_FLAG_NONE, static_cast<std::uint32_t>(locations.size()),
                                    locations.data());
  }
  void communicators(const Names& names) {
    OTF2_CommRef number = 0;
    for (const std::vector<int>& members : by_number(names.comms)) {
      const std::vector<std::uint64_t> wide(members.begin(), members.end());
      const std::string name = number == 0 ? "MPI_COMM_WORLD" : "communicator " + std::to_string(number);
      OTF2_GlobalDefWriter_WriteGroup(writer_, number + 1, text(name), OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
                                      OTF2_GROUP_FLAG_NONE, static_cast<std::uint32_t>(wide.size()), wide.data());
      OTF2_GlobalDefWriter_WriteComm(writer_, number, text(name), number + 1,
                                     number == 0 ? OTF2_UNDEFINED_COMM : OTF2_CommRef{0}, OTF2_COMM_FLAG_NONE);
      ++number;
    }
  }

 private:
  OTF2_GlobalDefWriter* writer_;
  std::map<std::string, OTF2_StringRef> texts_;
};

}  // namespace

std::uint64_t export_otf2(const JobFile& job, const std::string& name) {
  OTF2_Archive* const archive = OTF2_Archive_Open(name.c_str(), "traces", OTF2_FILEMODE_WRITE, kMemory,
                                                  kDefinitionMemory, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
  if (archive == nullptr) stop(name + " cannot be written: a new folder is made for an archive");
  OTF2_Archive_SetCreator(archive, kOtf2Creator);
  OTF2_Archive_SetFlushCallbacks(archive, &kFlush, nullptr);
  OTF2_Archive_SetSerialCollectiveCallbacks(archive);
  Names names;
  std::vector<int> world(static_cast<std::size_t>(job.ranks()));
  for (std::size_t r = 0; r < world.size(); ++r) world[r] = static_cast<int>(r);
  (void)names.comm(world);
  const std::vector<double> begin = starts_of(job);
  std::vector<std::uint64_t> events(world.size(), 0);
  std::uint64_t unknown = 0;
  OTF2_Archive_OpenEvtFiles(archive);
  for (const int r : world) {
    OTF2_EvtWriter* const writer = OTF2_Archive_GetEvtWriter(archive, static_cast<OTF2_LocationRef>(r));
    Events visitor(writer, names);
    const std::uint64_t first = ticks(begin[static_cast<std::size_t>(r)]);
    OTF2_EvtWriter_Enter(writer, nullptr, first, names.region(kProgram));
    unknown += walk(job, r, visitor, begin[static_cast<std::size_t>(r)]);
    OTF2_EvtWriter_Leave(writer, nullptr, std::max(first, visitor.end()), names.region(kProgram));
    OTF2_EvtWriter_GetNumberOfEvents(writer, &events[static_cast<std::size_t>(r)]);
    OTF2_Archive_CloseEvtWriter(archive, writer);
  }
  OTF2_Archive_CloseEvtFiles(archive);
  OTF2_Archive_OpenDefFiles(archive);
  for (const int r : world)
    OTF2_Archive_CloseDefWriter(archive, OTF2_Archive_GetDefWriter(archive, static_cast<OTF2_LocationRef>(r)));
  OTF2_Archive_CloseDefFiles(archive);
  OTF2_GlobalDefWriter* const writer = OTF2_Archive_GetGlobalDefWriter(archive);
  OTF2_GlobalDefWriter_WriteClockProperties(writer, kTicks, 0, ticks(measured(job).seconds) + 1,
                                            job.of(0).header().first_ns);
  Definitions definitions(writer);
  (void)definitions.text("");
  definitions.regions(names);
  definitions.ranks(job, events);
  definitions.communicators(names);
  OTF2_Archive_CloseGlobalDefWriter(archive, writer);
  if (OTF2_Archive_Close(archive) != OTF2_SUCCESS) stop(name + " cannot be written");
  return unknown;
}

#endif

}  // namespace stretto::modelling
