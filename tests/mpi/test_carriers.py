# SPDX-License-Identifier: BSD-3-Clause
"""Alltoallv and Alltoallw by carriers of nodes, as rules ask for (`hierarchy:carriers`).

A placement file gives the nodes. STRETTO_TEST_SEED=n tries other cases.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from oracle import seed
from stretto.mpi import Mpi
from test_schedules import PLACES, paths_of, placed

SHORT = {(3, "dealt"), (7, "uneven")}
RUNS = [
    pytest.param(ranks, places, marks=[] if (ranks, places) in SHORT else pytest.mark.long)
    for ranks in (3, 5, 7, 8)
    for places in ("uneven", "dealt", "levels")
]


def ruled(tmp_path: Path) -> dict[str, str]:
    rules = tmp_path / "rules"
    rules.write_text("alltoallv: hierarchy:carriers\nalltoallw: hierarchy:carriers by=pairwise\n")
    return {"STRETTO_RULES": str(rules)}


@pytest.mark.one_mpi("openmpi")
@pytest.mark.parametrize(("ranks", "places"), RUNS)
def test_against_oracle(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path, ranks: int, places: str, long_mode: bool
) -> None:
    """MPI_IN_PLACE, derived datatypes, gaps, zero counts, communicators of some of the ranks."""
    report = tmp_path / "stats.json"
    cases = 3_000 if long_mode else 150
    line = [build_cxx("differential.cpp"), "--cases", str(cases), "--seed", str(seed()), "--exact", "--host-limits"]
    env = ruled(tmp_path) | placed(tmp_path, PLACES[places])
    env |= {"STRETTO_STATS": f"json:{report}", "STRETTO_EXPLAIN": "1"}
    job = run_mpi(mpi, ranks, line, env=env, timeout=60 + cases).ok()
    assert f"{cases} cases ok, with us" in job.stdout, job.describe()
    paths = paths_of(report)
    assert paths["alltoallv"] == paths["alltoallw"] == {"schedule"}, paths
    assert any("short blocks by one rank of a node" in text for text in job.messages()), job.describe()
