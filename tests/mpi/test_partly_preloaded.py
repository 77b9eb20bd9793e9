# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of which some ranks lack the library: the MPI serves them, right and without a hang, and one message says so."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import harness
import pytest
from harness import JobTimeout, has

SEEN = (
    r"off: the library is seen in (\d+) of (\d+) ranks on this node; preload it into all ranks of the job, or into none"
)


def _lacking(tmp_path, ranks, name="lacking.sh", run='exec "$@"'):
    """A wrapper that takes the library from some ranks."""
    script = tmp_path / name
    script.write_text(
        "#!/bin/sh\nrank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}\n"
        f'case " {" ".join(map(str, ranks))} " in *" $rank "*) unset LD_PRELOAD ;; esac\n{run}\n'
    )
    script.chmod(0o755)
    return script


def _expect(job, np, seen=None):
    """Every rank right; served by us, or by the MPI with one message that names how many ranks were seen."""
    results = job.ok().results()
    assert sorted(r["rank"] for r in results) == list(range(np)) and all(r["wrong"] == 0 for r in results), (
        job.describe()
    )
    if seen is None:
        assert {r["path"] for r in results} == {"inline"} and job.messages() == [], job.describe()
    else:
        assert {r["path"] for r in results} <= {"host", "none"}, job.describe()
        (message,) = job.messages()
        assert re.search(SEEN, message).groups() == (str(seen), str(np)), job.describe()


@pytest.mark.parametrize(
    ("np", "lacking"), [(2, [0]), (2, [1]), (5, [0, 4]), (3, []), pytest.param(3, [1], marks=pytest.mark.long)]
)
def test_some_ranks_lack_the_library(mpi, run_mpi, build_program, tmp_path, np, lacking):
    """Five ranks are more than there are processors here."""
    job = run_mpi(mpi, np, [_lacking(tmp_path, lacking), build_program(mpi, "some_ranks.c")], timeout=30)
    _expect(job, np, np - len(lacking) if lacking else None)


@pytest.mark.few
def test_parts_of_a_job(mpi, run_mpi, build_program, tmp_path):
    """Every part gets the library where the launcher has a colon."""
    program = build_program(mpi, "some_ranks.c")
    _expect(run_mpi(mpi, 1, [program, ":", "-n", "2", program], timeout=30), 3)


@pytest.mark.few
@pytest.mark.parametrize("lacking", [[], [1]])
def test_helper_processes(mpi, run_mpi, build_program, tmp_path, lacking):
    job = run_mpi(mpi, 2, [_lacking(tmp_path, lacking), build_program(mpi, "some_ranks.c"), "helpers"], timeout=30)
    _expect(job, 2, 1 if lacking else None)


@pytest.mark.few
def test_two_jobs_at_once(mpi, run_mpi, build_program, tmp_path):
    """One job's marks are none of the other's."""
    program = build_program(mpi, "some_ranks.c")
    jobs = [([0], 1), ([], None), ([1], 1), ([], None)]
    scripts = [_lacking(tmp_path, ranks, f"lacking{i}.sh") for i, (ranks, _) in enumerate(jobs)]
    with ThreadPoolExecutor(len(jobs)) as pool:
        runs = [pool.submit(run_mpi, mpi, 2, [script, program], timeout=60) for script in scripts]
    for run, (_, seen) in zip(runs, jobs):
        _expect(run.result(), 2, seen)


@pytest.mark.only(abi="openmpi")  # of which 5 allows it; MPICH's launcher takes no second program
@pytest.mark.parametrize("lacking", [False, True])
def test_a_rank_that_is_started_twice(mpi, run_mpi, build_program, tmp_path, lacking):
    """One program after the other in the same job: what the first one has left does not count for the second."""
    program = build_program(mpi, "some_ranks.c")
    second = 'case "$rank" in 1) unset LD_PRELOAD ;; esac\n' if lacking else ""
    # Nobody begins the second before all have ended the first: Open MPI takes it for a rank of the
    # first.
    meet = 'touch "$1/$rank"; until [ -e "$1/0" ] && [ -e "$1/1" ]; do sleep 0.05; done'
    script = _lacking(tmp_path, [], run=f'"$2" || exit 1\n{meet}\n{second}exec "$2"')
    ended = [tmp_path / "plain", tmp_path / "preloaded"]
    for each in ended:
        each.mkdir()
    try:
        plain = run_mpi(mpi, 2, [script, ended[0], program], preload=False, timeout=20)
    except JobTimeout:
        pytest.skip("the host itself hangs so")
    if plain.returncode != 0:
        pytest.skip("the host itself does not run so")
    job = run_mpi(mpi, 2, [script, ended[1], program], timeout=30)
    if "Open MPI failed to TCP connect to a peer" in job.stderr:
        pytest.skip("the host itself tries an address of the first program's ranks")
    job.ok()
    paths = [r["path"] for r in job.results()]
    assert len(paths) == 4 and all(r["wrong"] == 0 for r in job.results()), job.describe()
    assert sorted(paths) == (["host", "inline", "inline", "none"] if lacking else ["inline"] * 4), job.describe()


def test_sessions(mpi, run_mpi, build_program, tmp_path):
    if not has(mpi, "MPI_Session_init"):
        pytest.skip("this MPI has no sessions")
    argv = [_lacking(tmp_path, [1]), build_program(mpi, "session_epochs.c"), "single"]
    try:
        plain = run_mpi(mpi, 2, argv, preload=False, timeout=20)
    except JobTimeout:
        pytest.skip("the host itself hangs so")
    if plain.returncode != 0:
        pytest.skip("the host itself does not run so")
    job = run_mpi(mpi, 2, argv, timeout=30).ok()
    (message,) = job.messages()
    assert re.search(SEEN, message).groups() == ("1", "2"), job.describe()


@pytest.mark.only(abi="openmpi")
@pytest.mark.parametrize("lacking", [[], [1]])
def test_an_mpi_that_does_not_meet_in_init(mpi, run_mpi, build_program, tmp_path, lacking):
    env = {"OMPI_MCA_async_mpi_init": "1"}
    job = run_mpi(mpi, 3, [_lacking(tmp_path, lacking), build_program(mpi, "some_ranks.c")], env=env, timeout=30)
    _expect(job, 3, 2 if lacking else None)


@pytest.mark.few
def test_who_cannot_leave_a_mark_keeps_all_away(mpi, run_mpi, build_program, tmp_path):
    """Want of descriptors on one rank: agreed, and not a hang."""
    faulty = harness.per_rank_script(tmp_path, {1: {"STRETTO_FAULT": "name_open:*:EMFILE"}})
    job = run_mpi(mpi, 3, [faulty, build_program(mpi, "some_ranks.c")], preload="faulty", timeout=30).ok()
    assert {r["path"] for r in job.results()} == {"host"} and len(job.messages()) == 1, job.describe()


@pytest.mark.few
def test_jobs_of_one_rank_are_told(mpi, run_mpi, build_program):
    """The launcher of another MPI: each process is a job of its own."""
    program = build_program(mpi, "some_ranks.c")
    said = "3 processes were started together, and each of them is an MPI job of one rank"
    foreign = {
        "SLURM_PROCID": "0",
        "SLURM_STEP_NUM_TASKS": "3",
        "SLURM_JOB_ID": "1",
        "SLURM_STEP_ID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
        "SLURM_STEP_TASKS_PER_NODE": "3",
    }
    env = {**os.environ, **mpi.environment(), **foreign, "LD_PRELOAD": str(harness.library(mpi.abi))}
    done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr.count(said) == 1 and ("--mpi=pmix" if mpi.abi == "openmpi" else "--mpi=pmi2") in done.stderr
    other = subprocess.run(
        [program], env=env | {"SLURM_PROCID": "1"}, capture_output=True, text=True, timeout=30, check=True
    )
    assert said not in other.stderr
    job = run_mpi(mpi, 1, [program], env=foreign)  # one rank by its own launcher, inside such a step
    assert said not in job.ok().stderr
