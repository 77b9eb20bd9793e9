# SPDX-License-Identifier: BSD-3-Clause
"""The randomised tests of collectives by schedule on one machine.

A placement file gives the hierarchies. Messages within one of its nodes go over shared memory, and
all others go by the MPI. STRETTO_TEST_SEED=n tries other cases.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.core.arguments import OF_ALL_RANKS
from oracle import seed
from stretto.mpi import Mpi

PLACES = {
    "levels": "all: leaf:2 node:2 socket:2 core:1\n",
    "uneven": "0,1,2: node=0 socket=0\n3-7: node=1\n3: socket=0\n4-6: socket=1\n7: socket=1 # and alone on a core\n",
    "dealt": "0,2,4,6: node=0\n1,3,5,7: node=1\n",
    "flat": "all: core:8\n",
    "cards": "all: node:2 socket:2 core:2\n0-1,4: nic=0\n2-3,5-6: nic=1\n7: nic=0 nic=1\n",
}

SHORT = {(3, "uneven"), (5, "dealt"), (8, "levels"), (8, "cards")}
RUNS = [
    pytest.param(ranks, places, marks=[] if (ranks, places) in SHORT else pytest.mark.long)
    for ranks in (2, 3, 5, 8)
    for places in PLACES
]


def wanted(collectives: list[str]) -> dict[str, str]:
    return {f"STRETTO_{name.upper()}": "schedule" for name in collectives}


def placed(tmp_path: Path, text: str) -> dict[str, str]:
    file = tmp_path / "placement"
    file.write_text(text)
    return {"STRETTO_PLACEMENT": str(file)}


def paths_of(report: Path) -> dict[str, set[str]]:
    """For each collective: the paths of its calls on communicators of several ranks, on all ranks."""
    taken: dict[str, set[str]] = {}
    for entry in json.loads(report.read_text())["per_rank"]:
        for communicator in [*entry["communicators"], *entry.get("freed", [])]:
            for name, counted in communicator["collectives"].items():
                if communicator["size"] > 1:
                    taken.setdefault(name, set()).update(path for path, n in counted["calls"].items() if n)
    return taken


@pytest.mark.one_mpi("openmpi")
@pytest.mark.parametrize(("ranks", "places"), RUNS)
def test_against_oracle(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path, ranks: int, places: str, long_mode: bool
) -> None:
    report = tmp_path / "stats.json"
    cases = 4_000 if long_mode else 250
    env = wanted(OF_ALL_RANKS) | placed(tmp_path, PLACES[places]) | {"STRETTO_STATS": f"json:{report}"}
    line = [
        build_cxx("differential.cpp"),
        "--cases",
        str(cases),
        "--seed",
        str(seed() + ranks),
        "--exact",
        "--expect-native",
        "99",
    ]
    job = run_mpi(mpi, ranks, line, env=env, timeout=60 + cases * ranks * 0.05).ok()
    assert f"{cases} cases ok, with us" in job.stdout and job.messages() == [], job.describe()
    assert {path for paths in paths_of(report).values() for path in paths} == {"schedule"}


@pytest.mark.few
def test_by_the_wire_where_memory_cannot_be_shared(mpi: Mpi, run_mpi: Callable, build_cxx: Callable) -> None:
    line = [build_cxx("differential.cpp"), "--cases", "120", "--seed", str(seed()), "--exact", "--expect-native", "99"]
    env = wanted(OF_ALL_RANKS) | {"STRETTO_FAULT": "memfd_open:*:ENOSYS", "STRETTO_LOG": "info"}
    job = run_mpi(mpi, 3, line, env=env, preload="faulty").ok()
    assert "messages on the node go by the MPI: the system refuses memory files (memfd_create)" in job.stderr, (
        job.describe()
    )


@pytest.mark.few
def test_each_collective_by_its_own_way(mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path) -> None:
    """Options ask for schedules or for the MPI. All other collectives go over shared memory."""
    report = tmp_path / "stats.json"
    env = wanted(["bcast", "allgatherv"]) | {"STRETTO_BARRIER": "mpi", "STRETTO_STATS": f"json:{report}"}
    run_mpi(mpi, 3, [build_cxx("differential.cpp"), "--cases", "120", "--seed", str(seed()), "--exact"], env=env).ok()
    ways = paths_of(report)
    assert (
        ways.pop("bcast") == {"schedule"} and ways.pop("allgatherv") == {"schedule"} and ways.pop("barrier") == {"host"}
    )
    assert len(ways) > 4 and not {"schedule", "host"} & set.union(*ways.values()), ways


@pytest.mark.one_mpi("openmpi")
@pytest.mark.parametrize(("ranks", "places"), RUNS)
def test_reductions(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path, ranks: int, places: str, long_mode: bool
) -> None:
    cases = 4_000 if long_mode else 250
    line = [
        build_cxx("reductions.cpp"),
        "--cases",
        str(cases),
        "--seed",
        str(seed() + ranks),
        "--any-order",
        "--expect-native",
        "100",
    ]
    env = wanted(OF_ALL_RANKS) | placed(tmp_path, PLACES[places])
    job = run_mpi(mpi, ranks, line, env=env, timeout=60 + cases * ranks * 0.05).ok()
    assert f"{cases} cases ok, with us" in job.stdout and job.messages() == [], job.describe()


@pytest.mark.one_mpi("openmpi")
@pytest.mark.parametrize("source", ["differential.cpp", "reductions.cpp"])
def test_check_mode_finds_no_difference(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path, source: str, long_mode: bool
) -> None:
    """With STRETTO_CHECK=3 the MPI's own function runs after each call, and gives the same result."""
    cases = 2_000 if long_mode else 150
    exact = ["--host", "--exact"] if source == "differential.cpp" else ["--kind-limits"]
    line = [build_cxx(source), "--cases", str(cases), "--seed", str(seed()), *exact]
    env = wanted(OF_ALL_RANKS) | placed(tmp_path, PLACES["levels"]) | {"STRETTO_CHECK": "3"}
    job = run_mpi(mpi, 5, line, env=env, timeout=60 + cases).ok()
    assert f"{cases} cases ok, with us" in job.stdout and job.messages() == [], job.describe()


@pytest.mark.one_mpi
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"STRETTO_HIERARCHY": "numa,?"}, 'STRETTO_HIERARCHY: "numa,?", column 7: a number from 1 was expected'),
        (
            {"STRETTO_PLACEMENT": "/nowhere/at/all"},
            "cannot read /nowhere/at/all: No such file or directory (STRETTO_PLACEMENT)",
        ),
    ],
    ids=["levels", "file"],
)
def test_mistakes_end_the_job(
    mpi: Mpi, run_mpi: Callable, build_program: Callable, options: dict[str, str], says: str
) -> None:
    job = run_mpi(mpi, 2, [build_program(mpi, "options_check.c")], env=options)
    assert job.returncode != 0 and sum(says in line for line in job.messages()) == 1, job.describe()


@pytest.mark.one_mpi
def test_places_of_mistakes(mpi: Mpi, run_mpi: Callable, build_program: Callable, tmp_path: Path) -> None:
    env = placed(tmp_path, "all: node:2\n0: nod=1\n")
    job = run_mpi(mpi, 2, [build_program(mpi, "options_check.c")], env=env)
    assert job.returncode != 0 and sum("placement:2:4: a level was expected" in line for line in job.messages()) == 1, (
        job.describe()
    )


def _rare_use(
    mpi: Mpi, run_mpi: Callable, build_program: Callable, tmp_path: Path, ranks: int, *arguments: object
) -> list[dict]:
    env = wanted(OF_ALL_RANKS) | placed(tmp_path, PLACES["dealt"])
    job = run_mpi(mpi, ranks, [build_program(mpi, "rare_uses.c"), *arguments], env=env, timeout=120).ok()
    assert len(job.results()) == ranks, job.describe()
    return job.results()


def test_nobody_receives_what_a_failed_call_has_left(
    mpi: Mpi, run_mpi: Callable, build_program: Callable, tmp_path: Path
) -> None:
    """Stretto does not use the number of the failed call's communicator again."""
    _rare_use(mpi, run_mpi, build_program, tmp_path, 3, "mistake")


@pytest.mark.only(kind="openmpi")  # MPICH has 2,048 communicators at most
def test_more_communicators_than_the_wire_has_numbers(
    mpi: Mpi, run_mpi: Callable, build_program: Callable, tmp_path: Path
) -> None:
    """The MPI serves the communicators that get no number. They do not wait for one."""
    results = _rare_use(mpi, run_mpi, build_program, tmp_path, 3, "many", 4_600)
    assert max(r["seconds"] for r in results) < 30, results


@pytest.mark.few
@pytest.mark.parametrize("single", [-1, 1])
def test_threads_that_use_their_communicators_first_at_the_same_time(
    mpi: Mpi, run_mpi: Callable, build_program: Callable, tmp_path: Path, single: int
) -> None:
    """Each communicator gets a number in the end, also if one rank uses them one after another."""
    results = _rare_use(mpi, run_mpi, build_program, tmp_path, 5, "at_once", 16, single)
    assert {r["grown"] for r in results} == {0}, results
