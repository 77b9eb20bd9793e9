# SPDX-License-Identifier: BSD-3-Clause
"""Requests of the program beside Stretto: how they end, how they fail, and what they outlive."""

from __future__ import annotations

import pytest

KIND = {"STRETTO_KIND": "on"}
NONBLOCKING = {"STRETTO_NONBLOCKING": "on"}


def _rows(job):
    return {case: said for result in job.ok().results() for case, said in result.items()}


def _hidden(mpi, case):
    """MPICH's library of the standard ABI: when the handler has returned, no code tells of the error."""
    return mpi.abi == "standard" and case.startswith("waitall, persistent, truncated") and case.endswith("handler")


@pytest.mark.every
@pytest.mark.parametrize("env", [{}, KIND, NONBLOCKING, KIND | NONBLOCKING], ids=["usual", "kind", "requests", "both"])
def test_all_ways_to_end_requests_say_what_they_say_without(mpi, run_mpi, build_program, env):
    program = build_program(mpi, "wait_errors.c")
    without, found = (_rows(run_mpi(mpi, 2, [program], env=env, preload=p)) for p in (False, True))
    assert len(found) == len(without) == 288
    differ = {c: (without[c], found[c]) for c in without if found[c] != without[c] and not _hidden(mpi, c)}
    assert not differ, differ


@pytest.mark.every
@pytest.mark.parametrize("np", [2, pytest.param(3, marks=pytest.mark.long), pytest.param(5, marks=pytest.mark.long)])
def test_a_send_is_cancelled_after_a_wait_in_a_collective(mpi, run_mpi, build_program, long_mode, np):
    """MPICH 5 crashes in MPI_Cancel if the send's request object is one that nobody has used before."""
    turns = 100 if long_mode else 3
    (result,) = run_mpi(mpi, np, [build_program(mpi, "cancelled_sends.c"), turns]).ok().results()
    assert result["cancelled"] + result["sent"] == 4 * turns


@pytest.mark.few
@pytest.mark.parametrize("how", ["nonblocking", "persistent"])
def test_data_are_unpacked_after_the_communicator_is_freed(mpi, run_mpi, build_program, how):
    program = build_program(mpi, "freed_staged.c")
    job = run_mpi(mpi, 3, [program, how], env=NONBLOCKING, timeout=120).ok()
    assert [result["bad"] for result in job.results()] == [0] * 3, job.describe()


@pytest.mark.every
@pytest.mark.parametrize("form", ["all", "some", "testall", "testsome"])
def test_an_error_in_a_list_goes_to_the_handler_it_goes_to_without(mpi, run_mpi, build_program, form):
    """MPICH 5 takes that of MPI_COMM_WORLD only while nobody has ever set one on MPI_COMM_SELF."""
    program = build_program(mpi, "world_handler.c")
    jobs = [run_mpi(mpi, 2, [program, form], preload=p) for p in (False, True)]
    without, found = ((job.returncode == 0, job.results()) for job in jobs)
    assert found == without, jobs[1].describe()
