# SPDX-License-Identifier: BSD-3-Clause
"""What calls that return early (STRETTO_OVERLAP) could hide at most in a recorded job, before it is switched on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stretto.core import early
from stretto.core.units import format_size
from stretto.job import recordings
from stretto.report.drawings import format_seconds

REASONS = {
    "one_node": "its ranks are on one node",
    "short": f"a rank receives less than {format_size(early.USUAL)}",
    "never": "such calls never return early",
}


@dataclass
class Site:
    """Blocking collectives of a place (tools/model/job_early.hpp). Seconds are of the rank that has most."""

    call: str
    place: str
    calls: int  # of all ranks
    early: int  # of these, those that may return early
    why: str  # others do not: a key of REASONS, or empty
    in_calls_s: float
    moving_s: float  # of those that may: from when all had come until the rank left
    computing_s: float  # and from there until its next call
    hidden_at_most_s: float

    @property
    def name(self) -> str:
        return f"{self.call} at {self.place}" if self.place else self.call

    @property
    def reason(self) -> str:
        """Why nothing hides. Empty: something may."""
        return "" if self.early else REASONS.get(self.why, "")


@dataclass(frozen=True)
class Hiding:
    seconds: float  # of the run
    nodes: int
    hidden_s: float  # at most, of the rank of which most is hidden
    sites: list[Site]  # those that hide most first

    @property
    def part(self) -> float:
        return self._part(self.hidden_s)

    def _part(self, seconds: float) -> float:
        return seconds / self.seconds if self.seconds else 0.0

    def shown(self) -> list[Site]:
        """Sites that may hide something, or take time and hide nothing."""
        return [site for site in self.sites if site.early or self._part(site.in_calls_s) >= early.WORTH]

    def advice(self) -> str:
        if self.part < early.WORTH:
            return early.gains_nothing(self._why_nothing())
        most = [site for site in self.sites[: early.MOST_NAMED] if self._part(site.hidden_at_most_s) >= early.WORTH]
        named = ", ".join(f"{site.name} {self._part(site.hidden_at_most_s):.1%}" for site in most)
        return early.could_hide(f"{self.part:.1%}", f": {named}")

    def _why_nothing(self) -> str:
        if self.nodes < 2:
            return "all ranks are on one node"
        if not self.sites:
            return "there are no blocking collectives"
        site = max(self.sites, key=lambda site: (site.moving_s, site.in_calls_s))
        if reason := site.reason:
            return f"{site.name}: {reason}"
        moving, computing = format_seconds(site.moving_s), format_seconds(site.computing_s)
        return f"{site.name} moves data for {moving}, and the next calls come after computing for {computing}"

    def json(self) -> dict[str, Any]:
        sites = [asdict(site) for site in self.shown()]
        return {"hidden_at_most_s": self.hidden_s, "part": self.part, "advice": self.advice(), "sites": sites}


def of(files: Sequence[Path], line: Callable[[str], str], words: Iterable[str] = ()) -> Hiding:
    """`line`: of a place in the program. `words`: where ranks are; without them on the hosts of the recording."""
    found = json.loads(recordings.ask("early", [*words, "--", *files]))
    sites: dict[tuple[str, str], Site] = {}
    for each in found["sites"]:
        times = [each[name] for name in ("in_calls", "moving", "computing", "hidden")]
        site = Site(each["call"], line(each["place"]), each["calls"], each["early"], each["why"], *times)
        before = sites.setdefault((site.call, site.place), site)
        if before is not site:
            _add(before, site)
    in_order = sorted(sites.values(), key=lambda site: (site.hidden_at_most_s, site.in_calls_s), reverse=True)
    return Hiding(found["seconds"], found["nodes"], found["hidden"], in_order)


def _add(to: Site, more: Site) -> None:
    """Another place of the same line."""
    to.why = to.why or more.why
    for name in ("calls", "early", "in_calls_s", "moving_s", "computing_s", "hidden_at_most_s"):
        setattr(to, name, getattr(to, name) + getattr(more, name))
