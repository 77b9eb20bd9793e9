# SPDX-License-Identifier: BSD-3-Clause
"""A cluster on one machine: hosts, switches and links, real to everything that runs on them.

cluster = Cluster.up(Plan("mine", leaves=2, hosts_per_leaf=2, ranks_per_host=2))
job = run(cluster, mpi, ["./app"], where="node")
job.links["leaf0"].up_bytes
cluster.down()
"""

from stretto.cluster.cluster import Cluster
from stretto.cluster.jobs import Job, run
from stretto.cluster.plan import Plan, PlanError
from stretto.cluster.prerequisites import why_not
from stretto.cluster.registry import ClusterError
from stretto.cluster.wiring import Traffic

__all__ = ["Cluster", "ClusterError", "Job", "Plan", "PlanError", "Traffic", "run", "why_not"]
