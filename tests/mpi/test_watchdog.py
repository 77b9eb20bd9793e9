# SPDX-License-Identifier: BSD-3-Clause
"""Calls that do not end and calls that do not match: said in words a user can act on, within the watchdog's time."""

from __future__ import annotations

import re

import pytest

WATCH = {"STRETTO_WATCHDOG": "1"}


def _run(mpi, run_mpi, build_program, kind, **options):
    return run_mpi(mpi, 3, [build_program(mpi, "wrong_program.c"), kind], timeout=60, **options)


def test_a_late_rank_is_named(mpi, run_mpi, build_program):
    job = _run(mpi, run_mpi, build_program, "late", env=WATCH).ok()
    text = "\n".join(job.messages())
    assert len(job.results()) == 3, job.describe()
    assert len(re.findall("has not ended", text)) == 1, job.describe()
    assert re.search(r"watchdog: MPI_Barrier has not ended for [1-3] s: call 2 on a communicator of 3 ranks; "
                     r"waiting: 0, 1; missing: 2; through: none", text), job.describe()
    assert re.search(r"rank 2 \(process \d+, alive\): its last call here is number 1, MPI_Barrier, ended", text), job.describe()


@pytest.mark.few
def test_silent_when_calls_end(mpi, run_mpi, build_program):
    job = _run(mpi, run_mpi, build_program, "late", env={"STRETTO_WATCHDOG": "60"}).ok()
    assert job.messages() == [], job.describe()


@pytest.mark.few
def test_ranks_that_wait_on_different_communicators(mpi, run_mpi, build_program):
    job = _run(mpi, run_mpi, build_program, "elsewhere", env=WATCH)
    assert job.returncode != 0
    text = "\n".join(job.messages())
    assert re.search(r"waiting: 0, 1; missing: 2; through: none", text), job.describe()
    assert re.search(r"rank 2, latest first: MPI_Barrier 2 on another communicator \(open\); MPI_Barrier 1", text), job.describe()
    assert re.search(r"waiting: 2; missing: 0, 1; through: none", text), job.describe()


def test_another_collective_is_named(mpi, run_mpi, build_program):
    job = _run(mpi, run_mpi, build_program, "collective", env=WATCH)
    assert job.returncode != 0, job.describe()
    text = "\n".join(job.messages())
    assert re.search(r"call 2 there: rank 2 calls MPI_Bcast \(root 0, 8 bytes\), but rank [01] calls MPI_Barrier: all ranks must call the same", text), job.describe()
