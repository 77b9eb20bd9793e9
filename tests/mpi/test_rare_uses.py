# SPDX-License-Identifier: BSD-3-Clause
"""Rare uses that MPI or the system allows.

Programs call collectives in attribute callbacks, free communicators in error handlers, or close
descriptors that Stretto has opened.
"""

from __future__ import annotations

import pytest

THREADS = 1000


def _run(mpi, run_mpi, build_program, np, *arguments, **options):
    job = run_mpi(mpi, np, [build_program(mpi, "rare_uses.c"), *arguments], timeout=120, **options).ok()
    if job.output.startswith("SKIP"):
        pytest.skip(job.output)
    assert len(job.results()) == np, job.describe()
    return job


def _served(job):
    assert {r["path"] for r in job.results()}.isdisjoint({"host", "none"}), job.describe()


@pytest.mark.parametrize("np", [2, 3])
def test_callbacks_that_call_collectives_on_what_is_being_freed(mpi, run_mpi, build_program, np):
    _served(_run(mpi, run_mpi, build_program, np, "callback", 300 if np == 2 else 60))


def test_a_handler_that_frees_its_communicator(mpi, run_mpi, build_program):
    _served(_run(mpi, run_mpi, build_program, 2, "handler"))


@pytest.mark.parametrize("use", ["invalid", "refused"])
def test_what_the_mpi_refuses(mpi, run_mpi, build_program, use):
    _served(_run(mpi, run_mpi, build_program, 2, use))


@pytest.mark.few
def test_descriptors_taken_by_the_program(mpi, run_mpi, build_program):
    """The program closes Stretto's descriptors and opens files with their numbers.

    Peers map no such file for the segment. Stretto neither closes nor fills it.
    """
    _run(mpi, run_mpi, build_program, 3, "files")


@pytest.mark.few
def test_no_room_for_peers_costs_no_time(mpi, run_mpi, build_program):
    assert max(r["seconds"] for r in _run(mpi, run_mpi, build_program, 3, "limit").results()) < 4


@pytest.mark.few
def test_locked_memory_is_what_is_used(mpi, run_mpi, build_program):
    """A segment has 256 MiB of addresses, but only the used part takes memory."""
    job = _run(mpi, run_mpi, build_program, 2, "locked")
    assert max(r["grown"] for r in job.results()) < 32 << 10, job.describe()
    _served(job)


@pytest.mark.few
def test_types_of_many_levels(mpi, run_mpi, build_program):
    _run(mpi, run_mpi, build_program, 2, "deep", 20_000)


@pytest.mark.few
def test_types_of_many_blocks_that_are_one_or_none(mpi, run_mpi, build_program):
    assert max(r["seconds"] for r in _run(mpi, run_mpi, build_program, 2, "vast").results()) < 1


@pytest.mark.parametrize(("use", "check"), [("bad_w", "1"), ("bad_w", "3"), ("in_place", "3"), ("zeros", "3")])
def test_checks_of_what_few_calls_do(mpi, run_mpi, build_program, use, check):
    """STRETTO_CHECK=3 compares right results also in these rare calls.

    It keeps what the buffers held before Stretto's turn. It reports no difference in results that
    the standard leaves to the MPI.
    """
    _served(_run(mpi, run_mpi, build_program, 2, use, env={"STRETTO_CHECK": check}))


@pytest.mark.few
def test_threads_leave_nothing(mpi, run_mpi, build_program):
    job = _run(mpi, run_mpi, build_program, 2, "threads", THREADS, env={"MALLOC_ARENA_MAX": "1"})
    assert max(r["grown"] for r in job.results()) < 64 * THREADS, job.describe()
    _served(job)


@pytest.mark.only(kind=("openmpi",), abi="openmpi")
def test_stands_aside_where_the_mpi_reports_failures(mpi, run_mpi, build_program):
    """Under `mpirun --with-ft ulfm`, collectives must return when a communicator is revoked.

    Only the MPI's own collectives do so.
    """
    if not mpi.version.startswith("5"):
        pytest.skip("from Open MPI 5 on")
    job = _run(mpi, run_mpi, build_program, 2, "invalid", extra=["--with-ft", "ulfm"])
    assert {r["path"] for r in job.results()} == {"host"}, job.describe()
