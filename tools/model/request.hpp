// SPDX-License-Identifier: BSD-3-Clause
// What a user of stretto-model asks for. Errors end the program with status 2 and a line on stderr.
//
//   --op NAME  --algorithm NAME    the second may be repeated; compositions: "hierarchy",
//       "hierarchy:nodes", "hierarchy:stripes", "hierarchy:rails", "hierarchy:reduce_bcast", ...
//   --ranks N,N,..  --bytes N,N,..  --root N  --ordered  --k N|best  --segments N  --window N
//   --levels NAME:N,NAME:N,..      domains from the lowest up, in blocks: each has N of the domains
//                                  below it, the lowest has N ranks
//   --network FILE  --per-node N   switches of a file (topo/network.hpp), N ranks on each node
//   --places FILE                  where every rank is (topo/placement_file.hpp)
//   --rules FILE  --nodes N        rules (select/rules.hpp), and on how many nodes the ranks are
//   --costs FILE                   lines; # begins a comment:
//       path NAME FROM_BYTES L o_s o_r g G O_s O_r h H   one line for each piece;
//                                                        NAME: a level or "top"
//       reduce FROM_BYTES FIXED PER_BYTE                 likewise copy
//       port NAME GAP BYTE_GAP BURST                     that the ranks of a domain of this level
//                                                        share; one line for each level
//       processors NAME COUNT TURN
//       gap any|direction
//       ports turn|fair                                  what a rank's port does with messages that
//                                                        come together
//
// A level without a path has that of the level below it. The lowest level has the first path of the
// file, the top the last.
#pragma once
#include <string>
#include <vector>

#include "select/candidates.hpp"
#include "select/rules.hpp"

namespace stretto::modelling {

struct Request {
  select::Shape shape;  // of the first ranks and bytes
  std::vector<std::string> algorithms;
  std::vector<int> ranks{16};
  std::vector<std::uint64_t> bytes{8};
  coll::Parameters parameters;
  bool best_k = false;
  bool per_rank = false;
  bool posted = false;
  std::string levels, network, places, costs, rules;
  int per_node = 1;
  int nodes = 1;
};

[[noreturn]] void stop(const std::string& why);
Request parse_request(int argc, char** argv);
// The options of `job`, without the command itself.
Request parse_job_request(std::vector<std::string> options);
// The words before "--", and those behind it.
struct OptionsAndFiles {
  std::vector<std::string> options, files;
};
OptionsAndFiles split_at_dashes(const std::vector<std::string>& words);
select::Rules read_rules(const Request& request);

// Ends the program where so many ranks do not fit into memory.
void expect_ranks(int ranks);
// Where so many ranks are, by --places, --network or --levels. Without any of them there are no
// levels.
topo::Placement placement_of(const Request& request, int ranks);
// Some of these ranks, which are numbered in this order.
topo::Placement part_of(const topo::Placement& all, const std::vector<int>& members);
// The machine for so many ranks, or for ranks at these places. The hierarchy is built in `place`.
select::Machine make_machine(const Request& request, int ranks, topo::Hierarchies& place);
select::Machine make_machine(const Request& request, const topo::Placement& placement, topo::Hierarchies& place);
select::Candidate candidate_of(const Request& request, const select::Machine& machine, const select::Shape& shape,
                               const std::string& name);

}  // namespace stretto::modelling
