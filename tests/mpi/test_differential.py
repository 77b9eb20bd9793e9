# SPDX-License-Identifier: BSD-3-Clause
"""The randomised differential test: 20,000 cases over all MPIs found, 20,000 for each with --long.

STRETTO_TEST_SEED=n tries other cases; a failure prints the seed and the case, and
`differential --seed S --first CASE --cases 1` runs it alone if it is not on a passing communicator.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.mpi import Mpi, find_all

CASES = 20_000
SHARE = {2: 0.4, 3: 0.3, 5: 0.2, 8: 0.1}  # more ranks than processors take their time
SMALL_RING = {"STRETTO_SLOTS": "2", "STRETTO_SLOT_BYTES": "4K"}


def host_limits(mpi: Mpi) -> list[str]:
    """Intel MPI's own MPI_Gather passes memory of its shared pool to free() after some sequences of communicators
    (seen with 2021.18.1 by AddressSanitizer, without us)."""
    return ["--skip", "gather"] if mpi.kind == "impi" else []


def seed() -> int:
    return int(os.environ.get("STRETTO_TEST_SEED", "20240"))


@pytest.fixture
def program(mpi: Mpi, build_program: Callable) -> Path:
    if mpi.mpicxx is None:
        pytest.skip(f"{mpi.title} has no C++ compiler wrapper")
    flags = ["-std=gnu++20", "-DOMPI_SKIP_MPICXX=1", "-DMPICH_SKIP_MPICXX=1", "-ldl"]
    return build_program(mpi, "differential.cpp", flags=flags, language="c++")


def cases_of(ranks: int, long_mode: bool) -> int:
    if long_mode:
        return CASES
    mpis = sum(1 for m in find_all() if m.mpicxx is not None)
    return round(CASES * SHARE[ranks] / max(mpis, 1))


@pytest.mark.parametrize("ranks", SHARE)
def test_against_oracle(mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, long_mode: bool) -> None:
    cases = cases_of(ranks, long_mode)
    line = [program, "--cases", str(cases), "--seed", str(seed() + ranks), "--expect-native", "99"]
    job = run_mpi(mpi, ranks, line, env=SMALL_RING, timeout=60 + cases * ranks * 0.02).ok()
    assert f"{cases} cases ok, with us" in job.stdout


@pytest.mark.parametrize("ranks", [2, 3])
def test_against_host(mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, long_mode: bool) -> None:
    cases = 5_000 if long_mode else 300
    line = [program, "--cases", str(cases), "--seed", str(seed() + ranks), "--host", "--expect-native", "99",
            *host_limits(mpi)]
    job = run_mpi(mpi, ranks, line, env=SMALL_RING, timeout=60 + cases * ranks * 0.6).ok()
    assert f"{cases} cases ok, with us and the host" in job.stdout


def test_default_ring(mpi: Mpi, run_mpi: Callable, program: Path, long_mode: bool) -> None:
    """The sizes of the shipped defaults: 8 slots of 32 KiB."""
    line = [program, "--cases", "2000" if long_mode else "60", "--seed", str(seed()), "--ring", str(8 * 32 << 10)]
    run_mpi(mpi, 3, line, timeout=600 if long_mode else 120).ok()


def test_the_test_itself(mpi: Mpi, run_mpi: Callable, program: Path) -> None:
    """Without the library the same cases pass on the host alone, within what hosts can do."""
    line = [program, "--cases", "150", "--seed", str(seed()), *host_limits(mpi)]
    job = run_mpi(mpi, 2, line, preload=False, timeout=120).ok()
    assert "the host alone" in job.stdout
