# SPDX-License-Identifier: BSD-3-Clause
"""The randomised differential test.

In the short run, three ranks of every MPI compare their share of the cases with the oracle, and other
numbers of ranks do so on MPIs in turn. With --long it runs 20,000 cases for each number of ranks and
each MPI.

STRETTO_TEST_SEED=n tries other cases. A failure prints the seed and the case.
`differential --seed S --first CASE --cases 1` runs that case alone. This does not work for cases on
short-lived communicators.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from oracle import RANKS, SMALL_RING, cases_of, seed
from stretto.mpi import Mpi


def host_limits(mpi: Mpi) -> list[str]:
    """Leaves MPI_Gather out on Intel MPI.

    After some sequences of communicators, its own MPI_Gather passes memory of its shared pool to
    free(). AddressSanitizer shows this with 2021.18.1, without Stretto.
    """
    return ["--skip", "gather"] if mpi.kind == "impi" else []


@pytest.fixture
def program(build_cxx: Callable) -> Path:
    return build_cxx("differential.cpp")


@pytest.mark.few
@pytest.mark.parametrize("ranks", RANKS)
def test_against_oracle(mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, long_mode: bool) -> None:
    cases = cases_of(ranks, long_mode)
    line = [program, "--cases", str(cases), "--seed", str(seed() + ranks), "--expect-native", "99"]
    job = run_mpi(mpi, ranks, line, env=SMALL_RING, timeout=60 + cases * ranks * 0.02).ok()
    assert f"{cases} cases ok, with us" in job.stdout


@pytest.mark.few
def test_past_the_caches(mpi: Mpi, run_mpi: Callable, program: Path, long_mode: bool) -> None:
    cases = cases_of(3, long_mode)
    line = [program, "--cases", str(cases), "--seed", str(seed() + 99), "--expect-native", "99"]
    job = run_mpi(mpi, 3, line, env=SMALL_RING | {"STRETTO_STREAMING": "always"}, timeout=60 + cases * 0.06).ok()
    assert f"{cases} cases ok, with us" in job.stdout


@pytest.mark.long
@pytest.mark.parametrize("ring", [SMALL_RING, {}], ids=["small", "default"])
@pytest.mark.parametrize("ranks", [16, 17])  # beyond 16 ranks an Alltoallw keeps its layouts on the heap
def test_many_ranks(mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, ring: dict) -> None:
    line = [program, "--cases", "2000", "--seed", str(seed() + ranks), "--expect-native", "99"]
    job = run_mpi(mpi, ranks, line, env=ring, timeout=1200).ok()
    assert "2000 cases ok, with us" in job.stdout


@pytest.mark.few
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.long), 3])
def test_against_host(mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, long_mode: bool) -> None:
    cases = 5_000 if long_mode else 300
    line = [
        program,
        "--cases",
        str(cases),
        "--seed",
        str(seed() + ranks),
        "--host",
        "--expect-native",
        "99",
        *host_limits(mpi),
    ]
    job = run_mpi(mpi, ranks, line, env=SMALL_RING, timeout=60 + cases * ranks * 0.6).ok()
    assert f"{cases} cases ok, with us and the host" in job.stdout


@pytest.mark.few
def test_default_ring(mpi: Mpi, run_mpi: Callable, program: Path, long_mode: bool) -> None:
    """The shipped default where the L2 has 1 MiB: 32 slots of 32 KiB."""
    line = [program, "--cases", "2000" if long_mode else "60", "--seed", str(seed()), "--ring", str(32 * 32 << 10)]
    run_mpi(mpi, 3, line, timeout=600 if long_mode else 120).ok()


@pytest.mark.few
def test_the_test_itself(mpi: Mpi, run_mpi: Callable, program: Path) -> None:
    """Without the library, the host alone passes the same cases, but for those that hosts get wrong."""
    line = [program, "--cases", "150", "--seed", str(seed()), *host_limits(mpi)]
    job = run_mpi(mpi, 2, line, preload=False, timeout=120).ok()
    assert "the host alone" in job.stdout
