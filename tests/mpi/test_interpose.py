# SPDX-License-Identifier: BSD-3-Clause
"""Every name of a collective leads to Stretto exactly once, and STRETTO_CHECK checks the results."""

from __future__ import annotations

import json
from pathlib import Path

import harness
import pytest

ROOT = Path(__file__).resolve().parents[2]
OPERATIONS = (
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
)
NEIGHBORS = (
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
)


def calls_of_world(path: Path) -> list[dict[str, int]]:
    """How often Stretto served each collective on the first communicator, by rank.

    `path` has the statistics.
    """
    report = json.loads(path.read_text())
    assert report["ranks"] == len(report["per_rank"])
    counted = []
    for rank in report["per_rank"]:
        world = next(c for c in rank["communicators"] if c["id"] == 0)
        assert all(n["calls"]["host"] == 0 for n in world["collectives"].values()), world
        counted.append({op: sum(n["calls"].values()) for op, n in world["collectives"].items()})
    return counted


@pytest.mark.parametrize("np", [pytest.param(2, marks=pytest.mark.every), 5])
def test_every_c_name_is_served_once(mpi, run_mpi, build_program, tmp_path, np):
    large = harness.has(mpi, "MPI_Bcast_c")
    program = build_program(
        mpi, "interpose_families.c", f"interpose_families{'_c' if large else ''}", ["-DLARGE_COUNTS"] if large else []
    )
    stats = tmp_path / "stats.json"
    job = run_mpi(mpi, np, [program], env={"STRETTO_STATS": f"json:{stats}"}).ok()
    families = 4 if large else 2
    assert job.results() == [{"families": families}]
    assert calls_of_world(stats) == [dict.fromkeys(OPERATIONS, families)] * np


def without_large_counts(mpi, folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Makes a copy of this MPI that lacks the _c functions of these names: in it they end in _x."""
    library = Path(mpi.library).resolve().read_bytes()
    for each in names:
        name = f"MPI_{each}_c".encode() + b"\0"
        assert name in library
        library = library.replace(name, name.replace(b"_c\0", b"_x\0"))
    (folder / Path(mpi.library).name).write_bytes(library)
    if mpi.origin == "wheel":  # this MPICH looks for its own libraries beside itself
        for sibling in Path(mpi.library).parent.iterdir():
            if sibling.is_dir():
                (folder / sibling.name).symlink_to(sibling)
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.mark.only(kind="mpich")
def test_large_counts_on_a_host_without_them(mpi, run_mpi, build_program, tmp_path):
    """Stretto calls a host without large counts with narrow counts."""
    every = (*OPERATIONS, *NEIGHBORS)
    path = without_large_counts(mpi, tmp_path, tuple(op.capitalize() for op in every[1:]))
    program = build_program(mpi, "interpose_families.c", "interpose_families_c", ["-DLARGE_COUNTS"])
    env = path | {f"STRETTO_{op.upper()}": "mpi" for op in every}
    assert run_mpi(mpi, 3, [program, "host"], env=env).ok().results() == [{"families": 4}]
    served = run_mpi(mpi, 3, [program], env=path).ok()
    assert served.results() == [{"families": 4}] and served.messages() == []


@pytest.mark.only(kind="mpich")
def test_other_large_counts_on_a_host_without_them(mpi, run_mpi, build_program, tmp_path):
    lacking = ("Send", "Irecv", "Sendrecv_replace", "Pack", "Unpack", "Reduce_local", "Ialltoallv")
    path = without_large_counts(mpi, tmp_path, lacking)
    job = run_mpi(mpi, 2, [build_program(mpi, "narrowed_calls.c")], env=path).ok()
    assert job.results() == [{"right": True}] and job.messages() == [], job.describe()


@pytest.mark.parametrize("binding", ["mpif", "mpi", "f08"])
def test_every_fortran_binding_is_served_once(mpi, run_mpi, build_program, tmp_path, binding):
    if mpi.mpifort is None or mpi.origin == "wheel":
        pytest.skip("no Fortran modules with this MPI")
    program = build_program(
        mpi,
        "interpose_fortran.F90",
        f"interpose_fortran_{binding}",
        [f"-DBINDING_{binding.upper()}", "-fallow-argument-mismatch"],
        language="fortran",
    )
    stats = tmp_path / "stats.json"
    job = run_mpi(mpi, 3, [program], env={"STRETTO_STATS": f"json:{stats}"}).ok()
    assert job.results() == [{"right": True}]
    twice = ("bcast", "gather", "scatter", "allgather", "allgatherv")
    expected = dict.fromkeys(OPERATIONS, 1) | dict.fromkeys(twice, 2) | {"allreduce": 5}
    assert calls_of_world(stats) == [expected] * 3
    for rank in json.loads(stats.read_text())["per_rank"]:
        (ring,) = (comm["collectives"]["neighbor_alltoall"] for comm in rank["freed"])
        assert ring["calls"]["inline"] == sum(ring["calls"].values()) == 1


@pytest.mark.few
def test_check_mode_agrees_with_the_host(mpi, run_mpi, build_program):
    program = build_program(mpi, "options_check.c")
    job = run_mpi(mpi, 3, [program, 1, 100_000], env={"STRETTO_CHECK": "3"}).ok()
    assert {r["bcast"] for r in job.results()} == {"cico"} and job.messages() == [], job.describe()


@pytest.mark.few
def test_check_mode_names_a_wrong_byte(mpi, run_mpi, build_program):
    corrupt = build_program(mpi, "interpose_corrupt.c", "libinterpose_corrupt.so", ["-shared", "-fPIC", "-fno-builtin"])
    program = build_program(mpi, "interpose_bcast.c")
    chain = f"{corrupt}:{harness.library(mpi.abi)}"
    unchecked = run_mpi(mpi, 2, [program], preload=chain, env={"CORRUPT_COPY": "1"}).ok()
    assert not all(r["right"] for r in unchecked.results()), "the fault does not hit our copies"
    # Copy 1 saves what the receive buffer held, copy 2 brings the data.
    checked = run_mpi(mpi, 2, [program], preload=chain, env={"STRETTO_CHECK": "3", "CORRUPT_COPY": "2"})
    assert checked.returncode != 0
    (message,) = [m for m in checked.messages() if "STRETTO_CHECK" in m]
    for words in ("MPI_Bcast differs", "rank 1", "call 1", "byte 5"):
        assert words in message, message
