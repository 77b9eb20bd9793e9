# SPDX-License-Identifier: BSD-3-Clause
"""Where clusters keep their sockets and files, which clusters there are, and taking one away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

from stretto.cluster import shell

RUNTIME = Path("/run/stretto/clusters")
FABRIC = "fabric"
START_S = 20


class ClusterError(RuntimeError):
    """A cluster cannot be made, or there is none."""


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """`up` and `down` of all clusters take turns: none sees another's half-made directory."""
    RUNTIME.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory = os.open(RUNTIME, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def names() -> list[str]:
    """Clusters that are up, or have left something."""
    return sorted(path.name for path in RUNTIME.glob("*/") if path.is_dir())


def is_alive(name: str) -> bool:
    try:
        return shell.first_process(RUNTIME / name, FABRIC) > 0
    except OSError:
        return False


def take_down(name: str) -> None:
    """Whatever state it is in."""
    with one_at_a_time():
        if not (RUNTIME / name).is_dir():
            raise ClusterError(f"there is no cluster {name}")
        end(name)


def end(name: str) -> None:
    with contextlib.suppress(OSError):
        watched = os.pidfd_open(shell.first_process(RUNTIME / name, FABRIC))
        try:
            signal.pidfd_send_signal(watched, signal.SIGKILL)
            select.select([watched], [], [], START_S)  # it ends after all others in its namespace
        finally:
            os.close(watched)
    shutil.rmtree(RUNTIME / name)
