# SPDX-License-Identifier: BSD-3-Clause
"""Measures what a loop over a buffer of huge pages loses when calls into this buffer return early
(bench/overlap_pages.cpp), on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from stretto.bench import program
from stretto.bench.program import Row
from stretto.bench.provenance import provenance
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.core.console import out, working
from stretto.core.early import ALWAYS
from stretto.mpi import Mpi, environments
from stretto.mpi.environments import SERVED_AT_ONCE

PATIENCE_S = 300  # until a job that prints nothing counts as hanging


@dataclass(frozen=True)
class Request:
    mib: int
    calls: int
    repeat: int

    def arguments(self) -> list[str]:
        return [str(self.mib), str(self.calls), str(self.repeat)]


def measure(
    request: Request, cluster: Cluster, mpi: Mpi, libraries: dict[str, Path], options: dict[str, str]
) -> list[Row]:
    """The rows of each library, by turns."""
    path = program.program(mpi, "overlap_pages")
    measured: list[Row] = []
    for name, library in libraries.items():
        env = environments.rank_environment(library, {**SERVED_AT_ONCE, **ALWAYS, **options})
        lines = jobs.lines(cluster, mpi, [path, *request.arguments()], cluster.plan.ranks, "node", PATIENCE_S, env)
        with working(f"measuring: {name}"):
            events = program.collect(lines, lambda _: None)
        measured += [{"library": name, **row} for row in events if row["event"] == "row"]
    return measured


def document(cluster: Cluster, mpi: Mpi, request: Request, rows: list[Row]) -> Row:
    return {
        **provenance(mpi, cluster),
        "repeat": request.repeat,
        "results": [{key: value for key, value in row.items() if key != "event"} for row in rows],
    }


def show(doc: Row) -> Any:
    table = Table(
        title=f"{doc['mpi_title']} on cluster {doc['cluster']['name']}: a loop over the buffer", title_justify="left"
    )
    for name in ("library", "touched"):
        table.add_column(name)
    for name in ("before, us", "after, us", "after / before", "small pages, us", "huge after"):
        table.add_column(name, justify="right")
    for r in doc["results"]:
        times = [f"{r['before_us']:.0f}", f"{r['after_us']:.0f}", f"{r['after_us'] / r['before_us']:.2f}"]
        table.add_row(r["library"], r["touched"], *times, f"{r['small_us']:.0f}", f"{r['huge_after']:.0%}")
    out.print(table)
