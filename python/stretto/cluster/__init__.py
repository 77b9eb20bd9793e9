# SPDX-License-Identifier: BSD-3-Clause
"""A cluster on one machine: hosts, switches and links, real to everything that runs on them."""
from stretto.cluster.cluster import Cluster, ClusterError
from stretto.cluster.plan import Plan, PlanError

__all__ = ["Cluster", "ClusterError", "Plan", "PlanError"]
