# SPDX-License-Identifier: BSD-3-Clause
"""The clusters of this machine: their directories, their names, and taking one down."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stretto.cluster import shell
from stretto.cluster.prerequisites import is_root
from stretto.core.paths import NoPlace, own_temporary_directory

RUNTIME_OF_ROOT = Path("/run/stretto/clusters")
OF_USER = "stretto-clusters"  # in the directory of temporary files, with the user's number
FABRIC = "fabric"
START_S = 20


class ClusterError(RuntimeError):
    """A cluster cannot be made, or does not exist."""


def runtime() -> Path:
    """The directory of this user's clusters. It may not be there."""
    return RUNTIME_OF_ROOT if is_root() else Path(tempfile.gettempdir(), f"{OF_USER}-{os.getuid()}")


def _made_runtime() -> Path:
    if is_root():
        RUNTIME_OF_ROOT.mkdir(parents=True, exist_ok=True, mode=0o700)
        return RUNTIME_OF_ROOT
    try:
        return own_temporary_directory(OF_USER)
    except NoPlace as error:
        raise ClusterError(str(error)) from None


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """`up` and `down` of all clusters take turns, so that none sees a directory that is half made.
    The last one takes the directory of clusters away."""
    directory = _lock_of_directory()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # there are clusters
            runtime().rmdir()
        os.close(directory)


def _lock_of_directory() -> int:
    """The descriptor of the directory of clusters, which this process has locked."""
    while True:
        directory = os.open(_made_runtime(), os.O_RDONLY)
        fcntl.flock(directory, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(directory), runtime().stat()):
                return directory
        os.close(directory)  # who had the lock has removed it


def names() -> list[str]:
    """Names of clusters that are up, or have left files."""
    return sorted(path.name for path in runtime().glob("*/") if path.is_dir())


def is_alive(name: str) -> bool:
    """Whether the fabric of a cluster runs."""
    try:
        return shell.first_process(runtime() / name, FABRIC) > 0
    except OSError:
        return False


def dead_names() -> list[str]:
    """Names of clusters that have left files only. The caller is inside `one_at_a_time`: a cluster
    that is being made has no fabric yet."""
    return [name for name in names() if not is_alive(name)]


def remove_dead(dry_run: bool = False) -> list[str]:
    """Removes the files of dead clusters, and returns the clusters' names."""
    if not names():
        return []
    with one_at_a_time():
        dead = dead_names()
        for name in () if dry_run else dead:
            end(name)
    return dead


def take_down(name: str) -> None:
    """Ends a cluster in any state."""
    with one_at_a_time():
        if not (runtime() / name).is_dir():
            raise ClusterError(f"there is no cluster {name}")
        end(name)


def end(name: str) -> None:
    """Kills the fabric and removes the directory."""
    with contextlib.suppress(OSError):
        watched = os.pidfd_open(shell.first_process(runtime() / name, FABRIC))
        try:
            signal.pidfd_send_signal(watched, signal.SIGKILL)
            select.select([watched], [], [], START_S)  # the fabric ends after all others in its namespace
        finally:
            os.close(watched)
    shutil.rmtree(runtime() / name)
