// SPDX-License-Identifier: BSD-3-Clause
// What schedules need to know of the whole job. All ranks agree on it at MPI_Init: where every rank
// is, which levels make groups, which collectives go by schedules, what rules say, and the
// transport. A job of one node needs none of it, unless it asks for schedules or has rules for one.
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "base/options.hpp"
#include "select/rules.hpp"
#include "topo/groups.hpp"
#include "topo/hosts.hpp"
#include "topo/levels.hpp"
#include "topo/locality.hpp"
#include "topo/records.hpp"

namespace stretto::mpi {

// What all ranks of a node have in common. Only the lowest of them tells it.
struct NodeRecord {
  std::uint64_t domains[topo::kLocalityLevelCount - topo::kNodeLevel];  // from the node's level up
  std::uint64_t machine;  // where the rank runs (sys::host_id), whatever the placement says
  char host[64];
};

// What a rank tells apart from its node's record. The ranks of a node that are bound to different
// processors differ in it, but those of other nodes are like them.
struct RankRecord {
  std::uint64_t domains[topo::kNodeLevel];
  std::uint64_t overlap_bytes;
  sys::NicPlace nics;
  std::uint32_t scheduled, wanted;
  std::uint32_t tcp, overlap_tries, overlap_measures;
};

// All that a process keeps for each rank of the job are four numbers.
struct Job {
  topo::Records<NodeRecord> nodes;
  topo::Records<RankRecord> ranks;
  topo::Known known;
  topo::Hosts hosts;
  Array<std::int32_t> node_of;      // as the placement says; -1: nowhere
  bool has_nodes = false;           // the placement has several
  topo::LevelChoice levels;         // STRETTO_HIERARCHY of rank 0
  std::uint32_t scheduled = 0;      // collectives that every rank wants by schedule, wherever its peers are
  std::uint32_t wanted = 0;         // those that no rank leaves to the MPI
  TcpChoice tcp = TcpChoice::off;   // off if one rank says off; always if all ranks say always
  std::uint64_t overlap_bytes = 0;  // STRETTO_OVERLAP: 0 if one rank says off, else the largest
  bool overlap_tries = false;       // STRETTO_OVERLAP=auto on some rank
  bool overlap_measures = false;    // some rank wants to know whether connections are slower than the MPI
  select::Rules rules;              // of rank 0's file

  // The placement of some of its ranks. False: no memory.
  bool place(topo::Placement* placement, const int* ranks, int count) const;
};

// Reads what the options of this rank name: level string, placement and topology file. It adds
// mistakes to the report.
void job_read(const Options& options, OptionsReport& report);

// Where the file of STRETTO_PLACEMENT binds this rank. Null: there is no such file.
const topo::Binding* job_binding(int rank);

// Called on rank 0, which alone reads the rules. If they have a mistake, it adds a warning and the
// job has no rules: their absence costs speed alone.
void job_read_rules(const Options& options, OptionsReport& report);
bool job_rules_speak_of_one_node();
// Whether this rank has rules, or has read levels.
bool job_has_to_tell();

// Collective over MPI_COMM_WORLD. There is no job if memory or the host fails on any rank.
// `first_tells`: rank 0 has something to tell (job_has_to_tell), as all ranks know.
void job_begin(int rank, int size, bool first_tells);
void job_end();
const Job* job();  // null if there is none, or before job_begin

}  // namespace stretto::mpi
