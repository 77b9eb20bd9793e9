# SPDX-License-Identifier: BSD-3-Clause
"""MPI's progress rule inside Stretto's collectives: a rank that waits still drives its messages.

Single-copy transfers are off in the host. With them the peer would fetch the bytes itself, and the
tests would pass without progress.

The measure is the host's own collective in the same program. Its wait spins through its progress
engine. Stretto may take five times as long, plus the cost of a nap and of a busy machine.
"""

from __future__ import annotations

import pytest
from harness import without_cma

pytestmark = pytest.mark.alone
FACTOR = 5
SLACK_S = 0.030  # a few time slices: with more ranks than processors both sides wait to be scheduled


def _surroundings(mpi):
    env, extra = without_cma(mpi)
    if mpi.kind == "mpich":
        # When UCX has opened TCP connections, MPI_Finalize of 4.0.2 sometimes hangs, also without
        # Stretto.
        env["UCX_TLS"] = "posix,sysv,self"
    return env, extra


def _owed(mpi, run_mpi, build_program, np, kind, size, repetitions=5, **options):
    env, extra = _surroundings(mpi)
    env |= options.pop("env", {})
    program = build_program(mpi, "progress_owed.c")
    job = run_mpi(mpi, np, [program, kind, size, repetitions], env=env, extra=extra, **options).ok()
    (result,) = job.results()
    print(f"{mpi.title}, {np} ranks, {kind}: {result}")
    assert result["idle_s"] > 0.1, f"the host needs no progress from the debtor, so nothing was tested: {result}"
    assert result["path"] not in ("host", "none"), f"the collective was not ours: {result}\n{job.stderr}"
    assert result["ours_s"] <= FACTOR * result["host_s"] + SLACK_S, result
    return result


@pytest.mark.every
def test_a_send_completes_while_its_sender_waits_in_our_barrier(mpi, run_mpi, build_program):
    _owed(mpi, run_mpi, build_program, 2, "send", 16 << 20)


@pytest.mark.few
@pytest.mark.parametrize("kind", ["bsend", "ssend"])
def test_other_sends_complete_as_well(mpi, run_mpi, build_program, kind):
    _owed(mpi, run_mpi, build_program, 2, kind, 16 << 20)


@pytest.mark.every
def test_a_put_completes_while_its_target_waits_in_our_bcast(mpi, run_mpi, build_program):
    _owed(mpi, run_mpi, build_program, 2, "put", 1 << 20)


@pytest.mark.few
@pytest.mark.parametrize("kind", ["get", "accumulate"])
def test_other_one_sided_calls_complete_as_well(mpi, run_mpi, build_program, kind):
    _owed(mpi, run_mpi, build_program, 2, kind, 1 << 20)


@pytest.mark.few
@pytest.mark.parametrize("kind", ["send", "put"])
def test_progress_with_twice_as_many_ranks_as_processors(mpi, run_mpi, build_program, kind):
    _owed(mpi, run_mpi, build_program, 4, kind, (16 << 20) if kind == "send" else (1 << 20), 3, timeout=120)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["send", "bsend", "put", "get", "accumulate"])
def test_progress_with_eight_ranks(mpi, run_mpi, build_program, kind):
    _owed(mpi, run_mpi, build_program, 8, kind, 4 << 20, 3, timeout=600)


@pytest.mark.one_mpi
@pytest.mark.parametrize("wait", ["spin", "yield", "nap"])
def test_progress_in_every_way_of_waiting(mpi, run_mpi, build_program, wait):
    _owed(mpi, run_mpi, build_program, 2, "send", 16 << 20, 3, env={"STRETTO_WAIT": wait})


@pytest.mark.alone
def test_one_sided_calls_are_served_as_fast_as_by_the_hosts_own_barrier(mpi, run_mpi, build_program):
    program = build_program(mpi, "windows_served.c")
    env, extra = _surroundings(mpi)
    (result,) = run_mpi(mpi, 2, [program, "accumulate", 300, 3], env=env, extra=extra).ok().results()
    print(f"{mpi.title}: {result}")
    assert result["path"] not in ("host", "none"), result
    assert result["ours_s"] <= 2 * result["host_s"] + SLACK_S, result


@pytest.mark.few
def test_waits_of_many_ranks_with_a_host_that_yields(mpi, run_mpi, build_program):
    program = build_program(mpi, "many_waiters.c")
    results = run_mpi(mpi, 32, [program, 20], env=mpi.yielding, timeout=120).ok().results()
    print(f"{mpi.title}: {results}")
    assert results[0]["path"] not in ("host", "none"), results
    assert results[0]["ours_s"] <= 3 * results[0]["host_s"] + 0.005, results
