# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's own tests of collectives, communicators, attributes and errors, under preload, on any MPI.

No test may fail that passes on the same MPI without Stretto. They need `--long` and MPICH's source:

    apt-get source mpich && export MPICH_TESTS=$PWD/mpich-4.0.2/test/mpi
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import JobTimeout
from stretto.core.paths import build_root, locked
from stretto.mpi import Mpi

SOURCE = os.environ.get("MPICH_TESTS")
FOLDERS = ["coll", "errors/coll", "comm", "attr"]

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(7200),
    pytest.mark.only(kind=("openmpi", "mpich")),
    pytest.mark.skipif(SOURCE is None, reason="MPICH_TESTS names no folder with MPICH's tests"),
]


@pytest.fixture
def programs(mpi: Mpi) -> Path:
    """MPICH's tests, built for this MPI. Tests that do not build are left out."""
    folder = build_root() / "mpich-tests" / mpi.tag
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent / f"{mpi.tag}.lock"), (folder / "build.log").open("a") as log:

        def run(*argv: object, check: bool = True) -> None:
            subprocess.run([str(a) for a in argv], cwd=folder, stdout=log, stderr=subprocess.STDOUT, check=check)

        if not (folder / "Makefile").exists():
            run(
                Path(str(SOURCE)) / "configure",
                f"CC={mpi.mpicc}",
                f"--with-mpi={mpi.prefix}",
                "--disable-fortran",
                "--disable-cxx",
                "--enable-strictmpi",
            )
        for part in ("util", "dtpools"):
            run("make", "-C", part)
        for part in FOLDERS:
            run("make", "-k", "-C", part, "check", "TESTS=", check=False)
    return folder


def cases(programs: Path, part: str) -> Iterator[tuple[Path, int, list[str]]]:
    """Program, ranks and arguments of each test in the part's list.

    `configure` makes some of the lists.
    """
    folder = programs / part
    lists = [root / part / "testlist" for root in (programs, Path(str(SOURCE)))]
    for line in next(name for name in lists if name.exists()).read_text().splitlines():
        words = line.partition("#")[0].split()
        if len(words) >= 2 and (folder / words[0]).exists():
            yield (
                folder / words[0],
                int(words[1]),
                [word[len("arg=") :] for word in words[2:] if word.startswith("arg=")],
            )


@pytest.mark.parametrize("part", FOLDERS)
def test_mpich_suite(mpi: Mpi, run_mpi: Callable, programs: Path, part: str) -> None:
    served, worse = 0, []

    def passes(program: Path, ranks: int, arguments: list[str], preload: bool) -> bool:
        nonlocal served
        try:
            job = run_mpi(
                mpi,
                ranks,
                [program, *arguments],
                {"STRETTO_STATS": "text"},
                preload=preload,
                timeout=120,
                cwd=program.parent,
            )
        except JobTimeout:
            return False
        served += "stretto statistics" in job.stderr
        return job.returncode == 0 and re.search(r"^ *No Errors", job.stdout, re.MULTILINE) is not None

    tests = list(cases(programs, part))
    assert tests
    for test in tests:
        if not passes(*test, preload=True) and passes(*test, preload=False) and not passes(*test, preload=True):
            worse.append(test)
    assert not worse
    assert served > 0
