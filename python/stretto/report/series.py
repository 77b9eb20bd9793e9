# SPDX-License-Identifier: BSD-3-Clause
"""Runs of a program beside each other: what they took, and what of the latest is slower than before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.report.figures import OTHERS, Figures, figures

Row = dict[str, Any]
SLOWER = 1.05  # times as long as the slowest run before
LITTLE = 0.002  # part of a run: less is not named


@dataclass
class Run:
    name: str  # of its file
    figures: Figures

    @property
    def ended(self) -> int:
        """Seconds since 1970."""
        return self.figures.stats.get("ended_s") or 0


@dataclass
class Change:
    """Something of the latest run that is slower than it was in each run before."""

    what: str  # "whole run", a collective, or a place in the program
    op: str | None  # the collective
    before: tuple[float, float]  # seconds of the mean rank: least and most of the runs before
    now: float

    @property
    def lost(self) -> float:
        """Seconds of the mean rank, at least."""
        return self.now - self.before[1]

    @property
    def ratio(self) -> float | None:
        """Times as long as in the slowest run before. None: it was not there."""
        return self.now / self.before[1] if self.before[1] else None


Slower = dict[str, list[Change]]  # by kind: parts of the run, collectives, places


def in_order(named: Iterable[tuple[Path, Row]]) -> list[Run]:
    """Runs in the order in which they ended. Those of one second stay in the order of their files."""
    return sorted((Run(path.stem, figures(stats)) for path, stats in named), key=lambda run: run.ended)


def differences(runs: Sequence[Run]) -> list[str]:
    """What makes the comparison of the latest run with those before doubtful."""
    latest = runs[-1].figures
    found = []
    for what, value in (
        ("ranks", lambda run: run.ranks),
        ("command", lambda run: run.command),
        ("MPI", lambda run: run.stats.get("mpi")),
        ("Stretto", lambda run: run.stats.get("stretto")),
        ("hosts", lambda run: ", ".join(sorted(run.hosts))),
        ("options", options),
    ):
        others = sorted({str(value(run.figures)) for run in runs[:-1]} - {str(value(latest))})
        if others:
            found.append(f"{what}: {value(latest)} in the latest, {' or '.join(others)} before")
    return found


def options(run: Figures) -> str:
    """The options that were set, except where statistics went."""
    kept = (o for o in run.stats.get("options", []) if o["name"] not in ("STRETTO_STATS",))
    return " ".join(sorted(f"{o['name']}={o['value']}" for o in kept)) or "none"


def _collectives(run: Figures) -> dict[tuple[str, str | None], float]:
    return {(op.name, op.name): op.seconds / run.ranks for op in run.operations}


def _places(run: Figures) -> dict[tuple[str, str | None], float]:
    return {(place.short, place.op): place.seconds / run.ranks for place in run.places}


def _whole(run: Figures) -> dict[tuple[str, str | None], float]:
    parts: dict[tuple[str, str | None], float] = {
        ("whole run", None): run.share.run,
        ("outside collectives", None): run.share.outside,
        ("collectives", None): run.share.calls,
    }
    parts |= {(OTHERS[kind], None): seconds for kind, seconds in run.share.others.items() if kind in OTHERS}
    if run.share.waiting is not None:
        parts |= {("waiting in collectives", None): run.share.waiting, ("moving data", None): run.share.moving}
    return parts


def slower(runs: Sequence[Run]) -> Slower:
    """By kind, what takes the latest run longer than each one before, the greatest loss first."""
    *before, latest = [run.figures for run in runs]
    found = {}
    for kind, parts in (("parts", _whole), ("collectives", _collectives), ("places", _places)):
        old = [parts(run) for run in before]
        changes = []
        for (what, op), now in parts(latest).items():
            times = [each[what, op] for each in old if (what, op) in each]
            change = Change(what, op, (min(times, default=0.0), max(times, default=0.0)), now)
            if now > SLOWER * change.before[1] and change.lost > LITTLE * latest.share.run:
                changes.append(change)
        found[kind] = sorted(changes, key=lambda change: -change.lost)
    return found
