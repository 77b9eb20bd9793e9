// SPDX-License-Identifier: BSD-3-Clause
// What schedules need of the job as a whole, agreed at MPI_Init: where every rank is, which levels make groups, which
// collectives go by schedules, what rules say, and the transport. A job of one node that asks for no schedules and has
// no rules for one node has none of it.
#pragma once
#include <cstdint>

#include "base/array.hpp"
#include "base/options.hpp"
#include "select/rules.hpp"
#include "topo/hosts.hpp"
#include "topo/levels.hpp"
#include "topo/placement.hpp"

namespace stretto::mpi {

struct Job {
  topo::Placement placement;                   // of COMM_WORLD
  topo::Hosts hosts;                           // likewise
  stretto::Array<std::uint64_t> machines;      // where each rank of it runs (sys::host_id), whatever the placement says
  topo::LevelChoice levels;                    // STRETTO_HIERARCHY of rank 0
  std::uint32_t scheduled = 0;                 // collectives that every rank wants by schedule, wherever its peers are
  std::uint32_t wanted = 0;                    // those that no rank leaves to the MPI
  SocketsChoice sockets = SocketsChoice::off;  // off on one rank is off on all; always is what all ranks ask for
  select::Rules rules;                         // of rank 0's file
};

// Reads what the options of this rank name: level string, placement and topology file. Mistakes go to the report.
void job_read(const Options& options, OptionsReport& report);

// On rank 0, which alone reads the rules: a mistake in them is a warning, and there are none, since all they can cost
// is speed.
void job_read_rules(const Options& options, OptionsReport& report);
bool job_rules_speak_of_one_node();

// Collective over COMM_WORLD. Without it, or if memory or the host fail on any rank, there is no job.
void job_begin(int rank, int size);
void job_end();
const Job* job();  // null: there is none

}  // namespace stretto::mpi
