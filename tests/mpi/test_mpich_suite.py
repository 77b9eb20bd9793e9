# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's own tests under preload, on any MPI: by default, with calls with requests, with all features.

No test may fail that passes on the same MPI without Stretto. They need `--long` and MPICH's source in
MPICH_TESTS. `dev/mpich_suite.py` fetches it and runs them. Each run leaves what has failed in
`build/mpich-tests/failed-*.json`.
"""

from __future__ import annotations

import json
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
FOLDERS = ["coll", "errors/coll", "comm", "attr", "pt2pt", "topo", "init", "threads/comm"]
# Options, and ranks of a pretended node (0: the machine is one).
SETTINGS = {
    "default": ({}, 0),
    "nonblocking": ({"STRETTO_NONBLOCKING": "on"}, 0),
    "all": ({"STRETTO_NONBLOCKING": "on", "STRETTO_KIND": "on", "STRETTO_OVERLAP": "4096", "STRETTO_CHECK": "1"}, 2),
}
# What fails without Stretto, by the start of an MPI's tag: it is left out. MPICH 5 does not see
# lengths and operations that do not fit. ctxalloc and ctxsplit take longer than two minutes on two
# processors that others use, too.
FAILS_PLAIN = {
    "mpich-5": {
        "coll": {"nonblocking3"},
        "comm": {"ctxalloc", "ctxsplit"},
        "errors/coll": {
            *("bcastlength", "ireducelength", "iallreducelength", "reduceop", "ireduceop", "igatherlength"),
            *("scatterlength", "iscatterlength", "allgatherlength", "iallgatherlength", "alltoalllength"),
        },
    }
}
# What fails with Stretto by design, by setting. `gatherlength` sends more than its root expects.
# Between nodes Stretto reports that, and then refuses the communicator, because other messages of
# the call may be on their way.
REFUSED = {"all": {"errors/coll": {"gatherlength"}}}

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


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("part", FOLDERS)
def test_mpich_suite(mpi: Mpi, run_mpi: Callable, on_nodes: Callable, programs: Path, part: str, setting: str) -> None:
    served, failed = 0, {"plain": [], "served": []}
    options, ranks_of_a_node = SETTINGS[setting]
    before = [on_nodes(ranks_of_a_node)] if ranks_of_a_node else []

    def passes(program: Path, ranks: int, arguments: list[str], preload: bool) -> bool:
        nonlocal served
        try:
            job = run_mpi(
                mpi,
                ranks,
                [*before, program, *arguments],
                {**options, "STRETTO_STATS": "text"} if preload else {},
                preload=preload,
                timeout=120,
                cwd=program.parent,
            )
        except JobTimeout:
            return False
        served += "stretto statistics" in job.stderr
        return job.returncode == 0 and re.search(r"^ *No Errors", job.stdout, re.MULTILINE) is not None

    known = {name for tag, parts in FAILS_PLAIN.items() if mpi.tag.startswith(tag) for name in parts.get(part, ())}
    known |= REFUSED.get(setting, {}).get(part, set())
    tests = [test for test in cases(programs, part) if test[0].name not in known]
    assert tests
    for test in tests:
        if passes(*test, preload=True):
            continue
        plain = passes(*test, preload=False)
        if plain and passes(*test, preload=True):
            continue
        failed["served" if plain else "plain"].append(" ".join([test[0].name, *test[2]]))
    name = f"failed-{mpi.tag}-{setting}-{part.replace('/', '-')}.json"
    (programs.parent / name).write_text(json.dumps({"mpi": mpi.title, "setting": setting, "part": part, **failed}))
    assert not failed["served"]
    assert served > 0 or part not in ("coll", "comm")
