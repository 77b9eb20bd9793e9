# SPDX-License-Identifier: BSD-3-Clause
"""One rank makes a call that MPI refuses at once. The others see no call, and all stay in step."""

from __future__ import annotations

import re

import pytest

SCHEDULES = {
    f"STRETTO_{name.upper()}": "schedule"
    for name in (
        "bcast",
        "gather",
        "scatter",
        "allgather",
        "alltoallv",
        "reduce",
        "allreduce",
        "reduce_scatter",
        "scan",
    )
}


def _right(job, ranks, path):
    results = job.results()
    assert len(results) == ranks, job.describe()
    for r in results:
        assert (r["not_refused"], r["errors"], r["wrong_values"]) == (0, 0, 0), job.describe()
        assert path is None or r["path"] == path, job.describe()


def test_all_go_on_in_step(mpi, run_mpi, build_program):
    job = run_mpi(mpi, 3, [build_program(mpi, "refused.c")], timeout=60).ok()
    _right(job, 3, None)
    assert job.messages() == [], job.describe()


@pytest.mark.few
@pytest.mark.parametrize("check", [0, 1, 2, 3])
def test_whatever_is_compared(mpi, run_mpi, build_program, check):
    _right(
        run_mpi(mpi, 2, [build_program(mpi, "refused.c")], env={"STRETTO_CHECK": str(check)}, timeout=60).ok(), 2, None
    )


@pytest.mark.one_mpi("openmpi")
@pytest.mark.parametrize(("ranks", "check"), [(2, 1), (3, 0), (3, 3)])
def test_by_schedule(mpi, run_mpi, build_program, ranks, check):
    job = run_mpi(
        mpi, ranks, [build_program(mpi, "refused.c")], env=SCHEDULES | {"STRETTO_CHECK": str(check)}, timeout=60
    ).ok()
    _right(job, ranks, "schedule" if check < 3 else None)


@pytest.mark.few
def test_who_waits_is_told(mpi, run_mpi, build_program):
    job = run_mpi(mpi, 3, [build_program(mpi, "refused.c"), "late"], env={"STRETTO_WATCHDOG": "1"}, timeout=60).ok()
    _right(job, 3, None)
    text = "\n".join(job.messages())
    waits = (
        r"rank [02] waits in call \d+ there, MPI_\w+: "
        r"rank 1's last call there, MPI_Bcast, was refused there: invalid root"
    )
    assert 1 <= len(re.findall(waits, text)) <= 2, job.describe()  # one of the ranks that wait in a call says so
    assert re.search(r"watchdog: rank 1: its call after that, MPI_Bcast, was refused there: invalid root", text), (
        job.describe()
    )


@pytest.mark.every
@pytest.mark.parametrize(("np", "check"), [(2, 1), (3, 2)])
def test_aliased_buffers_are_refused_where_the_mpi_refuses_them(mpi, run_mpi, build_program, np, check):
    """A refused call has begun on no rank, so later calls are right."""
    program = build_program(mpi, "aliased.c")
    ours = run_mpi(mpi, np, [program], env={"STRETTO_CHECK": str(check)})
    plain = run_mpi(mpi, np, [program], preload=False).ok()
    assert sorted(map(str, ours.ok().results())) == sorted(map(str, plain.results())), ours.describe()
