# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a run, from the statistics that the library wrote (docs/statistics.md)."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto.core.console import fail
from stretto.core.reports import SCHEMAS, read_json
from stretto.report.places import Place, places_of

Row = dict[str, Any]
BINS = 200
# Calls of MPI that are no collectives, by the keys of `other_calls` (docs/statistics.md).
OTHERS = {
    "messages": "messages and waits",
    "one_sided": "one-sided calls",
    "files": "files (MPI-IO)",
    "communicators": "making communicators",
}
NOTHING: Row = {"run_ns": 0, "in_calls_ns": 0, "communicators": [], "freed": []}  # is known of a rank


@dataclass
class Share:
    """Seconds of the mean rank. `waiting` None: not known."""

    run: float = 0.0
    calls: float = 0.0
    waiting: float | None = None
    others: dict[str, float] = field(default_factory=dict)  # in other calls, by a key of OTHERS

    @property
    def outside(self) -> float:
        return max(self.run - self.calls, 0.0)

    @property
    def rest(self) -> float:
        """Outside of all calls that were timed."""
        return max(self.outside - sum(self.others.values()), 0.0)

    @property
    def moving(self) -> float:
        return max(self.calls - (self.waiting or 0.0), 0.0)

    @property
    def part(self) -> float:
        return self.calls / self.run if self.run else 0.0

    @property
    def waiting_part(self) -> float:
        return (self.waiting or 0.0) / self.calls if self.calls else 0.0


@dataclass
class Operation:
    name: str
    calls: int  # of all ranks, as everything below
    by_host: int
    bytes: int
    seconds: float
    waiting: float | None
    least: tuple[int, float]
    most: tuple[int, float]


@dataclass
class Late:
    """A rank that others waited for."""

    rank: int
    seconds: float  # of all ranks together
    part: float  # of all waiting
    calls: int
    places: list[Place] = field(default_factory=list)  # where it came late, the worst first


@dataclass
class Figures:
    stats: Row
    ranks: int
    share: Share
    per_rank: list[Share]
    operations: list[Operation]
    places: list[Place]
    late: list[Late]
    waited: dict[tuple[int, int], float]  # seconds by rank that waits and rank that it waited for
    sizes: dict[str, dict[int, tuple[int, float]]]  # calls and seconds by collective and least size
    time: list[tuple[float, float]]  # parts in which the mean rank moved data, and waited
    bin_seconds: float
    hosts: dict[str, list[Row]]
    left: list[Row]
    compared: tuple[int, int]  # calls whose arrivals were compared, of all

    @property
    def command(self) -> str:
        return self.stats.get("command") or "a program"


def read(path: Path) -> Row:
    """The statistics in a file. Fails if it has others."""
    stats = read_json(path)
    schema = stats.get("schema") if isinstance(stats, dict) else None
    if schema != f"stretto.stats/{SCHEMAS['stats']}":
        fail(f"{path}: no statistics of Stretto; STRETTO_STATS=json:FILE, or `stretto run --json FILE`, writes them")
    ranks = stats.get("per_rank") or []
    if not ranks or any("run_ns" not in rank for rank in ranks):
        fail(f"{path}: an older Stretto ({stats.get('stretto', '?')}) wrote it, which measured too little for a report")
    return stats


def counts_by_op(rank: Row) -> dict[str, Row]:
    """Calls by collective and path, over all communicators of a rank."""
    found: dict[str, Row] = {}
    for comm in [*rank["communicators"], *rank["freed"], {"collectives": rank.get("collectives", {})}]:
        for op, counts in comm["collectives"].items():
            sums = found.setdefault(op, {"calls": defaultdict(int), "bytes": 0, "ns": 0})
            for path, calls in counts["calls"].items():
                sums["calls"][path] += calls
            sums["bytes"] += counts["bytes"]
            sums["ns"] += counts["ns"]
    return found


def share_of(rank: Row) -> Share:
    waiting = rank.get("waiting_ns")
    others = {kind: counts["ns"] / 1e9 for kind, counts in rank.get("other_calls", {}).items() if counts["calls"]}
    return Share(rank["run_ns"] / 1e9, rank["in_calls_ns"] / 1e9, None if waiting is None else waiting / 1e9, others)


def mean(shares: list[Share]) -> Share:
    """Ranks of which nothing is known have no run."""
    shares = [share for share in shares if share.run] or shares
    known = [s.waiting for s in shares if s.waiting is not None]
    count = len(shares)
    waiting = sum(known) / count if known else None
    others = {kind: sum(s.others.get(kind, 0.0) for s in shares) / count for s in shares for kind in s.others}
    return Share(sum(s.run for s in shares) / count, sum(s.calls for s in shares) / count, waiting, others)


def waiting_of(rank: Row, op: str, ns: int) -> float | None:
    """Seconds that a rank waited in a collective: the calls that were compared stand for all."""
    compared = rank.get("compared", {}).get(op)
    return ns / 1e9 * compared["waiting_ns"] / compared["ns"] if compared and compared["ns"] else None


def operations_of(ranks: list[Row]) -> list[Operation]:
    counts = {rank["rank"]: counts_by_op(rank) for rank in ranks}
    found = []
    for op in sorted({op for each in counts.values() for op in each}):
        rows = {rank: each[op] for rank, each in counts.items() if op in each}
        times = {rank["rank"]: counts[rank["rank"]].get(op, {"ns": 0})["ns"] / 1e9 for rank in ranks}
        waits = [waiting_of(rank, op, rows[rank["rank"]]["ns"]) for rank in ranks if rank["rank"] in rows]
        known = [w for w in waits if w is not None]
        found.append(
            Operation(
                op,
                sum(sum(row["calls"].values()) for row in rows.values()),
                sum(row["calls"]["host"] for row in rows.values()),
                sum(row["bytes"] for row in rows.values()),
                sum(times.values()),
                sum(known) if known else None,
                min(times.items(), key=lambda item: item[1]),
                max(times.items(), key=lambda item: item[1]),
            )
        )
    return sorted(found, key=lambda operation: -operation.seconds)


def late_ranks(ranks: list[Row], places: list[Place]) -> list[Late]:
    whole = sum(rank.get("caused_ns", 0) for rank in ranks)
    found = []
    for rank in ranks:
        if not rank.get("caused_ns"):
            continue
        at = sorted(places, key=lambda place: -place.caused.get(rank["rank"], 0.0))
        at = [place for place in at if place.caused.get(rank["rank"], 0.0) > 0]
        caused = rank["caused_ns"]
        found.append(Late(rank["rank"], caused / 1e9, caused / whole, rank["late_calls"], at[:3]))
    return sorted(found, key=lambda late: -late.seconds)


def scale_late(late: list[Late], waited: dict[tuple[int, int], float], seconds: float) -> None:
    """What was seen of some calls, as seconds of all calls."""
    seen = sum(each.seconds for each in late)
    factor = seconds / seen if seen else 0.0
    for each in late:
        each.seconds *= factor
        each.calls = round(each.calls * max(factor, 1.0)) if factor > 1.05 else each.calls
    for pair in waited:
        waited[pair] *= factor


def sizes_of(ranks: list[Row]) -> dict[str, dict[int, tuple[int, float]]]:
    found: dict[str, dict[int, tuple[int, float]]] = {}
    for rank in ranks:
        for op, sizes in rank.get("sizes", {}).items():
            if op == "barrier":
                continue
            sums = found.setdefault(op, {})
            for least, calls, ns in sizes:
                before = sums.get(least, (0, 0.0))
                sums[least] = (before[0] + calls, before[1] + ns / 1e9)
    return found


def binned(timeline: Row, key: str, bin_ns: int) -> list[float]:
    """A rank's seconds in bins of another, longer length."""
    bins = [0.0] * BINS
    for i, ns in enumerate(timeline.get(key, [])):
        at = i * timeline["bin_ns"] // bin_ns
        if at < BINS:
            bins[at] += ns / 1e9
    return bins


def time_of(ranks: list[Row]) -> tuple[list[tuple[float, float]], float]:
    """Parts of the mean rank's time by bin: in which it moved data, and in which it waited."""
    lines = [rank["timeline"] for rank in ranks if "timeline" in rank]
    if not lines:
        return [], 0.0
    waits = [rank.get("compared_timeline", {"bin_ns": 1}) for rank in ranks]
    bin_ns = max(line["bin_ns"] for line in lines + waits)
    run_ns = max(rank["run_ns"] for rank in ranks)
    count = min(max(math.ceil(run_ns / bin_ns), 1), BINS)

    def sums(parts: list[Row], key: str) -> list[float]:
        return [sum(column) for column in zip(*(binned(part, key, bin_ns) for part in parts))]

    inside, compared, waiting = sums(lines, "in_call_ns"), sums(waits, "compared_ns"), sums(waits, "waiting_ns")
    found = []
    for i in range(count):
        length = min(bin_ns, run_ns - i * bin_ns) / 1e9 * len(ranks)
        whole = min(inside[i] / length, 1.0) if length > 0 else 0.0
        wait = whole * min(waiting[i] / compared[i], 1.0) if compared[i] else 0.0
        found.append((whole - wait, wait))
    return found, bin_ns / 1e9


def left_to_mpi(ranks: list[Row]) -> list[Row]:
    """What the MPI served, by reason. The reason of calls before an agreement is that of their communicator."""
    found: dict[str, Row] = {}
    for rank in ranks:
        for comm in rank["communicators"] + rank["freed"]:
            for op, counts in comm["collectives"].items():
                calls = sum(counts["calls"].values())
                if not counts["calls"]["host"]:
                    continue
                reason = counts.get("declined") or comm.get("declined") or "chosen for some calls"
                row = found.setdefault(
                    reason, {"reason": reason, "calls": 0, "seconds": 0.0, "ops": set(), "sizes": set()}
                )
                row["calls"] += counts["calls"]["host"]
                row["seconds"] += counts["ns"] / 1e9 * counts["calls"]["host"] / calls
                row["ops"].add(op)
                row["sizes"].add(comm["size"])
    return sorted(found.values(), key=lambda row: -row["seconds"])


def figures(stats: Row) -> Figures:
    read = {rank["rank"]: rank for rank in stats["per_rank"]}
    lacking = stats.get("cut_short", {}).get("not_read", [])
    ranks = [read.get(r, {**NOTHING, "rank": r}) for r in sorted({*read, *lacking})]
    shares = [share_of(rank) for rank in ranks]
    places = places_of(ranks)
    late = late_ranks(ranks, places)
    waited = {(r["rank"], w["rank"]): w["ns"] / 1e9 for r in ranks for w in r.get("waited_for", [])}
    scale_late(late, waited, sum(s.waiting or 0.0 for s in shares))
    time, bin_seconds = time_of(ranks)
    hosts: dict[str, list[Row]] = {}
    for rank in ranks:
        hosts.setdefault(rank.get("host", "?"), []).append(rank)
    operations = operations_of(ranks)
    compared = sum(each["calls"] for rank in ranks for each in rank.get("compared", {}).values())
    return Figures(
        stats,
        len(ranks),
        mean(shares),
        shares,
        operations,
        places,
        late,
        waited,
        sizes_of(ranks),
        time,
        bin_seconds,
        hosts,
        left_to_mpi(ranks),
        (compared, sum(op.calls for op in operations)),
    )
