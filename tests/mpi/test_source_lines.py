# SPDX-License-Identifier: BSD-3-Clause
"""Messages about a call name its line of source: in C, Fortran and Python."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from pathlib import Path

import harness
import pytest
from stretto.core import source_lines
from test_fortran import module_flags

HANG = {"STRETTO_WATCHDOG": "1"}
ROOT = Path(__file__).resolve().parents[2]

needs_tool = pytest.mark.skipif(source_lines.tool() is None, reason="no addr2line")
pytestmark = needs_tool


@functools.cache
def line_of(source: str, mark: str) -> str:
    """`source.c:17` of the line with this comment."""
    lines = (harness.PROGRAMS / source).read_text().splitlines()
    return f"{source}:{next(i for i, line in enumerate(lines, 1) if line.endswith(mark))}"


def told(job: harness.Job) -> str:
    """The library's messages, as `stretto run` shows them."""
    return source_lines.Resolver().text("\n".join(job.messages()))


def names_both(text: str, source: str, function: str) -> bool:
    """Whether some rank's message names its own call, and that of the rank that contradicts it."""
    root, others = (rf"\S*{line_of(source, mark)} in {function}" for mark in ("the root's call", "the others' call"))
    return re.search(rf"\(rank 1 at {root}; rank [02] at {others}\)", text) is not None and (
        re.search(rf"\(rank [02] at {others}; rank 1 at {root}\)", text) is not None
    )


KINDS = {"pie": ["-fPIE", "-pie"], "no_pie": ["-fno-PIE", "-no-pie"]}


@pytest.mark.one_mpi
@pytest.mark.parametrize("kind", KINDS)
def test_a_contradiction_in_c(mpi, run_mpi, build_program, kind):
    program = build_program(mpi, "source_lines.c", f"source_lines_{kind}", KINDS[kind])
    job = run_mpi(mpi, 3, [program, "mismatch"], env={"STRETTO_CHECK": "2"})
    assert names_both(told(job), "source_lines.c", "step"), job.describe()


@pytest.mark.one_mpi
def test_a_library_that_calls(mpi, run_mpi, build_program):
    library = build_program(mpi, "source_lines.c", "libsource_lines.so", ["-DLIBRARY", "-shared", "-fPIC"])
    flags = ["-DPROGRAM", "-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}"]
    program = build_program(mpi, "source_lines.c", "source_lines_program", flags)
    job = run_mpi(mpi, 3, [program, "mismatch"])
    assert "libsource_lines.so+0x" in job.stderr, job.describe()
    assert "source_lines.c" in told(job), job.describe()


@pytest.mark.one_mpi
def test_a_stripped_program_has_functions_of_its_dynamic_symbols(mpi, run_mpi, build_program):
    program = build_program(mpi, "source_lines.c", "source_lines_stripped", ["-g0", "-s", "-rdynamic"])
    job = run_mpi(mpi, 3, [program, "mismatch"])
    assert re.search(r"rank 1 at \S+/source_lines_stripped\+0x[0-9a-f]+ in step", told(job)), job.describe()


@pytest.mark.one_mpi
def test_the_tool_names_who_waits_and_who_is_missing(mpi, build_program):
    """`stretto run` itself. Its status is the program's."""
    program = build_program(mpi, "source_lines.c", "source_lines_pie", KINDS["pie"])
    line = [sys.executable, "-m", "stretto", "run", "--mpi", str(mpi.mpiexec), "-n", "3"]
    settings = ["-s", "watchdog=1", "-s", "agree=first"]
    env = {**harness.clean_environment(), "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [*line, *settings, "--", program, "hang"], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    others, last = (line_of("source_lines.c", mark) for mark in ("the others' call", "the last call of the late rank"))
    assert re.search(rf"waiting at \S*{others} in step: 0, 1$", done.stderr, re.MULTILINE), done.stderr
    assert re.search(rf"since it came back from MPI_Barrier, .* at \S*{last} in main$", done.stderr, re.MULTILINE), (
        done.stderr
    )


@pytest.mark.parametrize("binding", [2, 3], ids=["mpi", "mpi_f08"])
def test_a_contradiction_in_fortran(mpi, run_mpi, build_program, binding):
    """The call lies behind the MPI's binding, which is not what anybody wants to know."""
    if mpi.mpifort is None:
        pytest.skip(f"{mpi.title} has no Fortran compiler wrapper")
    flags = [f"-DBINDING={binding}", "-fallow-argument-mismatch", "-w"]
    flags += module_flags(mpi, "mpi_f08" if binding == 3 else "mpi")
    program = build_program(mpi, "source_lines.F90", f"source_lines_f{binding}", flags, language="fortran")
    job = run_mpi(mpi, 3, [program, "mismatch"])
    assert names_both(told(job), "source_lines.F90", "solver::step"), job.describe()


def python_of(mpi) -> str:
    """An interpreter that has mpi4py for this MPI."""
    if mpi.python is None:
        pytest.skip(f"no mpi4py for {mpi.title}")
    return str(mpi.python)


@pytest.mark.only(origin="wheel")
def test_a_contradiction_in_python(mpi, run_mpi):
    job = run_mpi(mpi, 3, [python_of(mpi), harness.PROGRAMS / "source_lines.py", "mismatch"])
    assert names_both(told(job), "source_lines.py", "step"), job.describe()


@pytest.mark.only(origin="wheel", kind="mpich")
@pytest.mark.parametrize("served", ["auto", pytest.param("mpi", marks=pytest.mark.long)])
def test_a_hang_in_python(mpi, run_mpi, served):
    env = {**HANG, "STRETTO_ALLREDUCE": served}
    job = run_mpi(mpi, 3, [python_of(mpi), harness.PROGRAMS / "source_lines.py", "hang"], env=env).ok()
    line = line_of("source_lines.py", "the others' call")
    assert re.search(rf"at \S*{line} in step", told(job)), job.describe()
