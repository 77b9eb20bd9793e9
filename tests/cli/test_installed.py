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
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
pytestmark = pytest.mark.xdist_group("installed")  # they share one build
User = Callable[..., "subprocess.CompletedProcess[str]"]

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
    """user("verify", "--help"): the installed tool as somebody else, in a home of his own, elsewhere."""
    place = Path(tempfile.mkdtemp(prefix="stretto test of a wheel "))
    try:
        place.chmod(0o755)
        python = next(p for p in ("/usr/bin/python3", sys.executable) if os.path.exists(p))
        environment = place / "an environment"
        subprocess.run([python, "-m", "venv", environment], check=True, timeout=100)
        subprocess.run([environment / "bin/pip", "install", "-q", wheel], check=True, timeout=200)
        launcher = place / "compile"
        launcher.write_text(LAUNCHER)
        launcher.chmod(0o755)
        home = place / "a home"
        home.mkdir()
        (home / "sum.c").write_text(PROGRAM)
        become: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(home, NOBODY, NOBODY)
            shutil.chown(home / "sum.c", NOBODY, NOBODY)
            become = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        clean = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(home),
            "CMAKE_CXX_COMPILER_LAUNCHER": str(launcher),
        }

        def call(
            *arguments: str | Path, tool: str | Path = environment / "bin/stretto"
        ) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*become, tool, *arguments],
                cwd=home,
                env=clean,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=280,
            )

        yield call
    finally:
        shutil.rmtree(place)


@pytest.mark.slow
def test_verify_builds_what_it_needs(user: User) -> None:
    done = user("verify", "--max-ranks", "3")
    assert done.returncode == 0 and " 0 failed" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
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


@pytest.mark.slow
def test_bench_and_doctor_run(user: User) -> None:
    done = user("bench", "--op", "barrier", "--sizes", "8", "--budget", "0.05")
    assert done.returncode == 0, done.stdout + done.stderr
    done = user("doctor")
    assert done.returncode == 0 and "tools for building the library" in done.stdout, done.stdout + done.stderr
