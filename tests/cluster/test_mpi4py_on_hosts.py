# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own test suite between hosts, under preload.

No test may fail that passes there without Stretto.
"""

from __future__ import annotations

import pytest
from mpi4py_suite import COLLECTIVE, Suite


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("np", "where", "include"),
    [(2, "node", None), (4, "slot", None), (4, "node", COLLECTIVE)],
    ids=["two", "four", "collectives"],
)
def test_suite(mpi, cluster, np, where, include):
    env = {"TMPDIR": str(cluster.shared)}  # files that all ranks open

    def launch(argv, preload, cwd):
        return cluster.run(mpi, argv, np, where, env, preload, timeout=3000, cwd=cwd)

    # Two MPIs hang without Stretto between hosts over TCP. In Open MPI 5.0.11 one rank stays in
    # Win_flush and the others stay in Win_lock. In MPICH 5.0.2 all ranks stay in Dist_graph_create.
    without = ("rma",) if mpi.kind == "openmpi" else ("comm_topo",)
    Suite(mpi, np, include, launch, f"-hosts-{where}", without).no_new_failures()
