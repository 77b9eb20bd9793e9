# SPDX-License-Identifier: BSD-3-Clause
"""Figures from the events of measuring runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from stretto.bench.program import Row
from stretto.bench.provenance import provenance
from stretto.bench.request import CHAINS, LONG, Request
from stretto.mpi import Mpi

SMALL_BYTES = 64 << 10
LOST_ABOVE = {"openmpi": 1.1, "mpich": 1.1, "impi": 1.2}
CONTENDERS = ("ours", "mpi", "bound")


def geomean(values: Sequence[float]) -> float:
    """The geometric mean; NaN of no values."""
    return math.exp(statistics.fmean(math.log(v) for v in values)) if values else math.nan


def ratio(a: float, b: float) -> float:
    """a / b, where times below the clock's resolution count as one nanosecond."""
    return max(a, 0.001) / max(b, 0.001)


def results_of(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """One row per number of ranks, operation and size, with medians over the runs."""
    groups: dict[tuple[int, str, int], list[Row]] = {}
    for events in runs:
        for e in events:
            if e["event"] == "row":
                groups.setdefault((e["np"], e["op"], e["bytes"]), []).append(e)
    results = []
    for (np, op, size), rows in groups.items():
        times = {f"{c}_us": statistics.median(r[f"{c}_us"] for r in rows) for c in CONTENDERS}
        results.append(
            {
                "np": np,
                "op": op,
                "bytes": size,
                "ours_us": times["ours_us"],
                "mpi_us": times["mpi_us"],
                "ratio": statistics.median(ratio(r["ours_us"], r["mpi_us"]) for r in rows),
                "bound_us": times["bound_us"],
                "path": rows[-1]["path"],
                "flag_ns": statistics.median(r["flag_ns"] for r in rows),
                "bound_ratio": statistics.median(ratio(r["ours_us"], r["bound_us"]) for r in rows),
                "ratios": [ratio(r["ours_us"], r["mpi_us"]) for r in rows],
            }
        )
    return results


def geomeans(results: Sequence[Row], most_bytes: int | None = None) -> dict[str, float]:
    """The geometric mean of the ratios of each operation, up to a size."""
    by_op: dict[str, list[float]] = {}
    for r in results:
        if most_bytes is None or r["bytes"] <= most_bytes:
            by_op.setdefault(r["op"], []).append(r["ratio"])
    return {op: geomean(values) for op, values in by_op.items()}


def lost_sizes(results: Sequence[Row], above: float) -> list[Row]:
    """Rows in which Stretto is slower than the MPI by more than the machine's noise, in all runs."""
    return [r for r in results if all(value > above for value in r["ratios"])]


def latency_of(runs: Sequence[Sequence[Row]]) -> Row | None:
    """Medians over the runs of one-way times and of long calls, with their ratios, which are taken
    within each run."""

    def all_of(kind: str, op: str = "") -> list[Row]:
        return [e for run in runs for e in run if e["event"] == kind and e.get("op", "") == op]

    def times(events: Sequence[Row], name: str, unit: str) -> Row:
        return {f"{c}_{unit}": statistics.median(e[name][i] for e in events) for i, c in enumerate(CONTENDERS)}

    flags = all_of("flag")
    if not flags:
        return None
    result: Row = {"flag_ns": statistics.median(e["ns"] for e in flags), "chains": [], "long": []}
    for op in CHAINS:
        events = all_of("chain", op)
        per_flag = statistics.median(ratio(e["ns"][0], flag["ns"]) for e, flag in zip(events, flags))
        result["chains"].append({"op": op, **times(events, "ns", "ns"), "per_flag": per_flag})
    for op in LONG:
        events = all_of("long", op)
        per_plain = statistics.median(ratio(e["us"][0], e["plain_us"]) for e in events)
        result["long"].append(
            {
                "op": op,
                "bytes": events[0]["bytes"],
                **times(events, "us", "us"),
                "path": events[0]["path"],
                "plain_us": statistics.median(e["plain_us"] for e in events),
                "per_plain": per_plain,
            }
        )
    return result


def document(
    mpi: Mpi,
    ranks: Sequence[int],
    request: Request,
    runs: list[list[Row]],
    lost_above: float,
    bound_above: float | None,
) -> Row:
    """The JSON report of a measurement."""
    results = results_of(runs)
    several = len(ranks) > 1
    shown = ("op", "bytes", "ours_us", "mpi_us", "ratio", "bound_us", "path")
    plans = [e for run in runs for e in run if e["event"] == "plan"]

    def brief(row: Row) -> Row:
        return {**({"np": row["np"]} if several else {}), **{k: row[k] for k in shown}}

    doc: Row = {
        **provenance(mpi),
        "np": list(ranks) if several else ranks[0],
        "method": request.method,
        "root_shift": request.root_shift,
        "spread": request.spread,
        "runs": len(runs),
        "preloaded": all(p["preloaded"] for p in plans),
        "results": [brief(r) for r in results],
        "flag_ns": [r["flag_ns"] for r in results],
        "geomean": geomeans(results),
        "geomean_to_64k": geomeans(results, SMALL_BYTES),
        "lost_above": lost_above,
        "lost": [{**brief(r), "ratios": r["ratios"]} for r in lost_sizes(results, lost_above)],
        "bound_ratio_max": {op: max(r["bound_ratio"] for r in results if r["op"] == op) for op in request.ops},
    }
    if bound_above is not None:
        doc["over_bound"] = [
            {**brief(r), "bound_ratio": r["bound_ratio"]} for r in results if r["bound_ratio"] > bound_above
        ]
    if latency := latency_of(runs):
        doc["latency"] = latency
    return doc
