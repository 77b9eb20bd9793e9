# SPDX-License-Identifier: BSD-3-Clause
"""The reductions against a serial oracle.

The cases have every predefined operation on every type that MPI allows, and user operations that do
not commute.

STRETTO_TEST_SEED=n tries other cases. `reductions --seed S --first CASE --cases 1` runs a failed
case alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from oracle import RANKS, SMALL_RING, cases_of, seed
from stretto.mpi import Mpi


@pytest.fixture
def program(build_cxx: Callable) -> Path:
    return build_cxx("reductions.cpp")


@pytest.mark.few
@pytest.mark.parametrize("ranks", RANKS)
def test_against_oracle(mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, long_mode: bool) -> None:
    """Runs every pair of operation and type several times. Stretto serves each of them."""
    cases = cases_of(ranks, long_mode)
    line = [program, "--cases", str(cases), "--seed", str(seed() + ranks), "--expect-native", "100", "--every-kind"]
    job = run_mpi(mpi, ranks, line, env=SMALL_RING, timeout=60 + cases * ranks * 0.02).ok()
    assert f"{cases} cases ok, with us" in job.stdout


@pytest.mark.long
@pytest.mark.parametrize("ring", [SMALL_RING, {}], ids=["small", "default"])
def test_sixteen_ranks(mpi: Mpi, run_mpi: Callable, program: Path, ring: dict) -> None:
    line = [program, "--cases", "2000", "--seed", str(seed() + 16), "--expect-native", "100"]
    job = run_mpi(mpi, 16, line, env=ring, timeout=1200).ok()
    assert "2000 cases ok, with us" in job.stdout


@pytest.mark.few
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.long), 3])
def test_against_host(mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, long_mode: bool) -> None:
    cases = 5_000 if long_mode else 300
    line = [program, "--cases", str(cases), "--seed", str(seed() + ranks), "--host"]
    job = run_mpi(mpi, ranks, line, env=SMALL_RING, timeout=60 + cases * ranks * 0.6).ok()
    assert f"{cases} cases ok, with us and the host" in job.stdout


@pytest.mark.few
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.long)])
def test_check_mode_finds_no_difference(
    mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, long_mode: bool
) -> None:
    """Floating-point sums may differ from the MPI's by rounding. All other results are equal."""
    cases = 2_000 if long_mode else 250
    job = run_mpi(
        mpi,
        ranks,
        [program, "--cases", str(cases), "--seed", str(seed()), "--kind-limits"],
        env=SMALL_RING | {"STRETTO_CHECK": "3"},
        timeout=60 + cases * ranks * 0.2,
    ).ok()
    assert f"{cases} cases ok, with us" in job.stdout and job.messages() == [], job.describe()


def test_default_ring(mpi: Mpi, run_mpi: Callable, program: Path, long_mode: bool) -> None:
    line = [program, "--cases", "2000" if long_mode else "100", "--seed", str(seed())]
    run_mpi(mpi, 3, line, timeout=600 if long_mode else 120).ok()
