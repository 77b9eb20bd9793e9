# SPDX-License-Identifier: BSD-3-Clause
"""Neighbourhood collectives on grids and graphs, against messages that the program sends itself."""

from __future__ import annotations

import json

import pytest

NAMES = ("neighbor_allgather", "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw")
RANDOM = {"STRETTO_NONBLOCKING": "on"}
ASKED = {f"STRETTO_{name.upper()}": "schedule" for name in NAMES}


# The treematch of Open MPI 4.1 hangs in MPI_Dist_graph_create where a communicator was duplicated
# before, without Stretto, too.
OPEN_MPI_4 = {"OMPI_MCA_topo": "^treematch"}


@pytest.fixture
def play(mpi, run_mpi, build_cxx):
    def run(np, *what, env, timeout=60, before=()):
        env = env | (OPEN_MPI_4 if mpi.kind == "openmpi" and mpi.version.startswith("4.1") else {})
        job = run_mpi(mpi, np, [*before, build_cxx("neighbor_calls.cpp"), *what], env=env, timeout=timeout).ok()
        results = job.results()
        assert len(results) == np and not any(r["wrong"] for r in results), job.describe()

    return run


def _paths(report):
    """How rank 0's neighbourhood calls went, on all communicators."""
    entry = next(e for e in json.loads(report.read_text())["per_rank"] if e["rank"] == 0)
    total = {}
    for comm in [*entry["communicators"], *entry["freed"]]:
        for name, counted in comm["collectives"].items():
            for path, calls in counted["calls"].items() if name in NAMES else ():
                total[path] = total.get(path, 0) + calls
    return total


@pytest.mark.every
@pytest.mark.parametrize(
    ("np", "seed"), [(2, 1), (3, 2), (5, 3), (8, 4), pytest.param(16, 5, marks=pytest.mark.long)], ids=lambda v: str(v)
)
def test_random_topologies(play, tmp_path, long_mode, np, seed):
    report = tmp_path / "stats.json"
    calls = 200 if long_mode else 12
    play(np, "random", seed, calls, env=RANDOM | {"STRETTO_STATS": f"json:{report}"}, timeout=60 + calls * np)
    paths = _paths(report)
    assert paths["host"] == 0 and paths["schedule"] > 0 and paths["inline"] > 0 and paths["cico"] > 0, paths


@pytest.mark.few
def test_the_host_comes_to_the_same(play, long_mode):
    play(3, "host", 7, 100 if long_mode else 10, env={"STRETTO_CHECK": "3"})


@pytest.mark.one_mpi
@pytest.mark.parametrize("env", [{"STRETTO_CHECK": "2"}, {"STRETTO_SLOTS": "2", "STRETTO_SLOT_BYTES": "4K"}], ids=str)
def test_with_checks_and_few_slots(play, env):
    play(5, "random", 11, 12, env=RANDOM | env)


@pytest.mark.one_mpi("openmpi")
def test_by_schedule(play, tmp_path):
    report = tmp_path / "stats.json"
    play(5, "random", 13, 12, env=RANDOM | ASKED | {"STRETTO_STATS": f"json:{report}"})
    paths = _paths(report)
    assert paths["schedule"] == sum(paths.values())


@pytest.mark.few
@pytest.mark.parametrize(("np", "each"), [(3, 2), (5, 2), (8, 3)])
def test_between_nodes(play, on_nodes, tmp_path, np, each):
    report = tmp_path / "stats.json"
    env = ASKED | RANDOM | {"STRETTO_STATS": f"json:{report}"}
    play(np, "random", 17, 6, env=env, timeout=120, before=[on_nodes(each)])
    paths = _paths(report)
    assert paths["schedule"] == sum(paths.values())


@pytest.mark.few
def test_a_block_that_is_too_short(play):
    play(3, "short", env={})
