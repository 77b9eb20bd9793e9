# SPDX-License-Identifier: BSD-3-Clause
"""What the parts of the demo have in common: a part prepares itself, runs, and says its verdict in one line."""

from __future__ import annotations

import os
import statistics
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto.bench.verdicts import of_ratios
from stretto.core.units import format_time
from stretto.mpi import Mpi

Panel = Callable[[Any], None]  # draws on the axes of matplotlib that it gets
GREY, GREEN, ORANGE = "#9aa5b1", "#2f7d4f", "#D55E00"


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
    arguments: tuple[str, ...] = ()  # of PageRank
    bench: bool = False


@dataclass
class Outcome:
    """What came of a part."""

    verdict: str
    colour: str
    details: list[str]
    data: dict[str, Any]
    panels: list[Panel]
    failed: bool = False  # results were wrong


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


def compare_pairs(what: str, without: list[float], with_it: list[float]) -> tuple[str, str, float]:
    """The line for runs in pairs, its colour, and the median of the ratios."""
    ratios = [ours / max(plain, 1e-9) for plain, ours in zip(without, with_it)]
    words, colour = of_ratios(ratios)
    times = [shown(statistics.median(each)) for each in (without, with_it)]
    return f"{what}: {times[0]} without Stretto, {times[1]} with: {words}", colour, statistics.median(ratios)


# ---- pictures ------------------------------------------------------------------------------------


def bars(axis: Any, title: str, columns: dict[str, list[float]], endless: tuple[str, ...] = ()) -> None:
    """A bar for the median of each list of seconds, and a dot for each run. Runs of `endless` were ended."""
    colours = [GREY, GREEN, ORANGE]
    for i, (name, seconds) in enumerate(columns.items()):
        middle = statistics.median(seconds)
        axis.bar(i, middle, 0.6, color=colours[i], hatch="//" if name in endless else None, edgecolor="white")
        axis.scatter([i] * len(seconds), seconds, s=8, color="#333333", zorder=3)
        label = f"more than {shown(middle)}" if name in endless else shown(middle)
        axis.annotate(label, (i, max(seconds)), (0, 3), textcoords="offset points", ha="center", fontsize=9)
    axis.set_xticks(range(len(columns)), list(columns))
    axis.set_ylabel("seconds")
    axis.margins(y=0.15)
    axis.set_title(title, fontsize=10)


def words(axis: Any, title: str, text: str) -> None:
    """A picture that is a text."""
    axis.axis("off")
    axis.set_title(title, fontsize=10)
    wrapped = "\n".join(textwrap.fill(line, 78, subsequent_indent="  ") for line in text.splitlines())
    axis.text(0.0, 0.95, wrapped, va="top", ha="left", fontsize=8, transform=axis.transAxes)


def draw(path: Path, title: str, panels: list[Panel]) -> None:
    """One picture of all parts."""
    import matplotlib

    from stretto.core.plots import save

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(6 * columns, 4 * rows + 0.5), squeeze=False)
    for axis in list(axes.flat)[len(panels) :]:
        axis.axis("off")
    for axis, panel in zip(axes.flat, panels):
        panel(axis)
    figure.text(0.5, 0.01, title, ha="center", fontsize=8, color="#555555")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)
