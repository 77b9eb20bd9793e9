# SPDX-License-Identifier: BSD-3-Clause
"""Measures calls that `stretto bench` does not have: nonblocking and neighbourhood collectives.

A program of its own calls Stretto's functions and the MPI's by turns (bench/requests.cpp, bench/neighbors.cpp).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from stretto.bench import figures, program
from stretto.bench.program import Row
from stretto.bench.provenance import provenance
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.core.console import note, out
from stretto.core.units import format_size
from stretto.mpi import Mpi, environments
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.native.build import library_for

PATIENCE_S = 300  # until a job that prints nothing counts as hanging


@dataclass(frozen=True)
class Suite:
    title: str
    program: str  # of bench/programs.toml
    settings: dict[str, str]  # Stretto's options
    rounds: int
    sizes: tuple[int, ...]
    more: dict[str, tuple[str, str]]  # what other times there are, Stretto's and the MPI's
    under_way: tuple[int, ...] = ()  # also so many calls at once

    def on_links(self) -> Suite:
        """What takes about as long between hosts, whose links are slow."""
        sizes = tuple(size for size in self.sizes if size <= 1 << 16)
        return replace(self, rounds=5, sizes=sizes, under_way=())

    def arguments(self) -> list[str]:
        many = [word for count in self.under_way for word in ("--under-way", str(count))]
        return [str(self.rounds), *many, *map(str, self.sizes)]


SUITES = {
    "nonblocking": Suite(
        "nonblocking collectives",
        "requests",
        {"STRETTO_NONBLOCKING": "on"},
        11,
        (8, 1 << 10, 1 << 16, 1 << 20),
        {
            "exposed": ("exposed_us", "mpi_exposed_us"),
            "with tests": ("exposed_with_tests_us", "mpi_exposed_with_tests_us"),
        },
        (1, 2, 4, 8, 24),
    ),
    "neighbors": Suite(
        "a halo exchange by Neighbor_alltoallv",
        "neighbors",
        {},
        21,
        tuple(1 << n for n in (3, 6, 9, 12, 15, 18, 20)),
        {},
    ),
}


def measure(suite: Suite, mpi: Mpi, ranks: Sequence[int], runs: int, cluster: Cluster | None) -> list[Row]:
    """Medians over the runs, by ranks, operation and length."""
    argv = [program.program(mpi, suite.program), *suite.arguments()]
    env = environments.rank_environment(library_for(mpi.abi), {**SERVED_AT_ONCE, **suite.settings})
    found: dict[tuple[int, str, int, int], list[Row]] = {}
    for run in range(runs):
        for np in ranks:
            note(f"measuring {mpi.title}, {np} ranks" + (f", run {run + 1} of {runs}" if runs > 1 else ""))
            for row in rows_of(mpi, np, argv, env, cluster):
                found.setdefault((np, row.get("op", ""), row["bytes"], under_way(row)), []).append(row)
    return [median_of(key[0], rows) for key, rows in found.items()]


def under_way(row: Row) -> int:
    """How many such calls are under way at once."""
    return row.get("under_way", 1)


def rows_of(mpi: Mpi, np: int, argv: Sequence[str | Path], env: dict[str, str], cluster: Cluster | None) -> list[Row]:
    """The rows of one job."""
    if cluster is None:
        events = program.run_job(mpi, mpi.command(np, argv, env), lambda _: None)
    else:
        lines = jobs.lines(cluster, mpi, argv, np, "slot", PATIENCE_S, env)
        events = program.collect(lines, lambda _: None)
    return [event for event in events if event["event"] == "row"]


def median_of(np: int, rows: Sequence[Row]) -> Row:
    def value(name: str) -> Any:
        values = [row[name] for row in rows]
        return statistics.median(values) if isinstance(values[0], float) else values[0]

    return {"np": np, **{name: value(name) for name in rows[0] if name != "event"}}


def document(
    mpi: Mpi, ranks: Sequence[int], suite: Suite, rows: Sequence[Row], runs: int, cluster: Cluster | None
) -> Row:
    ratios = {np: [row["ratio"] for row in rows if row["np"] == np] for np in ranks}
    return {
        **provenance(mpi, cluster),
        "np": list(ranks),
        "rounds": suite.rounds,
        "runs": runs,
        "results": list(rows),
        "geomean": {str(np): figures.geomean(found) for np, found in ratios.items() if found},
    }


def show(suite: Suite, doc: Row) -> None:
    table = Table(title=f"{doc['mpi_title']}: {suite.title}", title_justify="left")
    for name in ("ranks", "operation", "bytes", "calls", "Stretto, us", "the MPI, us", "Stretto / MPI", *suite.more):
        table.add_column(name, justify="left" if name == "operation" else "right")
    for r in doc["results"]:
        times = [f"{r['us']:.1f}", f"{r['mpi_us']:.1f}", f"{r['ratio']:.2f}"]
        more = [f"{r[ours]:.1f} / {r[its]:.1f}" if ours in r else "" for ours, its in suite.more.values()]
        calls = str(under_way(r))
        table.add_row(str(r["np"]), r.get("op", suite.program), format_size(r["bytes"]), calls, *times, *more)
    out.print(table)
    for np, ratio in doc["geomean"].items():
        out.print(f"geometric mean with {np} ranks: {ratio:.2f}")
