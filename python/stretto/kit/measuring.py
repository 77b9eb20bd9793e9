# SPDX-License-Identifier: BSD-3-Clause
"""Runs the jobs of a plan on this machine, one after the other.

A job that fails or hangs costs one operation. The others of the job are started again without it.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from stretto import __version__
from stretto.bench import figures, program
from stretto.bench.program import Row
from stretto.kit import latencies, plan, situation
from stretto.kit.plan import Job, Settings
from stretto.kit.record import Record
from stretto.core.processors import Topology
from stretto.mpi import Mpi, environments, launching
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.native.build import library_for

PATIENCE_S = 180.0  # without a row, until a job counts as hanging
KEPT = ("ours_us", "mpi_us", "path", "calls", "flag_ns")

Shown = Callable[[str, int], None]  # what is measured now, and how many rows more are done


def new_data(topology: Topology, settings: Settings, mpis: Sequence[Mpi]) -> dict[str, Any]:
    """A measurement that has no results yet."""
    facts = situation.facts()
    return {
        "stretto": __version__,
        "state": "begun",
        "begun": _now(),
        "ended": None,
        "command": shlex.join(["stretto", *sys.argv[1:]]),
        "machine": facts,
        "topology": topology.as_json(),
        "mpis": [{"tag": m.tag, "kind": m.kind, "version": m.version, "title": m.title} for m in mpis],
        "settings": {**vars(settings), "ops": list(settings.ops)},
        "notes": list(situation.notes(facts, topology)),
        "latencies": {"complete": False, "levels": {}},
        "latency_pairs": [],
        "jobs": [],
        "failures": [],
        "results": [],
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def measure_latencies(record: Record, topology: Topology, show: Shown) -> None:
    """Fills in the times between processors, unless the record has them."""
    if record.data["latency_pairs"]:
        return
    pairs, complete = latencies.pairs_of(topology)
    rows = latencies.measure(pairs, lambda: show("from processor to processor", 0))
    record.data["latency_pairs"] = rows
    record.data["latencies"] = {"complete": complete, "levels": latencies.by_level(rows)}
    record.write()


def remaining(job: Job, record: Record) -> Job | None:
    """The job without operations that the record has whole, or that have failed."""
    rows = {(r["op"], r["bytes"]) for r in record.data["results"] if _is_of(r, job)}
    failed = {f["op"] for f in record.data["failures"] if _is_of(f, job)}
    ops = tuple(
        op
        for op in job.request.ops
        if op not in failed and any((op, size) not in rows for size in job.request.sizes(op))
    )
    return replace(job, request=replace(job.request, ops=ops)) if ops else None


def _is_of(row: dict[str, Any], job: Job) -> bool:
    return (row["mpi"], row["placement"], row["ranks"]) == (job.mpi, job.placement, job.ranks)


def run(jobs: Sequence[Job], mpis: dict[str, Mpi], record: Record, show: Shown) -> None:
    """Measures what is left to measure."""
    for job in jobs:
        while left := remaining(job, record):
            _run_once(left, mpis[left.mpi], record, show)
            record.write()


def _run_once(job: Job, mpi: Mpi, record: Record, show: Shown) -> None:
    """One start. Afterwards each operation is whole, or one has failed."""
    _forget(job, record)  # an operation that was interrupted begins anew
    waiting = list(job.request.ops)
    reason, started = "", False
    try:
        with closing(launching.lines(mpi, command(job, mpi), PATIENCE_S)) as lines:
            for text in lines:
                event = program.parse_event(text)
                if event and event["event"] == "plan":
                    started = True
                    _note_job(job, event, record)
                elif event and event["event"] == "row":
                    record.add(_row(job, event))
                    show(f"{mpi.title}, {job.ranks} ranks, {job.placement}: {event['op']}", 1)
                    if event["bytes"] == job.request.sizes(event["op"])[-1]:
                        waiting.remove(event["op"])
        if waiting:
            reason = "the program ended early"
    except (launching.JobFailed, launching.JobHangs) as error:
        reason = str(error)[-2000:]
    # Rows come in this order, so the first operation that is not whole is to blame.
    for op in waiting[:1] if started else waiting:
        record.data["failures"].append({**_place(job), "op": op, "reason": reason})
    if waiting:
        show(f"failed: {mpi.title}, {job.ranks} ranks, {job.placement}: {waiting[0]}", 0)


def command(job: Job, mpi: Mpi) -> list[str]:
    """The launcher's line. Ranks go to their processors by themselves."""
    env = environments.rank_environment(library_for(mpi.abi), SERVED_AT_ONCE)
    # The program was linked to another place of this MPI.
    others = os.environ.get("LD_LIBRARY_PATH")
    env["LD_LIBRARY_PATH"] = ":".join([str(mpi.library.parent), *([others] if others else [])])
    cpus = ",".join(map(str, job.cpus))
    words = [str(program.program(mpi)), "--cpus", cpus, *job.request.arguments()]
    return mpi.command(job.ranks, words, env, extra=mpi.implementation.unbound)


def _place(job: Job) -> Row:
    return {"mpi": job.mpi, "placement": job.placement, "ranks": job.ranks}


def _row(job: Job, event: Row) -> Row:
    ratio = figures.ratio(event["ours_us"], event["mpi_us"])
    return {
        **_place(job),
        "op": event["op"],
        "bytes": event["bytes"],
        "ratio": round(ratio, 4),
        **{key: event[key] for key in KEPT},
    }


def _forget(job: Job, record: Record) -> None:
    record.data["results"] = [r for r in record.data["results"] if not (_is_of(r, job) and r["op"] in job.request.ops)]


def _note_job(job: Job, event: Row, record: Record) -> None:
    """Where the ranks really are, and whether the library is in them; each place once."""
    if any(_is_of(known, job) for known in record.data["jobs"]):
        return
    as_asked = event["bindings"] == [[cpu] for cpu in job.cpus]
    record.data["jobs"].append(
        {**_place(job), "cpus": list(job.cpus), "as_asked": as_asked, "preloaded": event["preloaded"]}
    )
    if not as_asked:
        record.data["jobs"][-1]["bindings"] = event["bindings"]
        note = f"{job.mpi}, {job.ranks} ranks, {job.placement}: ranks are not on the processors that were asked for."
        record.data["notes"].append(note)
    if not event["preloaded"]:
        record.data["notes"].append(f"{job.mpi}: the library is not in the ranks, 'ours' is the MPI itself.")


def rows_left(jobs: Sequence[Job], record: Record) -> int:
    return sum(len(left.rows()) for job in jobs if (left := remaining(job, record)))


def mismatch(data: dict[str, Any], fresh: dict[str, Any]) -> str | None:
    """Why a record cannot go on as this measurement; None: it can."""
    for key, name in (
        ("stretto", "version"),
        ("topology", "set of processors"),
        ("settings", "choice of what to measure"),
        ("mpis", "set of MPIs"),
    ):
        if data[key] != fresh[key]:
            return name
    return "processor" if data["machine"]["cpu"] != fresh["machine"]["cpu"] else None


def all_jobs(topology: Topology, settings: Settings, mpis: Sequence[Mpi]) -> list[Job]:
    return plan.jobs([m.tag for m in mpis], topology, settings, situation.available_memory())


def complete(record: Record) -> None:
    record.data |= {"state": "complete", "ended": _now()}
    record.write()


def geomeans(results: Sequence[Row]) -> dict[tuple[str, int], float]:
    """The geometric mean of the ratios, by MPI and number of ranks, of ranks that are close."""
    ratios: dict[tuple[str, int], list[float]] = {}
    for row in results:
        if row["placement"] == "close":
            ratios.setdefault((row["mpi"], row["ranks"]), []).append(row["ratio"])
    return {key: figures.geomean(values) for key, values in ratios.items()}


def failures(found: Sequence[Row]) -> dict[tuple[str, int, str], list[str]]:
    """The operations that failed, by MPI, number of ranks and reason."""
    ops: dict[tuple[str, int, str], list[str]] = {}
    for failure in found:
        ops.setdefault((failure["mpi"], failure["ranks"], failure["reason"]), []).append(failure["op"])
    return ops


class Clock:
    """How long the rest takes, if rows go on to take what they took."""

    def __init__(self, rows: int) -> None:
        self._rows, self._done, self._begin = rows, 0, time.monotonic()

    def advance(self, rows: int) -> None:
        self._done += rows

    def left(self) -> str:
        if not self._done:
            return f"{self._rows} results to come"
        seconds = (time.monotonic() - self._begin) / self._done * (self._rows - self._done)
        return f"{self._done} of {self._rows} results, about {max(seconds, 0) / 60:.1f} min left"
