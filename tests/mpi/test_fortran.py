# SPDX-License-Identifier: BSD-3-Clause
"""The three Fortran bindings: right results, and every call comes to us exactly once."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from counted import check_counts
from harness import has
from stretto.mpi import Mpi

pytestmark = pytest.mark.every

BINDINGS = {"mpif.h": 1, "mpi": 2, "mpi_f08": 3}


def module_flags(mpi: Mpi, binding: str) -> list[str]:
    """Where the modules of this compiler are: Intel MPI ships some for several releases of gfortran, but no mpi_f08."""
    folder = mpi.prefix / "include" / "mpi" / "gfortran"
    if not folder.is_dir() or binding == "mpif.h":
        return []
    compiler = shutil.which("gfortran")
    if compiler is None:
        pytest.skip("no gfortran")
    version = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True, check=True).stdout
    for modules in folder.glob(f"{version.split('.')[0].strip()}.*"):
        if (modules / f"{binding}.mod").exists():
            return [f"-I{modules}"]
    pytest.skip(f"{mpi.title} has no module {binding} for this gfortran")


@pytest.fixture(params=BINDINGS)
def program(mpi: Mpi, build_program: Callable, request: pytest.FixtureRequest) -> Path:
    if mpi.mpifort is None:
        pytest.skip(f"{mpi.title} has no Fortran compiler wrapper")
    binding = BINDINGS[request.param]
    flags = [f"-DBINDING={binding}", "-fallow-argument-mismatch", "-w", *module_flags(mpi, request.param)]
    return build_program(mpi, "fortran_collectives.F90", f"fortran_{binding}", flags=flags, language="fortran")


@pytest.mark.parametrize("ranks", [2, 3])
def test_binding(mpi: Mpi, run_mpi: Callable, program: Path, ranks: int, tmp_path: Path) -> None:
    report = tmp_path / "stats.json"
    job = run_mpi(mpi, ranks, [program], env={"STRETTO_STATS": f"json:{report}"}).ok()
    check_counts(job, report, ranks)


@pytest.mark.parametrize("choice", ["auto", "on"])
def test_ranks_may_spell_counts_differently(mpi: Mpi, run_mpi: Callable, build_program: Callable, choice: str) -> None:
    if mpi.mpifort is None or not has(mpi, "MPI_Ialltoallv_c"):
        pytest.skip(f"{mpi.title} has no large counts in Fortran")
    flags = ["-w", *module_flags(mpi, "mpi_f08")]
    program = build_program(mpi, "count_spellings.F90", "count_spellings_f08", flags=flags, language="fortran")
    job = run_mpi(mpi, 3, [program], env={"STRETTO_NONBLOCKING": choice}).ok()
    assert job.results() == [{"wrong": 0}] * 3, job.describe()
