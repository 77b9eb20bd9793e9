# SPDX-License-Identifier: BSD-3-Clause
"""Buffers of Alltoalls that returned early go straight to another function of MPI, which finds all data there."""

from __future__ import annotations

import json

import pytest
from test_fortran import BINDINGS, module_flags

BLOCK = 1 << 19  # ints for each rank: 8 MiB a rank


@pytest.fixture(params=["auto", "user", "segv"])
def environment(request: pytest.FixtureRequest) -> dict[str, str]:
    return {"STRETTO_OVERLAP": "4096", "STRETTO_OVERLAP_GUARD": request.param}


@pytest.fixture(autouse=True)
def hosts_that_can(mpi) -> None:
    if mpi.kind == "mpich" and mpi.major < 5:
        pytest.skip("Debian's MPICH hangs in its own MPI_Finalize between pretended nodes: 9 of 25 plain runs")


@pytest.fixture
def run(mpi, run_mpi, build_program, on_nodes, environment):
    """run(what) -> job and results, which are right. No peer has found memory without data."""
    program = build_program(mpi, "overlap_touched.c", flags=["-rdynamic"])

    def call(what):
        job = run_mpi(mpi, 4, [on_nodes(2), program, what, BLOCK], env=environment, timeout=120).ok()
        results = job.results()
        assert len(results) == 4 and all(r["refused"] == 0 for r in results), job.describe()
        return job, results

    return call


def test_every_function_finds_all_data(run):
    job, results = run("all")
    assert sum(r["early"] for r in results) >= results[0]["calls"], job.describe()


@pytest.mark.parametrize("what", ["put", "get", "accumulate", "win_create"])
def test_the_first_window_finds_all_data(run, what):
    job, results = run(what)
    assert any(r["early"] for r in results), job.describe()


@pytest.mark.every
@pytest.mark.parametrize("binding", BINDINGS)
def test_fortran_buffers_have_all_data(mpi, run_mpi, build_program, on_nodes, environment, binding, tmp_path):
    if mpi.mpifort is None:
        pytest.skip(f"{mpi.title} has no Fortran compiler wrapper")
    number = BINDINGS[binding]
    flags = [f"-DBINDING={number}", "-fallow-argument-mismatch", "-w", *module_flags(mpi, binding)]
    name = f"touched_fortran_{number}"
    if environment["STRETTO_OVERLAP_GUARD"] == "segv":  # refuses programs that have a handler of SIGSEGV
        flags.append("-fno-backtrace")
        name += "_without_handlers"
    program = build_program(mpi, "overlap_touched.F90", name, flags, language="fortran")
    report = tmp_path / "stats.json"
    run_mpi(mpi, 4, [on_nodes(2), program], env=environment | {"STRETTO_STATS": f"json:{report}"}, timeout=120).ok()
    world = [
        next(c for c in rank["communicators"] if c["id"] == 0) for rank in json.loads(report.read_text())["per_rank"]
    ]
    assert any(c["collectives"]["alltoall"]["calls"]["deferred"] for c in world), world
