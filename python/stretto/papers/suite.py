# SPDX-License-Identifier: BSD-3-Clause
"""Measures entries of the suite one after the other, each in its part of the time."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Sequence

from stretto import __version__
from stretto.bench.provenance import provenance
from stretto.cluster.plan import PlanError
from stretto.cluster.registry import ClusterError
from stretto.core import machine
from stretto.core.console import Failed
from stretto.core.time_limit import TimeUp, time_limit
from stretto.mpi import MpiNotFound, finding
from stretto.mpi.launching import JobFailed, JobHangs
from stretto.native.build import BuildError
from stretto.papers.entry import Entry, Row, Rows, Site
from stretto.papers.table import PAPERS

BUDGET_S = 720.0
GRACE = 1.4  # an entry that takes so many times its part of the time is ended
LEAST_S = 1.0
ERRORS = (Failed, ClusterError, PlanError, JobFailed, JobHangs, BuildError, MpiNotFound)

# What came of an entry.
MEASURED, IN_PART, FAILED, IMPOSSIBLE, OPEN = "measured", "measured in part", "failed", "not possible here", "open"

Tell = Callable[[str], None]


def site_of(wanted: str | None, entries: Sequence[Entry]) -> Site:
    """What this machine has. An MPI that was asked for must be there; without any, entries that
    need one are named with the reason."""
    if not any("mpi" in entry.needs for entry in entries):
        return Site(None)
    try:
        return Site(finding.find(wanted))
    except MpiNotFound as missing:
        if wanted:
            raise
        return Site(None, f"{missing}. {finding.how_to_get(None)}")


def new_document(entries: Sequence[Entry], site: Site, budget_s: float) -> Row:
    """A report in which nothing is measured yet."""
    return {
        **(provenance(site.mpi) if site.has_mpi else _without_mpi()),
        "stretto": __version__,
        "begun": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "budget_s": budget_s,
        "seconds": 0.0,
        "state": "begun",
        "papers": {name: facts for name, facts in PAPERS.items() if any(e.paper == name for e in entries)},
        "entries": [_result(entry, site, OPEN, [], "", 0.0) for entry in entries],
    }


def _without_mpi() -> Row:
    return {
        "mpi": None,
        "machine": machine.one_line(),
        "machine_details": machine.describe(),
        "command": shlex.join(["stretto", *sys.argv[1:]]),
    }


def _result(entry: Entry, site: Site, status: str, rows: Rows, reason: str, seconds: float) -> Row:
    return {
        **entry.facts(),
        "here": "" if site.why_not(entry.needs) else entry.here(site),
        "status": status,
        "reason": reason,
        "seconds": round(seconds, 1),
        "claims": [claim.judged(rows) for claim in entry.claims],
        "panels": [panel.as_json() for panel in entry.panels(rows)] if rows else [],
        "rows": rows,
    }


def run(doc: Row, entries: Sequence[Entry], site: Site, tell: Tell) -> None:
    """Measures, and puts what comes of it into the report. After Ctrl-C the report has what was
    measured until then."""
    begin = time.monotonic()
    end = begin + doc["budget_s"]
    possible = [entry for entry in entries if not site.why_not(entry.needs)]
    left = sum(entry.seconds for entry in possible)
    doc["state"] = "interrupted"
    for number, entry in enumerate(entries):
        if why := site.why_not(entry.needs):
            doc["entries"][number] = _result(entry, site, IMPOSSIBLE, [], why, 0.0)
            tell(f"{entry.paper}, {entry.title}: {IMPOSSIBLE}: {why}")
            continue
        prepared = _prepare(entry, site)
        end += prepared[1]  # building takes no time of measurements
        share = max((end - time.monotonic()) * entry.seconds / left, LEAST_S)
        left -= entry.seconds
        tell(f"{number + 1} of {len(entries)}: {entry.paper}, {entry.title}: about {share:.0f} s")
        try:
            doc["entries"][number] = prepared[0] or attempt(entry, site, share)
        except Interrupted as stop:
            doc["entries"][number] = stop.result
            raise stop.cause from None
        finally:
            doc["seconds"] = round(time.monotonic() - begin, 1)
    doc["state"] = "complete"


class Interrupted(BaseException):
    """Ctrl-C, or a request to end, during an entry."""

    def __init__(self, result: Row, cause: BaseException) -> None:
        self.result, self.cause = result, cause


def _prepare(entry: Entry, site: Site) -> tuple[Row | None, float]:
    """Builds what the entry runs. Returns a result if that fails, and the seconds that it took."""
    begin = time.monotonic()
    try:
        entry.prepare(site)
    except ERRORS as error:
        return _result(entry, site, FAILED, [], str(error), 0.0), time.monotonic() - begin
    return None, time.monotonic() - begin


def attempt(entry: Entry, site: Site, seconds: float) -> Row:
    """What comes of one entry in this time."""
    rows: Rows = []
    begin = time.monotonic()

    def result(status: str, reason: str = "") -> Row:
        return _result(entry, site, status, rows, reason, time.monotonic() - begin)

    try:
        with time_limit(GRACE * seconds):
            entry.measure(site, seconds, rows.append)
    except TimeUp:
        return result(IN_PART if rows else FAILED, f"its {seconds:.0f} s were over: --budget gives more")
    except ERRORS as error:
        return result(IN_PART if rows else FAILED, str(error))
    except (KeyboardInterrupt, SystemExit) as cause:
        raise Interrupted(result(IN_PART if rows else OPEN, "interrupted"), cause) from None
    return result(MEASURED)
