# SPDX-License-Identifier: BSD-3-Clause
"""What Stretto and its jobs leave on a machine, and what of it is still in use."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stretto.core import paths

# Segments of MPIs, whose jobs leave them behind if they are killed.
SEGMENTS = re.compile(r"(vader_segment|sm_segment|smcuda_segment|psm2_shm|mpich_shar_tmp|mpich_\d|Intel_MPI_)")
SHARED = Path("/dev/shm")
TEMPORARY = re.compile(r"stretto-(demo|doctor|install|simulated)-\w+")
FIRST_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO of the kernel
YOUNG_S = 120  # a job that starts makes a segment before it maps it


@dataclass(frozen=True)
class Leftover:
    what: str
    path: Path
    user: int | None  # a process that uses it

    def bytes(self) -> int:
        return sum(file.lstat().st_blocks * 512 for file in (self.path, *_below(self.path)))


def leftovers() -> list[Leftover]:
    """All that belongs to this user."""
    used = _in_use()
    return [Leftover(what, path, _user_of(path, used)) for what, path in _candidates()]


def _candidates() -> Iterator[tuple[str, Path]]:
    build, cache = paths.build_root(), paths.user_cache()
    own = [("build directory", build), ("MPIs from PyPI", paths.cache_root() / "mpi")]
    for what, path in own:
        # A link leads to what another checkout has.
        if path.is_dir() and path == path.parent.resolve() / path.name and not path.is_relative_to(cache):
            yield what, path
    if cache.is_dir():
        yield from (("cache", path) for path in sorted(cache.iterdir()) if not _runs_from(path))
    temporary = Path(tempfile.gettempdir())
    links = temporary / f"stretto-{os.getuid()}"
    if links.is_dir() and _is_ours(links):
        yield "links to libraries", links
    for path in sorted(temporary.iterdir()):
        if TEMPORARY.fullmatch(path.name) and _is_ours(path) and _is_old(path):
            yield "files of an interrupted command", path
    for path in sorted(SHARED.iterdir()) if SHARED.is_dir() and sees_all() else ():
        if SEGMENTS.match(path.name) and _is_ours(path) and _is_old(path):
            yield "shared memory of a job", path


def sees_all() -> bool:
    """Whether /proc shows all processes that may share this machine's memory: not in a container,
    which other containers may share /dev/shm with."""
    return os.readlink("/proc/self/ns/pid") == f"pid:[{FIRST_PID_NAMESPACE}]"


def _runs_from(path: Path) -> bool:
    """Whether the tool itself is installed below."""
    return any(Path(place).is_relative_to(path) for place in (sys.prefix, __file__))


def _is_ours(path: Path) -> bool:
    return not path.is_symlink() and path.lstat().st_uid == os.getuid()


def _is_old(path: Path) -> bool:
    return time.time() - path.lstat().st_mtime > YOUNG_S


def _below(path: Path) -> Iterable[Path]:
    return path.rglob("*") if path.is_dir() else ()


# ---- who uses it ---------------------------------------------------------------------------------


def _in_use() -> dict[str, int]:
    """Files and directories that processes run, have mapped, have open or are in; of those processes
    that this user may look at."""
    used: dict[str, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            used.update(dict.fromkeys(_files_of(entry), int(entry.name)))
    return used


def _files_of(process: Path) -> set[str]:
    found: set[str] = set()
    try:
        text = (process / "maps").read_text(errors="replace")
        found.update(re.findall(r"\s(/[^\n]+)$", text, re.MULTILINE))
    except OSError:  # it has ended, or belongs to somebody else
        return found
    for link in (process / "exe", process / "cwd", *_open_files(process)):
        try:
            found.add(os.readlink(link))
        except OSError:
            pass
    return found


def _open_files(process: Path) -> list[Path]:
    try:
        return list((process / "fd").iterdir())
    except OSError:
        return []


def _user_of(path: Path, used: dict[str, int]) -> int | None:
    real = os.path.realpath(path)
    return next((pid for name, pid in used.items() if name == real or name.startswith(real + "/")), None)
