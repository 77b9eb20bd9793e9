# SPDX-License-Identifier: BSD-3-Clause
"""Tiers (docs/tiers.md) in jobs of few ranks, and on placements that the machine does not have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from oracle import SMALL_RING, seed
from stretto.mpi import Mpi

PLACES = {
    "caches": "0-1: l3=0 socket=0\n2-3: l3=1 socket=0\n4-7: l3=2 socket=1\n",
    "dealt": "0,3,6: l3=0 socket=0\n1,4,7: l3=1 socket=0\n2,5: l3=2 socket=1\n",
    "nowhere": "",
}
BY_TIERS = ("barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "scan", "exscan", "gather")
RULES = "".join(f"{name}: shm:tiers\n" for name in BY_TIERS) + "allgather: shm:rails\nalltoall: shm:rails\n"


@pytest.fixture
def tiers(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    def env(places: str) -> dict[str, str]:
        file = tmp_path / "placement"
        file.write_text(PLACES[places])
        return {"STRETTO_TIERS": "3"} | ({"STRETTO_PLACEMENT": str(file)} if PLACES[places] else {})

    return env


@pytest.mark.few
@pytest.mark.parametrize(("ranks", "places"), [(5, "caches"), (8, "dealt"), (3, "nowhere")])
@pytest.mark.parametrize("source", ["differential.cpp", "reductions.cpp"])
@pytest.mark.parametrize("rules", ["", RULES], ids=["builtin", "all"])
def test_against_oracle(
    mpi: Mpi,
    run_mpi: Callable,
    build_cxx: Callable,
    tiers: Callable,
    tmp_path: Path,
    source: str,
    ranks: int,
    places: str,
    rules: str,
) -> None:
    env = tiers(places) | SMALL_RING
    if rules:
        (tmp_path / "rules").write_text(rules)
        env["STRETTO_RULES"] = str(tmp_path / "rules")
    line = [build_cxx(source), "--cases", "150", "--seed", str(seed() + ranks), "--expect-native", "50"]
    if source == "reductions.cpp":
        line += ["--any-order"]
    job = run_mpi(mpi, ranks, line, env=env, timeout=120).ok()
    assert "150 cases ok, with us" in job.stdout, job.describe()


def test_explain_names_them(mpi: Mpi, run_mpi: Callable, build_program: Callable, tiers: Callable) -> None:
    env = tiers("caches") | {"STRETTO_EXPLAIN": "1"}
    job = run_mpi(mpi, 5, [build_program(mpi, "options_check.c"), 2, 100_000], env=env).ok()
    said = " of 5 ranks, over shared memory: allreduce by flat, from 129 bytes on by rails"
    assert said in job.stderr, job.describe()


@pytest.mark.one_mpi
def test_no_tiers(mpi: Mpi, run_mpi: Callable, build_program: Callable, tiers: Callable) -> None:
    env = tiers("caches") | {"STRETTO_EXPLAIN": "1", "STRETTO_TIERS": "off"}
    job = run_mpi(mpi, 5, [build_program(mpi, "options_check.c"), 2, 100_000], env=env).ok()
    assert "tiers" not in job.stderr and "allreduce by flat" in job.stderr, job.describe()


@pytest.mark.one_mpi
@pytest.mark.parametrize("how", ["kill", "wait"])
@pytest.mark.parametrize("victim", [0, 2, 4])
def test_a_rank_is_killed_in_mid_call(
    mpi: Mpi, run_mpi: Callable, build_program: Callable, tiers: Callable, how: str, victim: int
) -> None:
    job = run_mpi(mpi, 5, [build_program(mpi, "crash_end.c"), how, victim], timeout=40, env=tiers("caches"))
    assert job.returncode != 0 and "came back without its root" not in job.output, job.describe()


@pytest.mark.one_mpi("openmpi")
def test_rank_order_goes_flat(mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tiers: Callable) -> None:
    env = tiers("dealt") | {"STRETTO_REPRODUCIBLE": "rank"}
    job = run_mpi(mpi, 8, [build_cxx("reproducible.cpp"), "rank", "1", "7", "1000", "20000"], env=env, timeout=120).ok()
    assert "all sums as expected" in job.stdout and job.messages() == [], job.describe()
