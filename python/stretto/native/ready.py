# SPDX-License-Identifier: BSD-3-Clause
"""Libraries and programs that an earlier build has left.

They serve where building is no choice: without a compiler, in a batch job, and for users of a
checkout that somebody else has built.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from stretto.core import batch
from stretto.core.console import complain
from stretto.core.paths import build_root, is_checkout, root
from stretto.native import packages

INPUTS = ("CMakeLists.txt", "cmake", "include", "src", "tools")  # of what commands use
BUILD_CPU_S = 240  # that one library and the core take, in round numbers


def instead_of_building(targets: Sequence[str]) -> Path | None:
    """The folder of these targets, if they are there and are not to be built anew."""
    folder = found(targets)
    if folder is None or packages.missing("build"):
        return folder
    if folder == build_root() / "release" and not batch.job():
        return None
    if is_older(folder, targets):
        _say_older(folder)
    return folder


def found(targets: Sequence[str]) -> Path | None:
    """The folder with all these targets: this user's build, or that of the checkout."""
    for folder in dict.fromkeys(_folders()):
        if targets and all(any((folder / name).is_file() for name in (t, f"lib{t}.so", f"lib{t}.a")) for t in targets):
            return folder
    return None


def _folders() -> Iterator[Path]:
    yield build_root() / "release"
    if is_checkout():
        yield root() / "build/release"


@functools.cache
def announce(targets: tuple[str, ...]) -> None:
    """Says in a batch job that something is built in its time."""
    if not (job := batch.job()):
        return
    processors = len(os.sched_getaffinity(0))
    minutes = max(1, round(BUILD_CPU_S / processors / 60))
    complain(
        f"{job} builds {', '.join(targets) or 'everything'} first, which may take {minutes} min on {processors} "
        "processors; to avoid that, run the same command, or `stretto env --library`, before the job where there "
        "is a compiler"
    )


# ---- whether sources are newer -------------------------------------------------------------------


def note_built(folder: Path, targets: Sequence[str], begin: float) -> None:
    """Remembers that these targets are as new as the sources were at this time."""
    for target in targets or ("all",):
        mark = _mark(folder, target)
        mark.parent.mkdir(exist_ok=True)
        mark.touch()
        os.utime(mark, (begin, begin))


def is_older(folder: Path, targets: Sequence[str]) -> bool:
    """Whether a source has changed since these targets were built."""
    newest = max((path.stat().st_mtime for path in _sources()), default=0.0)
    return any(newest > max(map(_time, (_mark(folder, target), _mark(folder, "all")))) for target in targets)


def _mark(folder: Path, target: str) -> Path:
    return folder / "built" / target


def _time(mark: Path) -> float:
    return mark.stat().st_mtime if mark.exists() else 0.0


def _sources() -> Iterator[Path]:
    for name in INPUTS:
        place = root() / name
        yield from (path for path in (place, *place.rglob("*")) if path.is_file())


@functools.cache
def _say_older(folder: Path) -> None:
    complain(
        f"what is in {folder} is older than its sources, and is used; `stretto env --library` outside of jobs "
        "builds it anew"
    )
