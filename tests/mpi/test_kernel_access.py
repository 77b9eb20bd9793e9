# SPDX-License-Identifier: BSD-3-Clause
"""Data under way that another thread, a child, a signal or the kernel itself uses: nothing is lost."""

from __future__ import annotations

import pytest

# Where the kernel does not wait, these calls wait for all their data.
REFUSED = {"pool", "background files", "child reads", "stack of a function", "alternate stack", "fibre"}
EARLY = {"nobody else", "windows"}


@pytest.mark.parametrize("guard", ["auto", pytest.param("user", marks=pytest.mark.every), "segv"])
def test_nothing_is_lost(mpi, run_mpi, build_program, on_nodes, guard):
    if mpi.kind == "mpich" and mpi.major < 5:
        pytest.skip("Debian's MPICH hangs in its own MPI_Finalize between pretended nodes")
    environment = {"STRETTO_OVERLAP": "65536", "STRETTO_OVERLAP_GUARD": guard}
    program = build_program(mpi, "kernel_access.c")
    job = run_mpi(mpi, 2, [on_nodes(1), program, 1 << 20], env=environment, timeout=120).ok()
    early = {r["case"]: r["early"] for r in job.results()}
    assert len(early) == 11, job.describe()
    assert [r["case"] for r in job.results() if r["wrong"] != 0] == [], job.describe()
    # In the other modes an MPI's threads must not run the program's handlers.
    returns = EARLY | {"handlers in gaps"} if guard == "auto" else EARLY
    assert all(early[case] for case in returns), job.describe()
    assert guard == "auto" or not any(early[case] for case in REFUSED), job.describe()
