# SPDX-License-Identifier: BSD-3-Clause
"""On request: PageRank on a graph, and a short benchmark of the collectives that it calls."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import typer

from stretto.bench import figures, pagerank, pagerank_report, program
from stretto.bench.request import Request as BenchRequest
from stretto.bench.verdicts import of_ratios
from stretto.core import machine
from stretto.core.console import out, working
from stretto.core.reports import with_schema
from stretto.demo.part import Clock, Outcome, Part, Request, describe
from stretto.mpi import Mpi
from stretto.native.build import library_for

ABOUT = "PageRank of a graph, or of your matrix"
SHORT_OPS = ("scatterv", "gatherv", "allgatherv", "bcast")


def short_bench(mpi: Mpi, np: int) -> dict[str, Any] | None:
    """A few operations and sizes, measured as by `stretto bench`. None: the measurement failed,
    with a message."""
    request = BenchRequest(SHORT_OPS, 64, 256 << 10, budget_s=0.15)
    load = machine.warn_if_busy()
    try:
        runs = program.run_all(mpi, (np,), request, 1)
    except typer.Exit:
        return None
    measured = figures.document(mpi, (np,), request, runs, figures.LOST_ABOVE[mpi.kind], None)
    return with_schema("bench", {**measured, "load_before": load})


def prepare(request: Request) -> None:
    with working("compiling pagerank"):
        pagerank.compile_pagerank(request.mpi)


def run(request: Request, _: None, clock: Clock) -> Outcome:
    mpi, ranks = request.mpi, request.ranks
    library = library_for(mpi.abi)
    with tempfile.TemporaryDirectory(prefix="stretto-demo-") as folder:
        runs = {
            way: pagerank.Run(mpi, ranks, request.arguments, library if way == "stretto" else None, Path(folder))
            for way in pagerank.WAYS
        }
        pagerank.measure(runs, request.repeat, "PageRank with and without Stretto")
    rows = pagerank.summarise(runs)
    identical = len(runs["mpi"].checksums() | runs["stretto"].checksums()) == 1
    out.print(runs["stretto"].stdout.split("seconds")[0].rstrip(), markup=False)
    pagerank_report.show(rows, mpi, ranks)
    measured = short_bench(mpi, ranks) if request.bench else None
    pagerank_report.conclude(rows, identical)
    whole, colour = of_ratios(rows["total"]["ratios"])
    inside, _ = of_ratios(rows["collectives"]["ratios"])
    panels = [partial(pagerank_report.draw_phases, rows=rows, title=mpi.title, np=ranks)]
    return Outcome(
        f"PageRank on {ranks} ranks: {rows['total']['mpi_ms']:.0f} ms without Stretto, "
        f"{rows['total']['stretto_ms']:.0f} ms with",
        colour,
        [describe("examples/pagerank.c", mpi, ranks)],
        {"identical": identical, "pagerank": rows, "bench": measured},
        [*panels, *([partial(pagerank_report.draw_bench, bench=measured)] if measured else [])],
        f"{whole}; its collectives: {inside}",
        failed=not identical,
    )


PART = Part("pagerank", ABOUT, pagerank.BUDGET_S, prepare, run)
