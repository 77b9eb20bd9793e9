// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/job_demands.hpp"

#include <algorithm>
#include <initializer_list>

#include "base/demands.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/world.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {
namespace {

void refuse(std::initializer_list<Option> options, const char* why) {
  for (const Option option : options) demand_refused(option, 0, why);
}

bool is_on_one_node() {
  if (job() == nullptr) return !world().several_nodes;
  const auto& nodes = job()->node_of;
  return !job()->has_nodes || std::all_of(nodes.begin(), nodes.end(), [&](int node) { return node == nodes[0]; });
}

}  // namespace

void job_demands() {
  if (world().size == 1) return;  // nothing can be served
  demands_start(options());
  if (vendor::reports_failures())
    refuse({Option::overlap, Option::nonblocking, Option::tiers, Option::tcp},
           "the MPI reports failures of processes (ULFM)");
  if (is_on_one_node()) {
    refuse({Option::overlap, Option::tcp}, "all ranks are on one node");
  } else if (job() == nullptr) {
    refuse({Option::overlap, Option::tcp}, "the job has no schedules");
  } else {
    if (job()->overlap_bytes == 0) refuse({Option::overlap}, "a rank has STRETTO_OVERLAP=off");
    if (job()->tcp == TcpChoice::off) refuse({Option::tcp}, "a rank has STRETTO_TCP=off");
  }
  if (world().nonblocking != NonblockingChoice::on) refuse({Option::nonblocking}, "a rank has another value");
  if (world().check == 3)
    refuse({Option::overlap, Option::nonblocking}, "STRETTO_CHECK=3 compares results when a call returns");
}

}  // namespace stretto::mpi
