# SPDX-License-Identifier: BSD-3-Clause
"""The _c forms of the collectives, on the hosts that have them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import harness
import pytest
from counted import calls_by_schedule, check_counts
from stretto.mpi import Mpi


@pytest.fixture
def program(mpi: Mpi, build_program: Callable) -> Path:
    if not harness.has(mpi, "MPI_Bcast_c"):
        pytest.skip(f"{mpi.title} has no large-count functions")
    return build_program(mpi, "large_count_calls.c")


@pytest.mark.every
@pytest.mark.parametrize("ranks", [2, 3])
def test_calls(mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, tmp_path: Path) -> None:
    report = tmp_path / "stats.json"
    job = run_mpi(mpi, ranks, [program], env={"STRETTO_STATS": f"json:{report}"}).ok()
    check_counts(job, report, ranks)


@pytest.mark.every
@pytest.mark.parametrize("how", ["blocking", "nonblocking", "persistent"])
def test_ranks_may_spell_a_call_differently(
    mpi: Mpi, run_mpi: Callable, build_program: Callable, how: str, tmp_path: Path
) -> None:
    if not harness.has(mpi, "MPI_Bcast_c"):
        pytest.skip(f"{mpi.title} has no large-count functions")
    env = {"STRETTO_NONBLOCKING": "on", "STRETTO_STATS": f"json:{tmp_path / 'stats.json'}"}
    job = run_mpi(mpi, 3, [build_program(mpi, "count_spellings.c"), how], env=env).ok()
    assert job.results() == [{"wrong": 0}] * 3, job.describe()
    served = calls_by_schedule(tmp_path / "stats.json")
    assert (served > 12) == (how != "blocking"), job.describe()  # 12 or fewer are barriers before


@pytest.mark.only(kind="mpich")
def test_ranks_may_spell_a_call_differently_by_default(mpi: Mpi, run_mpi: Callable, build_program: Callable) -> None:
    job = run_mpi(mpi, 5, [build_program(mpi, "count_spellings.c"), "nonblocking"]).ok()
    assert job.results() == [{"wrong": 0}] * 5, job.describe()


@pytest.mark.long
def test_more_than_an_int_counts(mpi: Mpi, run_mpi: Callable, program: Path, tmp_path: Path) -> None:
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 6 << 30:
        pytest.skip("needs 6 GiB of memory")
    report = tmp_path / "stats.json"
    job = run_mpi(mpi, 2, [program, "huge"], env={"STRETTO_STATS": f"json:{report}"}, timeout=300).ok()
    check_counts(job, report, 2)
