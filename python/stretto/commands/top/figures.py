# SPDX-License-Identifier: BSD-3-Clause
"""Figures from frames: rates, shares, and which ranks wait for which."""

from __future__ import annotations

from collections.abc import Iterable

from stretto.commands.top.jobs import Row

PATHS = {
    "inline": "inline",
    "cico": "cico",
    "single": "single copy",
    "schedule": "schedule",
    "deferred": "deferred",
    "host": "MPI",
}
FROM_ROOT = {"bcast", "scatter", "scatterv"}  # the other ranks wait for the root
FROM_LOWER = {"scan", "exscan"}  # a rank waits for those below it
OUTSIDE = "outside collectives"  # usually computing
WORTH_TELLING_S = 0.1  # seconds of waiting


def may_wait_for(call: Row, mine: int, other: int) -> bool:
    """Whether a rank in this call can wait for this other member of its communicator."""
    if call["collective"] in FROM_ROOT:
        return other == call["root"]
    return other < mine if call["collective"] in FROM_LOWER else other != mine


def waits_for(process: Row, frame: Row) -> list[int]:
    """Processes that have not come to the call in which this one waits."""
    call = process["call"]
    if not call or not call["open"] or call["waiting_s"] is None:
        return []
    members = frame["communicators"].get(call["communicator"], [])
    mine = next((m["rank"] for m in members if m["pid"] == process["pid"]), None)
    if mine is None:
        return []
    return [m["pid"] for m in members if m["begun"] < call["number"] and may_wait_for(call, mine, m["rank"])]


def deferred_waits(process: Row) -> Row | None:
    """The call that has returned early and for whose data a thread of the process waits longest."""
    waiting = [d for d in process["deferred"] if d["waits"] and d["returned_s"] is not None]
    return max(waiting, key=lambda d: d["waits_s"], default=None)


def lacks(deferred: Row) -> list[int]:
    """The ranks whose data a thread waits for. A touch waits for those of one rank."""
    if deferred["waits_for"] >= 0:
        return [deferred["waits_for"]]
    return [part["rank"] for part in deferred["missing"] or deferred["untaken"] if part["rank"] >= 0]


def total(collectives: Row, key: str) -> int:
    return sum(c[key] for c in collectives.values())


def paths_of(collectives: Row) -> dict[str, int]:
    return {path: sum(c["calls"][path] for c in collectives.values()) for path in PATHS}


def since(now: Row, before: Row) -> Row:
    """Counts of collectives between two frames."""
    gone: Row = {}
    for name, counts in now.items():
        old = before.get(name)
        calls = {path: n - (old["calls"][path] if old else 0) for path, n in counts["calls"].items()}
        gone[name] = {"calls": calls, **{key: counts[key] - (old[key] if old else 0) for key in ("bytes", "ns")}}
    return gone


def row_of(process: Row, before: Row, samples: Row, seconds: float, ranks: dict[int, int], frame: Row) -> Row:
    """The row of a rank."""
    call, running = process["call"], process["state"] == "running"
    moved = since(process["collectives"], before["collectives"])
    calls, recent = sum(paths_of(process["collectives"]).values()), sum(paths_of(moved).values())
    inside = bool(running and call and call["open"])

    def rate(n):
        return n / seconds if seconds else 0.0

    def share(key):
        return samples[key] / samples["samples"] if samples["samples"] else None

    deferred = process["deferred"] if running else []
    waited = deferred_waits(process) if running and not inside else None
    going_on = next((d for d in deferred if d["returned_s"] is None), None)  # the call that the rank is in
    if waited:
        call = {**(call or {}), "collective": waited["collective"].lower(), "by": "deferred", "seen": True}
        call |= {"since_s": waited["waits_s"], "waiting_s": waited["waits_s"]}
        missing = lacks(waited)
    else:
        missing = [ranks[pid] for pid in waits_for(process, frame)] if running else []
        missing = lacks(going_on) if inside and going_on and call["by"] == "schedule" else missing
    inside = inside or waited is not None
    host = process["host_call"] if running and not inside else None  # known with a watchdog
    if host:
        call = {**(call or {}), "collective": host["name"].removeprefix("MPI_"), "by": "message", "at": host["at"]}
        call |= {"seen": False, "since_s": host["since_s"], "waiting_s": host["since_s"]}
        missing, inside = host["waits_for"], True

    return {
        "rank": process["rank"],
        "pid": process["pid"],
        "state": process["state"],
        "doing": call["collective"] if inside else doing_outside(process),
        "by": call["by"] if inside else None,
        "since_s": call["since_s"] if running and call else None,
        "since_is_exact": bool(call and call["seen"]),
        "waiting_s": call["waiting_s"] if inside else None,
        "waits_for": sorted(missing),
        "at": (waited or call).get("at") or None if running and call else None,
        "host_call": host and host["words"],
        "deferred": deferred,
        "calls": calls,
        "bytes": total(process["collectives"], "bytes"),
        "calls_per_s": rate(recent),
        "bytes_per_s": rate(total(moved, "bytes")),
        "paths": paths_of(moved) if recent else paths_of(process["collectives"]),
        "time_in_collectives": share("inside"),
        "time_waiting": share("waiting"),
        "seconds_in_collectives": total(process["collectives"], "ns") / 1e9 or None,
        "collectives": process["collectives"],
        "recent": moved,
    }


def doing_outside(process: Row) -> str:
    if process["state"] != "running":
        return process["state"]
    return OUTSIDE if process["call"] else "unknown"


def snapshot(history: Iterable[Row]) -> Row:
    """The state in the last of these frames, with rates and shares since the first of them."""
    first, *later = history
    frame = later[-1] if later else first
    before = {p["pid"]: p for p in first["processes"]}
    ranks = {p["pid"]: p["rank"] for p in frame["processes"]}
    rows = []
    for process in frame["processes"]:
        seen = [p for f in later for p in f["processes"] if p["pid"] == process["pid"]]
        seconds = sum(f["interval_s"] for f in later[-len(seen) :]) if seen else 0.0
        samples = {key: sum(p[key] for p in seen) for key in ("samples", "inside", "waiting")}
        rows.append(
            row_of(process, before.get(process["pid"], seen[0] if seen else process), samples, seconds, ranks, frame)
        )
    return {"seconds": sum(f["interval_s"] for f in later), "rows": rows, "held_up": held_up(rows), **findings(frame)}


def findings(frame: Row) -> Row:
    """Ranks that wait for each other, and messages that do not fit. Known of messages with a watchdog."""
    return {"cycles": frame["cycles"], "contradictions": frame["contradictions"]}


def held_up(rows: list[Row]) -> list[Row]:
    """Ranks that others wait for, and that wait for no rank themselves."""
    waiting_for: dict[int, list[Row]] = {}
    for row in rows:
        for rank in row["waits_for"]:
            waiting_for.setdefault(rank, []).append(row)
    return [
        {
            "rank": row["rank"],
            "doing": row["doing"],
            "at": row.get("at"),
            "waited_for_by": [w["rank"] for w in waiting_for[row["rank"]]],
            "for_s": max(w["waiting_s"] for w in waiting_for[row["rank"]]),
        }
        for row in rows
        if row["rank"] in waiting_for
        and not row["waits_for"]
        and max(w["waiting_s"] for w in waiting_for[row["rank"]]) >= WORTH_TELLING_S
    ]
