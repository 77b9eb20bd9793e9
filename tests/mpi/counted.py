# SPDX-License-Identifier: BSD-3-Clause
"""Programs that print how often they called each collective, against the statistics of the library: every call must
have come to us once, and none may have gone to the host."""

from __future__ import annotations

import json
from pathlib import Path

from harness import Job


def served_calls(report: Path, rank: int) -> dict[str, int]:
    """Calls per collective that a rank's communicators of several ranks have counted, over all paths but the host's."""
    entry = next(e for e in json.loads(report.read_text())["per_rank"] if e["rank"] == rank)
    totals: dict[str, int] = {}
    for communicator in [*entry["communicators"], *entry.get("freed", [])]:
        for name, counted in communicator["collectives"].items():
            assert counted["calls"]["host"] == 0, f"rank {rank}: {name} went to the host: {communicator}"
            totals[name] = totals.get(name, 0) + sum(counted["calls"].values())
    return totals


def calls_by_schedule(report: Path) -> int:
    """How many calls of rank 0 went by schedule: on one node, calls with requests alone."""
    entry = next(e for e in json.loads(report.read_text())["per_rank"] if e["rank"] == 0)
    calls = [c["calls"] for comm in [*entry["communicators"], *entry["freed"]] for c in comm["collectives"].values()]
    return sum(c.get("schedule", 0) for c in calls)


def check_counts(job: Job, report: Path, ranks: int) -> None:
    """Every rank's calls, as it counted them itself, are the calls the library served."""
    results = job.results()
    assert len(results) == ranks, job.describe()
    for result in results:
        made = {name: n for name, n in result["calls"].items() if n}
        assert served_calls(report, result["rank"]) == made, f"rank {result['rank']}"
