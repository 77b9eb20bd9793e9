# SPDX-License-Identifier: BSD-3-Clause
"""The wheel: what it contains, and that a user can work with an installation that belongs to
another user, in paths with spaces."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from installing import User, installed

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.xdist_group("installed")  # they share one build

# These tests are about packaging. Without optimization, compiling takes a third of the time.
LAUNCHER = """#!/bin/sh
exec "$@" -O0 -fno-lto
"""

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 100; ++i) MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("sum %d\n", sum);
  MPI_Finalize();
  return 0;
}
"""


def files_of_the_tree() -> set[str]:
    listed = subprocess.run(
        [
            "git",
            "ls-files",
            "CMakeLists.txt",
            "CMakePresets.json",
            "cmake",
            "src",
            "include",
            "bench",
            "tools",
            "examples",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return set(listed.splitlines())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)], check=True, timeout=200
    )
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.slow
def test_the_wheel_carries_every_source(wheel: Path) -> None:
    start = "stretto/source/"
    carried = {name[len(start) :] for name in zipfile.ZipFile(wheel).namelist() if name.startswith(start)}
    assert files_of_the_tree() <= carried
    assert not [name for name in carried if name.endswith((".so", ".o", ".pyc"))]


@pytest.fixture(scope="module")
def user(wheel: Path) -> Iterator[User]:
    """The tool of the wheel, as another user has it."""
    launcher = Path(tempfile.mkdtemp(prefix="stretto compile ")) / "compile"
    launcher.parent.chmod(0o755)
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)
    try:
        with installed(wheel, {"CMAKE_CXX_COMPILER_LAUNCHER": str(launcher)}, PROGRAM) as call:
            yield call
    finally:
        shutil.rmtree(launcher.parent)


@pytest.mark.slow
def test_another_user_builds_in_his_own_home(user: User) -> None:
    """A program of one file: CMake has read its files, and found all others, before that."""
    made = "from stretto.native import build; print(build.ensure_built('release', ['stretto-core-to-core']))"
    done = user("-c", made, tool="python")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert " " in str(folder) and user(tool=folder / "stretto-core-to-core").returncode == 0


@pytest.mark.long
def test_verify_builds_what_it_needs(user: User) -> None:
    done = user("verify", "--max-ranks", "3")
    assert done.returncode == 0 and " 0 failed" in done.stdout, done.stdout + done.stderr


@pytest.mark.long
def test_a_program_is_run_and_served(user: User) -> None:
    compiler = next((c for c in ("mpicc.openmpi", "mpicc.mpich") if os.path.exists(f"/usr/bin/{c}")), None)
    if compiler is None:
        pytest.skip("needs an MPI of the system's")
    built = user("-o", "a program", "sum.c", tool=f"/usr/bin/{compiler}")
    assert built.returncode == 0, built.stderr
    done = user("run", "-n", "2", "--stats", "--", "./a program")
    assert done.returncode == 0 and "sum 198" in done.stdout, done.stdout + done.stderr
    served = re.search(r"communicator 0.*\n +allreduce +(\d+) ", done.stderr)
    assert served and int(served[1]) > 90, done.stderr  # the MPI has the first call


@pytest.mark.long
def test_bench_and_doctor_run(user: User) -> None:
    done = user("bench", "--op", "barrier", "--sizes", "8", "--budget", "0.05")
    assert done.returncode == 0, done.stdout + done.stderr
    done = user("doctor")
    assert done.returncode == 0 and "tools for building the library" in done.stdout, done.stdout + done.stderr
