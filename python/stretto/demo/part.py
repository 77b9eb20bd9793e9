# SPDX-License-Identifier: BSD-3-Clause
"""What the parts of the demo have in common: a part prepares itself, runs, and says in one line what came of it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stretto.bench.verdicts import of_ratios
from stretto.core.units import format_time
from stretto.demo.pictures import Panel
from stretto.mpi import Mpi


QUIET = 0.15  # a greater share of the processors for other programs changes times


class Skip(Exception):
    """A part cannot run here. The text is the reason."""


class Broken(Skip):
    """A program of this part failed, and has said why."""


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    mpi: Mpi
    ranks: int
    repeat: int
    found: list[Mpi] = field(default_factory=list)
    fetched: Callable[[], Mpi] | None = None  # the MPICH that PyPI has, for a machine without one
    arguments: tuple[str, ...] = ()  # of PageRank
    bench: bool = False


@dataclass
class Outcome:
    """What came of a part."""

    seen: str
    colour: str
    details: list[str]
    data: dict[str, Any]
    panels: list[Panel]
    gain: str = ""  # what the times say; it is told only where nothing else runs
    counted: str = ""  # what holds beside other programs, too
    failed: bool = False  # results were wrong

    def verdict(self, others: float) -> str:
        """The line of this part. `others`: the share of the processors that other programs take."""
        said = f": {busy(others) if others > QUIET else self.gain}" if self.gain else ""
        return f"{self.seen}{said}{self.counted and '; '}{self.counted}"


@dataclass(frozen=True)
class Part:
    name: str
    about: str
    seconds: float  # that it may take, without what it builds
    prepare: Callable[[Request], Any]
    run: Callable[[Request, Any, Clock], Outcome]


class Clock:
    """The time that a part has."""

    def __init__(self, seconds: float) -> None:
        self.begin, self.seconds = time.monotonic(), seconds

    @property
    def left(self) -> float:
        return self.begin + self.seconds - time.monotonic()


# ---- verdicts ------------------------------------------------------------------------------------


def shown(seconds: float) -> str:
    return format_time(1e9 * seconds)


def describe(job: str, mpi: Mpi, ranks: int) -> str:
    cpus = len(os.sched_getaffinity(0))
    return f"{job}; {ranks} ranks on {cpus} processor{'s'[: cpus != 1]}, {mpi.title}"


def medians(pairs: int) -> str:
    return f"medians of {pairs} pairs of runs" if pairs > 1 else "one run of each"


def busy(others: float) -> str:
    return f"other programs take {100 * others:.0f}% of the processors, so these times say little"


def compare_pairs(what: str, without: list[float], with_it: list[float]) -> tuple[str, str, str, float]:
    """What was seen in runs in pairs, what it says, its colour, and the median of the ratios."""
    ratios = [ours / max(plain, 1e-9) for plain, ours in zip(without, with_it)]
    gain, colour = of_ratios(ratios)
    times = [shown(statistics.median(each)) for each in (without, with_it)]
    return f"{what}: {times[0]} without Stretto, {times[1]} with", gain, colour, statistics.median(ratios)
