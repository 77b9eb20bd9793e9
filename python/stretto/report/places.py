# SPDX-License-Identifier: BSD-3-Clause
"""Places in the program that call collectives, over all ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stretto.core import source_lines

Row = dict[str, Any]
UNKNOWN = "an unknown place"


@dataclass
class Place:
    op: str
    at: str  # `step.c:33 in step`, or an address
    calls: int = 0  # of all ranks, as everything below
    by_host: int = 0
    bytes: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    longest_rank: int = 0
    waiting: float | None = None
    by_rank: dict[int, float] = field(default_factory=dict)  # seconds
    caused: dict[int, float] = field(default_factory=dict)  # seconds that others waited for a rank here
    is_estimated: bool = False  # of a line behind a binding only some calls were looked at

    @property
    def short(self) -> str:
        """Without the directories of a file that has no line of source."""
        return self.at.rpartition("/")[2] if source_lines.PLACE.match(self.at) else self.at


def _spread(sites: list[Row]) -> list[Row]:
    """Sites of a rank, where the lines behind a binding share what the binding has counted."""
    behind: dict[int, list[Row]] = {}
    for site in sites:
        if "behind" in site:
            behind.setdefault(site["behind"], []).append(site)
    found = []
    for site in sites:
        lines = behind.get(site["site"], [])
        whole = sum(line["ns"] for line in lines)
        if "behind" in site:
            continue
        if not whole:
            found.append(site)
            continue
        calls = sum(line["calls"] for line in lines)
        for line in lines:
            part, part_of_calls = line["ns"] / whole, line["calls"] / calls
            found.append(
                {
                    **line,
                    "calls": round(site["calls"] * part_of_calls),
                    "host": round(site["host"] * part_of_calls),
                    "bytes": round(site["bytes"] * part_of_calls),
                    "ns": site["ns"] * part,
                    "is_estimated": calls < site["calls"],
                }
            )
    return found


def places_of(ranks: list[Row]) -> list[Place]:
    """All places, those that took most time first."""
    resolver = source_lines.Resolver()
    found: dict[tuple[str, str], Place] = {}
    for rank in ranks:
        for site in _spread(rank.get("sites", [])):
            at = resolver.text(site["at"]) or UNKNOWN
            place = found.setdefault((site["op"], at), Place(site["op"], at))
            seconds, longest = site["ns"] / 1e9, site["longest_ns"] / 1e9
            place.calls += site["calls"]
            place.by_host += site["host"]
            place.bytes += site["bytes"]
            place.seconds += seconds
            place.is_estimated |= site.get("is_estimated", False)
            if longest > place.longest:
                place.longest, place.longest_rank = longest, rank["rank"]
            place.by_rank[rank["rank"]] = place.by_rank.get(rank["rank"], 0.0) + seconds
            if site.get("compared_ns"):
                factor = seconds / (site["compared_ns"] / 1e9)
                place.waiting = (place.waiting or 0.0) + site["waiting_ns"] / 1e9 * factor
            if site.get("caused_ns"):
                calls = site["calls"] / site["compared_calls"] if site.get("compared_calls") else 1.0
                before = place.caused.get(rank["rank"], 0.0)
                place.caused[rank["rank"]] = before + site["caused_ns"] / 1e9 * calls
    return sorted(found.values(), key=lambda place: -place.seconds)
