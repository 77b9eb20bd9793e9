# SPDX-License-Identifier: BSD-3-Clause
"""The processes of a job under test: which are running, what they have mapped, where they are, and their end.

Every job carries a token in its environment. Launchers put ranks into process groups of their own.
So the token, not a group, tells which processes belong to the job, and whether any outlived it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

TOKEN = "MPI_TEST_JOB"


def processes_of(token: str) -> list[int]:
    """Processes of the job `token` that are still running."""
    mark = f"{TOKEN}={token}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def end_processes(token: str) -> list[str]:
    """Kills every process of the job by its id. Returns what it killed."""
    named: list[str] = []
    for _ in range(5):
        pids = processes_of(token)
        if not pids:
            break
        for pid in pids:
            with contextlib.suppress(OSError):
                name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                named.append(f"{pid}: {name.strip()}")
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    return named


def segments_of(token: str) -> set[Path]:
    """Files of /dev/shm that the job's processes have mapped."""
    found: set[str] = set()
    for pid in processes_of(token):
        with contextlib.suppress(OSError):  # it has ended
            found |= set(re.findall(r" (/dev/shm/\S+)$", Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE))
    return {Path(path) for path in found}


def hear_ctrl_c() -> None:
    """In a new process: Ctrl-C is heard, although a shell that runs us in the background has it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ranks_of(token: str) -> dict[int, str]:
    """The job's processes that are neither launchers nor shells, and the names of their programs."""
    ranks = {}
    for pid in processes_of(token):
        with contextlib.suppress(OSError):
            exe = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            if not re.search(r"mpiexec|mpirun|orte|prte|hydra|bash|dash", exe):
                ranks[pid] = exe
    return ranks


def stacks_of(token: str, limit: int = 8) -> str:
    """The stacks of the ranks of a hanging job, or no text if gdb is not installed."""
    gdb = shutil.which("gdb")
    if gdb is None:
        return ""
    texts = []
    for pid, exe in ranks_of(token).items():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            shown = subprocess.run(
                [gdb, "-p", str(pid), "-batch", "-nx", "-ex", "set pagination off", "-ex", "thread apply all bt 14"],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            ).stdout
            frames = [line[:200] for line in shown.splitlines() if line.startswith(("#", "Thread"))]
            texts.append(f"{exe} {pid}:\n" + "\n".join(frames[:60]))
        if len(texts) == limit:
            break
    return "\n".join(texts)
