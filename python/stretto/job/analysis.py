# SPDX-License-Identifier: BSD-3-Clause
"""What a recorded job says of itself: its efficiencies, and which places in the program cost most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto.core import source_lines
from stretto.job import efficiencies, recordings
from stretto.job.efficiencies import Efficiencies


@dataclass(frozen=True)
class Analysis:
    summary: dict[str, Any]
    ideal: dict[str, Any]  # the replay on an ideal network
    efficiencies: Efficiencies
    resolver: source_lines.Resolver = field(default_factory=source_lines.Resolver)

    @property
    def ranks(self) -> list[dict[str, Any]]:
        return self.summary["ranks"]

    @property
    def whole(self) -> bool:
        """Whether all ranks have come to MPI_Finalize."""
        return all(rank["finished"] for rank in self.ranks)

    @property
    def lost_processor(self) -> float:
        """The part of all computation in which threads had no processor."""
        compute = sum(rank["compute"] for rank in self.ranks)
        return 1 - sum(rank["processor"] for rank in self.ranks) / compute if compute else 0

    def critical(self) -> list[dict[str, Any]]:
        """What is on the critical path of the ideal network, by rank and place, those with most first."""
        found: dict[tuple[int, str, str], dict[str, Any]] = {}
        for each in self.ideal["critical"]:
            where = self.line(each["place"])
            line = found.setdefault(
                (each["rank"], each["call"], where),
                {"rank": each["rank"], "call": each["call"], "place": where, "compute": 0.0, "in_call": 0.0},
            )
            for key in ("compute", "in_call"):
                line[key] += each[key]
        return sorted(found.values(), key=lambda line: line["compute"] + line["in_call"], reverse=True)

    def line(self, place: str) -> str:
        """A place in the program as a line of source, where its program is at hand."""
        return self.resolver.text(place) if source_lines.tool() else place

    def places(self) -> list[dict[str, Any]]:
        """Calls of the program, those that take most first, with lines of source."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for place in self.summary["places"]:
            where = self.line(place["place"])
            line = found.setdefault((place["call"], where), {"call": place["call"], "place": where, "longest": 0.0})
            for key in ("calls", "before", "in_calls"):
                line[key] = line.get(key, 0) + place[key]
            line["longest"] = max(line["longest"], place["longest"])
        taking = (line for line in found.values() if line["in_calls"] > 0)
        return sorted(taking, key=lambda line: line["in_calls"], reverse=True)


def analyse(files: Sequence[Path], critical: bool = False) -> Analysis:
    """Reads a job and replays it on an ideal network; with its critical path, which takes a second replay."""
    summary, ideal = recordings.summary(files), recordings.replay(files, ["--critical"] if critical else [])
    seconds = ideal["seconds"] if "failure" not in ideal else summary["seconds"]
    compute = [rank["compute"] for rank in summary["ranks"]]
    return Analysis(summary, ideal, efficiencies.of(summary["seconds"], min(seconds, summary["seconds"]), compute))
