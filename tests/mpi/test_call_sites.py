# SPDX-License-Identifier: BSD-3-Clause
"""The cost and the path of a call do not depend on the caller's symbols or the number of call sites."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

# Named like parts of the MPI.
COMPONENT = {"openmpi": "mca_imagined.so", "mpich": "libmpl.imagined.so", "standard": "libmpl.imagined.so"}


@pytest.fixture
def library(mpi, build_program):
    return build_program(mpi, "call_sites_library.c", "libcall_sites.so", ["-shared", "-fPIC"])


def counts(path: Path) -> tuple[int, int]:
    """The number of look-ups of callers, and the number of Barriers that Stretto counted."""
    (rank,) = json.loads(path.read_text())["per_rank"]
    everywhere = [c["collectives"] for c in rank["communicators"] + rank["freed"]]
    barriers = [c["barrier"] for c in everywhere if "barrier" in c]
    return rank["caller_lookups"], sum(sum(b["calls"].values()) for b in barriers)


def test_linked_callers_are_never_looked_up(mpi, run_mpi, build_program, library, tmp_path):
    flags = ["-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}", "-ldl"]
    program = build_program(mpi, "call_sites.c", flags=flags)
    stats = tmp_path / "stats.json"
    run_mpi(mpi, 1, [program, "linked"], env={"STRETTO_STATS": f"json:{stats}"}).ok()
    assert counts(stats) == (0, 83_000)


@pytest.mark.parametrize("order", ["plain_first", "component_first"])
def test_another_library_in_the_same_place(mpi, run_mpi, build_program, library, tmp_path, order):
    """The next library gets the addresses of a closed one. Either may be a part of the MPI."""
    plain, component = tmp_path / "libplain.so", tmp_path / COMPONENT[mpi.abi]
    for copy in (plain, component):
        shutil.copy(library, copy)
    program = build_program(mpi, "call_sites.c", "call_sites_alone", ["-ldl"])
    files = [plain, component] if order == "plain_first" else [component, plain]
    stats = tmp_path / "stats.json"
    job = run_mpi(mpi, 1, [program, "opened", *files, 10], env={"STRETTO_STATS": f"json:{stats}"}).ok()
    assert job.results() == [{"same_address": True}], "the second library lies elsewhere: nothing is tested"
    assert counts(stats) == (20, 11), "calls of the library count, those of the component are the MPI's own"
