# SPDX-License-Identifier: BSD-3-Clause
"""Functions that look at requests and end none: they tell when the data are there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from counted import calls_by_schedule
from harness import PROGRAMS, has, per_rank_script
from stretto.mpi import Mpi

ON = {"STRETTO_NONBLOCKING": "on"}
IMPORTS = ["-include", str(PROGRAMS / "imports.h")]


def _run(run_mpi: Callable, mpi: Mpi, np: int, argv: list, env: dict[str, str], folder: Path) -> tuple:
    """The job, and how many of its calls with requests Stretto served."""
    report = folder / "stats.json"
    job = run_mpi(mpi, np, argv, env=env | {"STRETTO_STATS": f"json:{report}"}).ok()
    assert len(job.results()) == np and not any(r["wrong"] for r in job.results()), job.describe()
    return job, calls_by_schedule(report)


@pytest.mark.every
@pytest.mark.parametrize("form", ["all", "any", "some", "one", "cancel"])
def test_looks(mpi: Mpi, run_mpi: Callable, build_program: Callable, tmp_path: Path, form: str) -> None:
    """Also where the MPI lacks the function: then Stretto has it."""
    job, served = _run(run_mpi, mpi, 2, [build_program(mpi, "request_looks.c"), form], ON, tmp_path)
    persistent = job.results()[0]["persistent"]
    assert served >= (6 if form != "cancel" else 0) + (6 if form != "cancel" and persistent else 0), job.describe()


@pytest.mark.only(kind="mpich")
@pytest.mark.parametrize("form", ["any", "some", "mpich"])
def test_looks_by_default(mpi: Mpi, run_mpi: Callable, build_program: Callable, tmp_path: Path, form: str) -> None:
    if form == "mpich" and not has(mpi, "MPIX_Request_is_complete"):
        pytest.skip(f"{mpi.title} has no MPIX_Request_is_complete")
    _, served = _run(run_mpi, mpi, 3, [build_program(mpi, "request_looks.c"), form], {}, tmp_path)
    assert served >= 12


@pytest.mark.only(origin="wheel")
@pytest.mark.parametrize("form", ["all", "any", "some"])
def test_looks_of_mpi4py(mpi: Mpi, run_mpi: Callable, tmp_path: Path, form: str) -> None:
    """Its references are weak: where the MPI lacks the function, it finds Stretto's."""
    if mpi.python is None:
        pytest.skip(f"no mpi4py for {mpi.title}")
    _, served = _run(run_mpi, mpi, 2, [mpi.python, PROGRAMS / "request_looks.py", form], ON, tmp_path)
    assert served >= 11


@pytest.mark.only(kind="mpich", origin="wheel")
@pytest.mark.parametrize("ranks", ["all", "one"])
@pytest.mark.parametrize("choice", ["auto", "on"])
def test_a_program_with_other_functions_of_its_mpi(
    mpi: Mpi, run_mpi: Callable, build_program: Callable, tmp_path: Path, ranks: str, choice: str
) -> None:
    """By default the MPI then serves calls with requests, on all ranks alike."""
    plain = build_program(mpi, "request_looks.c")
    importing = build_program(mpi, "request_looks.c", "request_looks_importing", flags=IMPORTS)
    script = per_rank_script(tmp_path, {1: {"PROGRAM": str(importing)}})
    script.write_text(script.read_text().replace('exec "$@"', 'exec "${PROGRAM:-$1}" "$2"'))
    argv = [importing, "any"] if ranks == "all" else [script, plain, "any"]
    env = {"STRETTO_NONBLOCKING": choice, "STRETTO_EXPLAIN": "1"}
    job, served = _run(run_mpi, mpi, 3, argv, env, tmp_path)
    rank = 0 if ranks == "all" else 1
    said = f"communicator 0 of 3 ranks: the MPI, because the program of rank {rank} calls MPIX_Waitall_enqueue"
    assert (served == 0, said in job.stderr) == ((choice == "auto",) * 2), job.describe()
