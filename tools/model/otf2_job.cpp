// SPDX-License-Identifier: BSD-3-Clause
#if STRETTO_OTF2
#include "otf2_job.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "request.hpp"

namespace stretto::modelling {
namespace {

// Definitions as they come: what they refer to may come later.
struct RawDefinitions {
  struct Region {
    OTF2_StringRef name, file;
    OTF2_Paradigm paradigm;
    std::uint32_t line;
  };
  struct Location {
    OTF2_LocationGroupRef group;
    OTF2_LocationType type;
  };
  struct Group {
    OTF2_GroupType type;
    bool is_global;
    std::vector<std::uint64_t> members;
  };
  struct Comm {
    OTF2_GroupRef a, b;  // b: of an intercommunicator
  };
  std::uint64_t resolution = 0, begin = 0, real_ns = 0;
  std::unordered_map<OTF2_StringRef, std::string> texts;
  std::unordered_map<OTF2_RegionRef, Region> regions;
  std::map<OTF2_LocationRef, Location> locations;
  std::unordered_map<OTF2_LocationGroupRef, OTF2_SystemTreeNodeRef> hosts;  // of processes
  std::unordered_map<OTF2_SystemTreeNodeRef, OTF2_StringRef> nodes;
  std::unordered_map<OTF2_GroupRef, Group> groups;
  std::vector<OTF2_LocationRef> all_ranks;
  std::map<OTF2_CommRef, Comm> comms;

  [[nodiscard]] std::string text(OTF2_StringRef ref) const {
    const auto found = texts.find(ref);
    return found == texts.end() ? "" : found->second;
  }
};

RawDefinitions& raw(void* data) { return *static_cast<RawDefinitions*>(data); }

OTF2_CallbackCode on_clock(void* data, std::uint64_t resolution, std::uint64_t begin, std::uint64_t /*length*/,
                           std::uint64_t real_ns) {
  raw(data).resolution = resolution;
  raw(data).begin = begin;
  if (real_ns != OTF2_UNDEFINED_TIMESTAMP) raw(data).real_ns = real_ns;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_string(void* data, OTF2_StringRef self, const char* text) {
  raw(data).texts[self] = text;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_region(void* data, OTF2_RegionRef self, OTF2_StringRef name, OTF2_StringRef /*canonical*/,
                            OTF2_StringRef /*description*/, OTF2_RegionRole /*role*/, OTF2_Paradigm paradigm,
                            OTF2_RegionFlag /*flags*/, OTF2_StringRef file, std::uint32_t line, std::uint32_t /*end*/) {
  raw(data).regions[self] = {name, file, paradigm, line};
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_node(void* data, OTF2_SystemTreeNodeRef self, OTF2_StringRef name, OTF2_StringRef /*type*/,
                          OTF2_SystemTreeNodeRef /*parent*/) {
  raw(data).nodes[self] = name;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_process(void* data, OTF2_LocationGroupRef self, OTF2_StringRef /*name*/,
                             OTF2_LocationGroupType /*type*/, OTF2_SystemTreeNodeRef parent,
                             OTF2_LocationGroupRef /*creator*/) {
  raw(data).hosts[self] = parent;
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_location(void* data, OTF2_LocationRef self, OTF2_StringRef /*name*/, OTF2_LocationType type,
                              std::uint64_t /*events*/, OTF2_LocationGroupRef group) {
  raw(data).locations[self] = {group, type};
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_group(void* data, OTF2_GroupRef self, OTF2_StringRef /*name*/, OTF2_GroupType type,
                           OTF2_Paradigm paradigm, OTF2_GroupFlag flags, std::uint32_t count,
                           const std::uint64_t* members) {
  if (paradigm != OTF2_PARADIGM_MPI) return OTF2_CALLBACK_SUCCESS;
  if (type == OTF2_GROUP_TYPE_COMM_LOCATIONS)  // EZTrace gives its number to another group, too
    raw(data).all_ranks.assign(members, members + count);
  else
    raw(data).groups[self] = {type, (flags & OTF2_GROUP_FLAG_GLOBAL_MEMBERS) != 0, {members, members + count}};
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_comm(void* data, OTF2_CommRef self, OTF2_StringRef /*name*/, OTF2_GroupRef group,
                          OTF2_CommRef /*parent*/, OTF2_CommFlag /*flags*/) {
  raw(data).comms[self] = {group, OTF2_UNDEFINED_GROUP};
  return OTF2_CALLBACK_SUCCESS;
}
OTF2_CallbackCode on_inter_comm(void* data, OTF2_CommRef self, OTF2_StringRef /*name*/, OTF2_GroupRef a,
                                OTF2_GroupRef b, OTF2_CommRef /*common*/, OTF2_CommFlag /*flags*/) {
  raw(data).comms[self] = {a, b};
  return OTF2_CALLBACK_SUCCESS;
}

RawDefinitions read_definitions(OTF2_Reader* reader, const std::string& name) {
  RawDefinitions found;
  OTF2_GlobalDefReader* const definitions = OTF2_Reader_GetGlobalDefReader(reader);
  if (definitions == nullptr) stop(name + ": its definitions cannot be read");
  OTF2_GlobalDefReaderCallbacks* const calls = OTF2_GlobalDefReaderCallbacks_New();
  OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(calls, on_clock);
  OTF2_GlobalDefReaderCallbacks_SetStringCallback(calls, on_string);
  OTF2_GlobalDefReaderCallbacks_SetRegionCallback(calls, on_region);
  OTF2_GlobalDefReaderCallbacks_SetSystemTreeNodeCallback(calls, on_node);
  OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(calls, on_process);
  OTF2_GlobalDefReaderCallbacks_SetLocationCallback(calls, on_location);
  OTF2_GlobalDefReaderCallbacks_SetGroupCallback(calls, on_group);
  OTF2_GlobalDefReaderCallbacks_SetCommCallback(calls, on_comm);
  OTF2_GlobalDefReaderCallbacks_SetInterCommCallback(calls, on_inter_comm);
  OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, calls, &found);
  OTF2_GlobalDefReaderCallbacks_Delete(calls);
  std::uint64_t read = 0;
  if (OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &read) != OTF2_SUCCESS)
    stop(name + ": its definitions are damaged");
  return found;
}

// TAU writes "MPI_Send()".
std::string function_name(const std::string& name) { return name.substr(0, name.find_first_of("( ")); }

Otf2Region region_of(const RawDefinitions& raw, const RawDefinitions::Region& region) {
  Otf2Region made;
  made.name = raw.text(region.name);
  made.is_mpi = region.paradigm == OTF2_PARADIGM_MPI || made.name.rfind("MPI_", 0) == 0;
  if (made.is_mpi) made.name = function_name(made.name);
  const std::string file = raw.text(region.file);
  made.place = file.empty() ? made.name : file + ":" + std::to_string(region.line) + " in " + made.name;
  return made;
}

std::string host_of(const RawDefinitions& raw, OTF2_LocationRef location) {
  const auto place = raw.locations.find(location);
  if (place == raw.locations.end()) return "";
  const auto process = raw.hosts.find(place->second.group);
  const auto node = process == raw.hosts.end() ? raw.nodes.end() : raw.nodes.find(process->second);
  return node == raw.nodes.end() ? "" : raw.text(node->second);
}

// A group of no members, or of unknown ones, makes a communicator that nobody is in.
const RawDefinitions::Group* group_of(const RawDefinitions& raw, OTF2_GroupRef ref) {
  const auto found = raw.groups.find(ref);
  return found == raw.groups.end() ? nullptr : &found->second;
}

Otf2Comm comm_of(const RawDefinitions& raw, const RawDefinitions::Comm& comm) {
  Otf2Comm made;
  made.is_inter = comm.b != OTF2_UNDEFINED_GROUP;
  if (const RawDefinitions::Group* const group = group_of(raw, comm.a)) {
    made.is_self = group->type == OTF2_GROUP_TYPE_COMM_SELF;
    made.names_world = group->is_global;
    if (!made.is_self) made.members = group->members;
  }
  if (const RawDefinitions::Group* const group = group_of(raw, comm.b)) made.remote = group->members;
  return made;
}

}  // namespace

Otf2Job read_otf2_job(OTF2_Reader* reader, const std::string& name) {
  const RawDefinitions raw = read_definitions(reader, name);
  if (raw.all_ranks.empty()) stop(name + " does not say which locations are the ranks of MPI_COMM_WORLD");
  if (raw.resolution == 0) stop(name + " does not say how long a tick of its clock is");
  Otf2Job job;
  job.resolution = raw.resolution;
  job.begin = raw.begin;
  job.real_ns = raw.real_ns;
  std::set<OTF2_LocationRef> ranks;
  for (const OTF2_LocationRef location : raw.all_ranks) {
    if (raw.locations.find(location) == raw.locations.end() || !ranks.insert(location).second)
      stop(name + ": its list of ranks is damaged");
    job.ranks.push_back({location, host_of(raw, location)});
  }
  for (const auto& [location, about] : raw.locations) {
    if (about.type != OTF2_LOCATION_TYPE_METRIC && ranks.count(location) == 0) job.beside.push_back(location);
  }
  for (const auto& [ref, region] : raw.regions) job.regions[ref] = region_of(raw, region);
  std::vector<std::uint64_t> world(job.ranks.size());
  for (std::size_t r = 0; r < world.size(); ++r) world[r] = r;
  for (const auto& [ref, comm] : raw.comms) {
    const Otf2Comm& made = job.comms[ref] = comm_of(raw, comm);
    for (const auto* const members : {&made.members, &made.remote}) {
      for (const std::uint64_t member : *members) {
        if (member >= world.size()) stop(name + ": a communicator has ranks that are not there");
      }
    }
    if (job.world == OTF2_UNDEFINED_COMM && !made.is_inter && made.members == world) job.world = ref;
  }
  return job;
}

}  // namespace stretto::modelling
#endif
