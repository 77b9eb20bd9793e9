# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that end badly take their job with them as they do without us: in time, and with nothing of ours left behind
(run_mpi fails when processes or files outlive the job)."""

from __future__ import annotations

import pytest


def _run(mpi, run_mpi, build_program, how, np=3, victim=1, **options):
    return run_mpi(mpi, np, [build_program(mpi, "crash_end.c"), how, victim], timeout=40, **options)


def _ended_like_the_host(mpi, run_mpi, build_program, how, **options):
    plain = _run(mpi, run_mpi, build_program, how, preload=False, **options)
    ours = _run(mpi, run_mpi, build_program, how, **options)
    assert [r["path"] for r in ours.results()] == ["inline"], ours.describe()
    assert (ours.returncode == 0) == (plain.returncode == 0), f"{plain.describe()}\n{ours.describe()}"
    assert "came back without its root" not in ours.output
    return ours


@pytest.mark.one_mpi
@pytest.mark.parametrize("how", ["kill", "wait"])
@pytest.mark.parametrize("victim", [0, 2])
def test_a_rank_is_killed_in_mid_call(mpi, run_mpi, build_program, how, victim):
    ours = _ended_like_the_host(mpi, run_mpi, build_program, how, victim=victim)
    assert ours.returncode != 0
    assert ours.messages() == [], ours.describe()


def test_abort_while_peers_wait(mpi, run_mpi, build_program):
    assert _ended_like_the_host(mpi, run_mpi, build_program, "abort").returncode != 0


@pytest.mark.few
@pytest.mark.parametrize("how", ["exit", "_exit", "one"])
def test_leaving_without_finalize(mpi, run_mpi, build_program, how):
    """Launchers differ in what they think of it, some from run to run; it must not hang and leave nothing of ours."""
    ours = _run(mpi, run_mpi, build_program, how, np=2)
    assert [r["path"] for r in ours.results()] == ["inline"] and ours.messages() == [], ours.describe()
