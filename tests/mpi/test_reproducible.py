# SPDX-License-Identifier: BSD-3-Clause
"""STRETTO_REPRODUCIBLE: sums in the order of the ranks wherever these are, or with the MPI's own digits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.mpi import Mpi

PLACES = {
    "node": "",
    "2+3": "0,1: node=0\n2-4: node=1\n",
    "dealt": "0,2,4,6: node=0\n1,3,5,7: node=1\n",
    "alone": "all: node:8\n",
}
REDUCTIONS = ("REDUCE", "ALLREDUCE", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "SCAN", "EXSCAN")


@pytest.mark.one_mpi("openmpi")
@pytest.mark.parametrize(("ranks", "places"), [(4, "node"), (5, "2+3"), (3, "dealt"), (2, "alone")])
def test_rank_order_on_any_placement(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path, ranks: int, places: str
) -> None:
    """In memory and by schedules, whatever rules and defaults would choose otherwise."""
    env = {"STRETTO_REPRODUCIBLE": "rank"}
    if places != "node":
        file = tmp_path / "placement"
        file.write_text(PLACES[places])
        env |= {"STRETTO_PLACEMENT": str(file)} | {f"STRETTO_{name}": "schedule" for name in REDUCTIONS}
    job = run_mpi(
        mpi, ranks, [build_cxx("reproducible.cpp"), "rank", "1", "7", "1000", "20000"], env=env, timeout=120
    ).ok()
    assert "all sums as expected" in job.stdout and job.messages() == [], job.describe()


def test_the_digits_of_the_mpi(mpi: Mpi, run_mpi: Callable, build_cxx: Callable) -> None:
    check_digits(mpi, run_mpi, build_cxx, 2, "1", "3", "40", "1000", "9001", "100000")


@pytest.mark.one_mpi("openmpi")
@pytest.mark.parametrize("ranks", [4, pytest.param(8, marks=pytest.mark.long)])
def test_the_digits_of_the_mpi_with_more_ranks(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, ranks: int, long_mode: bool
) -> None:
    """Four waiting ranks of MPICH take ten seconds for long sums, which two ranks compare above."""
    longest = ["100000"] if long_mode or mpi.abi == "openmpi" else []
    check_digits(mpi, run_mpi, build_cxx, ranks, "1", "1000", *longest)


def check_digits(mpi: Mpi, run_mpi: Callable, build_cxx: Callable, ranks: int, *lengths: str) -> None:
    env = {"STRETTO_REPRODUCIBLE": "mpi"}
    job = run_mpi(mpi, ranks, [build_cxx("reproducible.cpp"), "mpi", *lengths], env=env, timeout=120).ok()
    assert "all sums as expected" in job.stdout and job.messages() == [], job.describe()
