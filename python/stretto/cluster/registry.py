# SPDX-License-Identifier: BSD-3-Clause
"""The clusters of this machine: their directories, their names, and taking one down."""

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
    """A cluster cannot be made, or does not exist."""


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """`up` and `down` of all clusters take turns, so that none sees a directory that is half made."""
    RUNTIME.mkdir(parents=True, exist_ok=True, mode=0o700)
    directory = os.open(RUNTIME, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def names() -> list[str]:
    """Names of clusters that are up, or have left files."""
    return sorted(path.name for path in RUNTIME.glob("*/") if path.is_dir())


def is_alive(name: str) -> bool:
    """Whether the fabric of a cluster runs."""
    try:
        return shell.first_process(RUNTIME / name, FABRIC) > 0
    except OSError:
        return False


def take_down(name: str) -> None:
    """Ends a cluster in any state."""
    with one_at_a_time():
        if not (RUNTIME / name).is_dir():
            raise ClusterError(f"there is no cluster {name}")
        end(name)


def end(name: str) -> None:
    """Kills the fabric and removes the directory."""
    with contextlib.suppress(OSError):
        watched = os.pidfd_open(shell.first_process(RUNTIME / name, FABRIC))
        try:
            signal.pidfd_send_signal(watched, signal.SIGKILL)
            select.select([watched], [], [], START_S)  # the fabric ends after all others in its namespace
        finally:
            os.close(watched)
    shutil.rmtree(RUNTIME / name)
