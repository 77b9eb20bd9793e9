// SPDX-License-Identifier: BSD-3-Clause
#include "request.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "../names.hpp"
#include "base/units.hpp"
#include "select/reduce_forms.hpp"
#include "topo/network.hpp"
#include "topo/placement_file.hpp"

namespace stretto::modelling {
namespace {

using sched::Costs;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}
std::int64_t integer(const std::string& text, const char* what) {
  std::int64_t value = 0;
  if (!parse_integer(text.data(), text.size(), &value) || value < 0 || value > 0x7fffffff)
    stop(std::string(what) + ": not a number up to 2147483647: " + text);
  return value;
}
std::uint64_t size(const std::string& text) {
  std::uint64_t bytes = 0;
  if (!parse_size(text.data(), text.size(), &bytes)) stop("--bytes: not a size: " + text);
  return bytes;
}
Collective collective(const std::string& name) {
  const Collective found = collective_named(name.c_str());
  if (found != Collective::count_ && !is_neighborhood(found)) return found;
  std::string known;
  for (const char* const each : kCollectiveNames) {
    if (!is_neighborhood(collective_named(each))) list(known, each);
  }
  stop("no such collective: " + name + ": one of " + known);
}
std::string read_file(const std::string& name) {
  // A stream opens a directory too, and throws when it is read.
  if (std::filesystem::is_directory(name)) stop("cannot read " + name + ": it is a directory");
  std::ifstream file(name);
  if (!file) stop("cannot read " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class File>
File parse_file(const std::string& name) {
  const std::string text = read_file(name);
  File file;
  FileError error;
  if (!file.parse(text.data(), text.size(), &error)) {
    stop(name + ":" + std::to_string(error.line) + ":" + std::to_string(error.column) + ": " + error.what);
  }
  return file;
}

// ---- Where ranks are ----

topo::Placement placement_of_levels(const std::string& text, int ranks) {
  topo::Placement placement;
  placement.start(ranks);
  std::int64_t each = 1;
  for (const std::string& level : split(text, ',')) {
    const auto parts = split(level, ':');
    if (parts.size() != 2) stop("--levels: NAME:N expected, not " + level);
    each *= integer(parts[1], "--levels");
    if (each == 0 || each > 0x7fffffff) stop("--levels: " + level + ": 1 or more, and no more ranks than there can be");
    if (!placement.add_level_of(parts[0].c_str(), each)) stop("--levels: too many levels");
  }
  return placement;
}

topo::Placement placement_of_network(const Request& request, int ranks) {
  const auto network = parse_file<topo::Network>(request.network);
  if (ranks > network.nodes() * request.per_node) stop("more ranks than the network has places for: see --per-node");
  topo::Placement placement;
  placement.start(ranks);
  placement.add_level_of("node", request.per_node);
  for (int level = 0; level < network.levels(); ++level) {
    const std::string name = level == 0 ? "leaf" : "switch" + std::to_string(level + 1);
    if (!placement.add_level(name.c_str())) stop(request.network + ": too many levels");
    for (int r = 0; r < ranks; ++r) placement.at(level + 1, r) = network.switch_over(r / request.per_node, level);
  }
  return placement;
}

topo::Placement placement_of_places(const Request& request, int ranks) {
  const auto file = parse_file<topo::PlacementFile>(request.places);
  topo::Placement placement;
  if (!file.place(ranks, &placement)) stop("no memory");
  return placement;
}

// ---- Costs ----

struct Named {
  std::string name;
  sched::Pieces<sched::LogGP> path;
};
struct CostsFile {
  std::vector<Named> paths;
  Costs costs;
  std::vector<std::pair<std::string, sched::Port>> ports;
  std::string processors;  // the level that shares them
};

template <class Piece>
void add_piece(sched::Pieces<Piece>& pieces, bool first, const Piece& piece) {
  pieces.count = first ? 1 : pieces.count + 1;
  if (pieces.count > sched::kMostPieces) stop("costs: too many pieces");
  pieces.piece[pieces.count - 1] = piece;
}

CostsFile read_costs(const std::string& name) {
  CostsFile file;
  bool first_reduce = true, first_copy = true;
  std::istringstream text(read_file(name));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string kind, what;
    if (!(words >> kind)) continue;
    if (kind == "path") {
      sched::LogGP p;
      words >> what >> p.from_bytes >> p.latency >> p.send_overhead >> p.receive_overhead >> p.gap >> p.byte_gap >>
          p.send_byte >> p.receive_byte >> p.handling >> p.handling_byte >> p.requests_queue;
      const bool first = file.paths.empty() || file.paths.back().name != what;
      if (first) file.paths.push_back(Named{what, {}});
      add_piece(file.paths.back().path, first, p);
    } else if (kind == "reduce" || kind == "copy") {
      sched::Work work;
      words >> work.from_bytes >> work.fixed >> work.per_byte;
      bool& first = kind == "copy" ? first_copy : first_reduce;
      add_piece(kind == "copy" ? file.costs.copy : file.costs.reduce, first, work);
      first = false;
    } else if (kind == "port") {
      sched::Port port{.there = true};
      words >> what >> port.gap >> port.byte_gap >> port.burst_bytes;
      file.ports.emplace_back(what, port);
    } else if (kind == "processors") {
      words >> file.processors >> file.costs.processors.count >> file.costs.processors.turn;
    } else if (kind == "ports") {
      words >> what;
      file.costs.port_rule = what == "fair" ? sched::PortRule::fair : sched::PortRule::in_turn;
    } else if (kind == "gap") {
      words >> what;
      file.costs.gap_rule = what == "any" ? sched::GapRule::any_two : sched::GapRule::per_direction;
    } else {
      stop(name + ": " + kind + "?");
    }
    if (words.fail()) stop(name + ": not understood: " + line);
  }
  if (file.paths.empty()) stop(name + ": no path");
  return file;
}

// The lowest level on which all ranks are in one domain. A hierarchy has no groups for it, since it
// splits nothing. (Domains have numbers of their own here.)
topo::LevelName outermost(const topo::Placement& placement) {
  for (int level = 0; level < placement.levels; ++level) {
    const std::int32_t* const domains =
        &placement.domains[static_cast<std::size_t>(level) * static_cast<std::size_t>(placement.ranks)];
    if (domains[0] != topo::Placement::kNowhere &&
        std::all_of(domains, domains + placement.ranks, [&](std::int32_t d) { return d == domains[0]; })) {
      return placement.names[level];
    }
  }
  return {"top"};
}

// Finds the lowest level of the hierarchy whose groups are the placement's domains of a level by
// this name. The hierarchy may have left that level out, if it splits no more than another. -1:
// each of its domains has one rank. False: the placement has no such level.
bool find_groups(const topo::Placement& placement, const topo::Hierarchy& place, const std::string& name, int* found) {
  for (int level = 0; level < placement.levels; ++level) {
    if (!placement.names[level].is(name.c_str())) continue;
    const auto domain = [&](int rank) { return placement.at(level, rank); };
    std::set<std::int32_t> domains;
    for (int r = 0; r < placement.ranks; ++r) domains.insert(domain(r));
    for (*found = domains.size() == static_cast<std::size_t>(placement.ranks) ? -1 : 0;
         *found >= 0 && *found < place.levels(); ++*found) {
      std::set<std::pair<std::int32_t, int>> both;
      for (int r = 0; r < placement.ranks; ++r) both.emplace(domain(r), place.group_over(r, *found));
      if (both.size() == domains.size() && static_cast<int>(domains.size()) == place.groups_on(*found)) break;
    }
    return *found < place.levels();
  }
  return false;
}

// Why a collective has no algorithm of this name, with those that it has.
std::string unknown(const select::Shape& shape, const std::string& name) {
  const std::string collective = kCollectiveNames[static_cast<int>(shape.collective)];
  select::Candidate candidate;
  std::string known;
  const std::size_t by = name.find(" by=");
  const std::string composition = name.substr(0, by);
  if (by != std::string::npos && select::find_composition(shape.collective, composition.c_str())) {
    std::set<std::string> names;
    for (const coll::Algorithm& each : coll::manifest()) {
      if (select::named_candidate(shape, (composition + " by=" + each.name).c_str(), &candidate))
        names.insert(each.name);
    }
    for (const std::string& each : names) list(known, each);
    return collective + ": " + composition + " has no" + name.substr(by) + ": one of " + known;
  }
  std::string compositions;
  for (const select::CompositionName& each : select::kCompositions) {
    if (select::find_composition(shape.collective, each.text)) list(compositions, each.text);
  }
  known = algorithms_of(shape.collective) + (compositions.empty() ? "" : "; with levels: " + compositions);
  return collective + " has no algorithm " + name + ": one of " + known;
}

void assign_shared(const CostsFile& file, const topo::Placement& placement, const topo::Hierarchy& place,
                   Costs& costs) {
  int level = -1;
  for (const auto& [name, port] : file.ports) {
    if (find_groups(placement, place, name, &level)) costs.ports[level + 1] = port;
  }
  const bool shared = find_groups(placement, place, file.processors, &level) && level >= 0;
  costs.processors = {shared ? costs.processors.count : 0, level, costs.processors.turn};
}

// Assigns the file's paths to the levels of this hierarchy.
void assign(const CostsFile& file, const topo::Placement& placement, const topo::Hierarchy& place, Costs& costs) {
  std::size_t last = 0;
  for (int level = 0; level < place.levels(); ++level) {
    const bool is_top = level == place.levels() - 1;
    const topo::LevelName name = is_top ? outermost(placement) : place.name(level);
    if (is_top && name.is("top")) last = file.paths.size() - 1;
    for (std::size_t i = 0; i < file.paths.size(); ++i) {
      if (name.is(file.paths[i].name.c_str())) last = i;
    }
    costs.paths[level] = file.paths[last].path;
  }
  assign_shared(file, placement, place, costs);
}

}  // namespace

void stop(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);
}

Request parse_request(int argc, char** argv) {
  Request request;
  const auto option = [&](const std::string& name, const std::string& value) {
    if (name == "--op")
      request.shape.collective = collective(value);
    else if (name == "--algorithm")
      request.algorithms.push_back(value);
    else if (name == "--root")
      request.shape.root = static_cast<int>(integer(value, "--root"));
    else if (name == "--k")
      request.best_k = value == "best",
      request.parameters.k = request.best_k ? 0 : static_cast<int>(integer(value, "--k"));
    else if (name == "--segments")
      request.parameters.segments = static_cast<int>(integer(value, "--segments"));
    else if (name == "--window")
      request.parameters.window = static_cast<int>(integer(value, "--window"));
    else if (name == "--levels")
      request.levels = value;
    else if (name == "--network")
      request.network = value;
    else if (name == "--places")
      request.places = value;
    else if (name == "--per-node")
      request.per_node = std::max(1, static_cast<int>(integer(value, "--per-node")));
    else if (name == "--costs")
      request.costs = value;
    else if (name == "--rules")
      request.rules = value;
    else if (name == "--nodes")
      request.nodes = static_cast<int>(integer(value, "--nodes"));
    else if (name == "--ranks") {
      request.ranks.clear();
      for (const std::string& each : split(value, ','))
        request.ranks.push_back(static_cast<int>(integer(each, "--ranks")));
      if (std::count(request.ranks.begin(), request.ranks.end(), 0)) stop("--ranks: 1 or more");
    } else if (name == "--bytes") {
      request.bytes.clear();
      for (const std::string& each : split(value, ',')) request.bytes.push_back(size(each));
    } else
      stop("no such option: " + name);
  };
  request.shape.commutative = true;
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--ordered")
      request.shape.commutative = false;
    else if (name == "--per-rank")
      request.per_rank = true;
    else if (name == "--posted")
      request.posted = true;
    else if (i + 1 < argc)
      option(name, argv[++i]);
    else
      stop(name + ": a value is missing");
  }
  if (request.ranks.empty() || request.bytes.empty()) stop("--ranks and --bytes must not be empty");
  request.shape.ranks = request.ranks[0];
  request.shape.bytes = request.bytes[0];
  return request;
}

select::Rules read_rules(const Request& request) { return parse_file<select::Rules>(request.rules); }

topo::Placement placement_of(const Request& request, int ranks) {
  topo::Placement placement;
  placement.start(ranks);
  if (!request.places.empty())
    placement = placement_of_places(request, ranks);
  else if (!request.network.empty())
    placement = placement_of_network(request, ranks);
  else if (!request.levels.empty())
    placement = placement_of_levels(request.levels, ranks);
  return placement;
}

topo::Placement part_of(const topo::Placement& all, const std::vector<int>& members) {
  topo::Placement part;
  part.start(static_cast<int>(members.size()));
  for (int level = 0; level < all.levels; ++level) {
    if (!part.add_level(all.names[level].text)) stop("no memory");
    for (std::size_t i = 0; i < members.size(); ++i) part.at(level, static_cast<int>(i)) = all.at(level, members[i]);
  }
  return part;
}

select::Machine make_machine(const Request& request, const topo::Placement& placement, topo::Hierarchies& place) {
  select::Machine machine;
  const CostsFile file = read_costs(request.costs);
  machine.costs = file.costs;
  if (!place.build(placement)) stop("no memory");
  assign(file, placement, place.all, machine.costs);
  machine.hierarchies = place.all.levels() > 1 ? &place : nullptr;
  return machine;
}

select::Machine make_machine(const Request& request, int ranks, topo::Hierarchies& place) {
  expect_ranks(ranks);
  return make_machine(request, placement_of(request, ranks), place);
}

select::Candidate candidate_of(const Request& request, const select::Machine& machine, const select::Shape& shape,
                               const std::string& name) {
  select::Candidate candidate;
  if (!select::named_candidate(shape, name.c_str(), &candidate)) stop(unknown(shape, name));
  if (!candidate.algorithm && !machine.hierarchies) stop(name + " needs levels: --levels or --topology");
  if (candidate.algorithm && !shape.commutative && candidate.algorithm->needs & coll::Algorithm::commutative)
    stop(name + " serves operations that commute only");
  candidate.parameters = request.parameters;
  const auto most_segments =
      static_cast<int>(std::min<std::uint64_t>(std::max<std::uint64_t>(shape.bytes, 1), 0x7fffffff));
  candidate.parameters.segments = coll::segment_count(std::min(request.parameters.segments, most_segments));
  if (request.best_k) candidate.parameters.k = select::best_chain_count(machine, shape);
  return candidate;
}

Request parse_job_request(std::vector<std::string> options) {
  options.insert(options.begin(), {"stretto-model", "job"});
  std::vector<char*> line;
  for (std::string& word : options) line.push_back(word.data());
  return parse_request(static_cast<int>(line.size()), line.data());
}

OptionsAndFiles split_at_dashes(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return {{words.begin(), end}, {end == words.end() ? end : end + 1, words.end()}};
}

}  // namespace stretto::modelling
