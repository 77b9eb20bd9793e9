# SPDX-License-Identifier: BSD-3-Clause
"""Uncommon lives of communicators and processes: sessions, spawn, attributes, forks, MPI-IO."""

from __future__ import annotations

import pytest
from harness import JobTimeout, has

OURS = {"inline", "cico"}


def _skip_unless_host_runs(mpi, run_mpi, np, argv, **options):
    try:
        plain = run_mpi(mpi, np, argv, preload=False, timeout=20, **options)
    except JobTimeout:
        pytest.skip("the host itself hangs")
    if plain.returncode != 0:
        pytest.skip(f"the host itself fails: exit code {plain.returncode}")


def _life(mpi, run_mpi, build_program, case, np=2, **options):
    job = run_mpi(mpi, np, [build_program(mpi, "session_life.c"), case], timeout=90, **options).ok()
    (result,) = job.results()
    return result["path"]


@pytest.mark.few
@pytest.mark.parametrize(
    "case", ["attributes", "in_finalize", "free_early", "far_ahead", "forks", "files", "one_sided", "mixed_nonblocking"]
)
def test_lives_of_two(mpi, run_mpi, build_program, case):
    assert _life(mpi, run_mpi, build_program, case) in OURS


@pytest.mark.few
@pytest.mark.parametrize("case", ["undefined", "intercommunicator", "quiet_rank"])
def test_lives_of_three(mpi, run_mpi, build_program, case):
    assert _life(mpi, run_mpi, build_program, case, np=3) in OURS


@pytest.mark.only(abi="openmpi")
@pytest.mark.parametrize("case", ["free_early", "far_ahead"])
def test_more_ranks_than_processors(mpi, run_mpi, build_program, case):
    assert _life(mpi, run_mpi, build_program, case, np=5) in OURS


@pytest.mark.parametrize("how", ["single", "alone", "pair", "world"])
def test_sessions(mpi, run_mpi, build_program, how):
    if not has(mpi, "MPI_Session_init"):
        pytest.skip("this MPI has no sessions")
    argv = [build_program(mpi, "session_epochs.c"), how]
    _skip_unless_host_runs(mpi, run_mpi, 2, argv)
    job = run_mpi(mpi, 2, argv)
    if "UCX  ERROR failed to unpack address, invalid bandwidth" in job.output:
        pytest.skip("the host's UCX has measured no bandwidth on a busy machine")
    (result,) = job.ok().results()
    assert result["path"] in OURS and result["second"] in OURS, job.describe()


@pytest.mark.few
@pytest.mark.parametrize("env", [{}, {"STRETTO": "off"}], ids=["on", "off"])
@pytest.mark.parametrize(("np", "epochs"), [(1, 80), (2, 55)])
def test_many_epochs_of_sessions(mpi, run_mpi, build_program, np, epochs, env):
    """MPICH has room for some 250 first uses of a kind of objects. Each epoch takes three or four without Stretto.

    On a busy machine MPICH's ranks sometimes fail to find each other in a later epoch, also without Stretto.
    """
    if not has(mpi, "MPI_Session_init"):
        pytest.skip("this MPI has no sessions")
    argv = [build_program(mpi, "session_cycles.c"), epochs]
    _skip_unless_host_runs(mpi, run_mpi, np, argv)
    job = run_mpi(mpi, np, argv, env=env)
    assert "overflow in finalize stack" not in job.output, job.describe()
    if np > 1 and job.returncode != 0:
        pytest.skip("the host's ranks do not find each other")
    assert [result["wrong"] for result in job.ok().results()] == [0] * np, job.describe()


@pytest.mark.parametrize(("how", "np"), [("ends", 1), ("beside", 2)])
def test_sessions_in_threads(mpi, run_mpi, build_program, how, np):
    """Threads use the communicators of sessions.

    The last communicator of a session ends while another session begins. Or a session runs beside
    a single-threaded MPI_Init.
    """
    if not has(mpi, "MPI_Session_init"):
        pytest.skip("this MPI has no sessions")
    argv = [build_program(mpi, "session_threads.c"), how, 200]
    _skip_unless_host_runs(mpi, run_mpi, np, argv)
    job = run_mpi(mpi, np, argv).ok()
    assert [r["wrong"] for r in job.results()] == [0] * np, job.describe()


def test_spawn_and_merge(mpi, run_mpi, build_program):
    argv = [build_program(mpi, "spawn_merge.c")]
    extra: list[str] = []
    if mpi.kind == "openmpi":
        extra = ["--map-by", ":OVERSUBSCRIBE"] if mpi.major >= 5 else ["--oversubscribe"]
    env = {"I_MPI_SPAWN": "on"} if mpi.kind == "impi" else {}
    _skip_unless_host_runs(mpi, run_mpi, 1, argv, extra=extra, env=env)
    job = run_mpi(mpi, 1, argv, extra=extra, env=env).ok()
    assert [r["size"] for r in job.results()] == [3, 3], job.describe()
    # The launcher decides whether the children are preloaded. All ranks must take the same path.
    assert len({r["path"] in OURS for r in job.results()}) == 1, job.describe()
