# SPDX-License-Identifier: BSD-3-Clause
"""MPI_THREAD_MULTIPLE: threads of one rank in collectives of different communicators at the same time."""

from __future__ import annotations

import json

import pytest

OURS = {"inline", "cico"}


def _result(mpi, run_mpi, np, argv, **options):
    job = run_mpi(mpi, np, argv, **options).ok()
    if "SKIP" in job.stdout:
        pytest.skip(job.stdout.strip())
    (result,) = job.results()
    assert result["path"] in OURS, job.describe()


@pytest.mark.few
def test_two_threads_broadcast_while_the_peer_takes_them_in_the_other_order(mpi, run_mpi, build_program):
    _result(mpi, run_mpi, 2, [build_program(mpi, "thread_order.c")])


@pytest.mark.one_mpi("openmpi")
@pytest.mark.parametrize("slots", ["1", "2", "3"])
def test_the_same_with_few_slots(mpi, run_mpi, build_program, slots):
    env = {"STRETTO_SLOTS": slots, "STRETTO_SLOT_BYTES": "4096"}
    _result(mpi, run_mpi, 2, [build_program(mpi, "thread_order.c")], env=env)


def test_many_threads_with_communicators_of_their_own(mpi, run_mpi, build_program):
    _result(mpi, run_mpi, 2, [build_program(mpi, "thread_many.c"), 4, 100], timeout=120)


@pytest.mark.one_mpi("mpich")
def test_more_threads_than_long_lanes_have_slots(mpi, run_mpi, build_program, tmp_path):
    report = tmp_path / "stats.json"
    env = {"STRETTO_STATS": f"json:{report}"}
    _result(mpi, run_mpi, 2, [build_program(mpi, "thread_many.c"), 28, 12], env=env, timeout=120)
    assert all(rank["calls_without_slots"] == 0 for rank in json.loads(report.read_text())["per_rank"])


@pytest.mark.only(abi="openmpi")
def test_many_threads_of_three_ranks(mpi, run_mpi, build_program):
    _result(mpi, run_mpi, 3, [build_program(mpi, "thread_many.c"), 6, 60], timeout=120)


@pytest.mark.long
def test_many_threads_for_long(mpi, run_mpi, build_program):
    _result(mpi, run_mpi, 2, [build_program(mpi, "thread_many.c"), 16, 3000], timeout=1200)
