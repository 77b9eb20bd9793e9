# SPDX-License-Identifier: BSD-3-Clause
"""An entry of the suite: a figure or table of a paper, what it claims, and how it is repeated here.

Measuring keeps rows; panels and claims are made of the rows. So what was measured in time counts,
and so does what was measured until Ctrl-C.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from stretto.bench import program
from stretto.bench.figures import geomean
from stretto.cluster import prerequisites
from stretto.core import processors
from stretto.mpi import Mpi
from stretto.native.build import library_for

Row = dict[str, Any]
Rows = list[Row]
Keep = Callable[[Row], None]
Judge = Callable[[Rows], Optional[float]]  # the number beside a claim

# Whom a series is of: the style of its curve.
HERE, PAPER = "here", "paper"


@dataclass(frozen=True)
class Series:
    name: str
    points: list[tuple[float, float]]
    of: str = HERE


@dataclass(frozen=True)
class Axis:
    label: str
    scale: str = "linear"  # or "log2", "log10"
    unit: str = ""  # "bytes": sizes as 4K, 1M
    names: tuple[str, ...] = ()  # of the values 0, 1, ...: then points are not joined


@dataclass(frozen=True)
class Panel:
    """A plot with its data. A level is a value that the paper claims, from the first x to the
    second."""

    title: str
    x: Axis
    y: Axis
    series: list[Series]
    levels: list[tuple[str, float, tuple[float, float]]] = field(default_factory=list)
    baseline: float | None = None  # where both are equal
    note: str = ""

    def as_json(self) -> Row:
        return asdict(self)


@dataclass(frozen=True)
class Claim:
    """A number of the paper beside ours. `limit`: what counts as reached; None: nothing does."""

    what: str
    paper: str
    here: Judge
    limit: float | None = None
    at_least: bool = False

    def judged(self, rows: Rows) -> Row:
        value = self.here(rows) if rows else None
        reached = None
        if value is not None and self.limit is not None:
            reached = value >= self.limit if self.at_least else value <= self.limit
        return {"what": self.what, "paper": self.paper, "here": value, "reached": reached}


class Site:
    """What there is to measure on."""

    def __init__(self, mpi: Mpi | None, no_mpi: str = "") -> None:
        self._mpi, self._no_mpi = mpi, no_mpi

    @property
    def has_mpi(self) -> bool:
        return self._mpi is not None

    @property
    def mpi(self) -> Mpi:
        assert self._mpi
        return self._mpi

    @functools.cached_property
    def topology(self) -> processors.Topology:
        return processors.read()

    @property
    def cores(self) -> int:
        return len(self.topology.cores())

    @functools.cached_property
    def no_cluster(self) -> str | None:
        return prerequisites.why_not()

    def why_not(self, needs: Sequence[str]) -> str | None:
        """What is missing of `mpi` and `cluster`; None: nothing."""
        if "mpi" in needs and not self._mpi:
            return self._no_mpi
        return self.no_cluster if "cluster" in needs else None

    def build(self, *names: str) -> None:
        """Builds programs for the MPI, and the library: no time of a measurement goes there."""
        for name in names:
            program.program(self.mpi, name)
        library_for(self.mpi.abi)


@dataclass(frozen=True)
class Entry:
    name: str  # as of --only: s1-figure-2
    paper: str  # a key of PAPERS
    title: str
    shows: str  # what is drawn or listed, over what
    theirs: str  # ranks, machine, method of the paper
    here: Callable[[Site], str]  # the same of this run
    claims: tuple[Claim, ...]
    seconds: float  # its part of the default budget
    needs: tuple[str, ...]
    prepare: Callable[[Site], object]
    measure: Callable[[Site, float, Keep], None]  # the seconds that it should take
    panels: Callable[[Rows], list[Panel]]

    def facts(self) -> Row:
        """What is known of it before anything is measured."""
        return {key: getattr(self, key) for key in ("name", "paper", "title", "shows", "theirs")}


def mean_ratio(rows: Rows, key: str = "ratio", **wanted: Any) -> float | None:
    """The geometric mean of a ratio over the rows with these values. A wanted pair is a range."""

    def fits(row: Row) -> bool:
        return all(
            value[0] <= row[name] <= value[1] if isinstance(value, tuple) else row[name] == value
            for name, value in wanted.items()
        )

    values = [row[key] for row in rows if fits(row) and row[key] is not None]
    return geomean(values) if values else None


def curves(rows: Rows, name: Callable[[Row], str], x: str, y: str) -> list[Series]:
    """A series for each name, in the order of the rows."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row[y] is not None:
            found.setdefault(name(row), []).append((row[x], row[y]))
    return [Series(each, sorted(points)) for each, points in found.items()]
