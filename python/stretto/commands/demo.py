# SPDX-License-Identifier: BSD-3-Clause
"""demo: a real program with and without Stretto, on this machine, now."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from stretto.bench import figures, pagerank, pagerank_report, program
from stretto.bench.request import Request
from stretto.core import machine
from stretto.core.arguments import check_crowd
from stretto.core.console import note, out, working
from stretto.core.output_files import check_outputs
from stretto.core.paths import build_root
from stretto.core.reports import with_schema, write_json
from stretto.mpi import Mpi, choosing
from stretto.mpi.choosing import MPI_HELP
from stretto.native.build import library_for

SHORT_OPS = ("scatterv", "gatherv", "allgatherv", "bcast")


def warn_if_busy() -> None:
    load, cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cpus * 0.75 + 0.5:
        out.print(f"[yellow]Other programs are running here (load {load:.1f} on {cpus} CPUs): times say little.[/]")


def short_bench(mpi: Mpi, np: int) -> dict[str, Any] | None:
    """A few operations and sizes, measured as by `stretto bench`. None: the measurement failed,
    with a message."""
    request = Request(SHORT_OPS, 64, 256 << 10, budget_s=0.15)
    load = machine.warn_if_busy()
    try:
        runs = program.run_all(mpi, (np,), request, 1)
    except typer.Exit:
        return None
    measured = figures.document(mpi, (np,), request, runs, figures.LOST_ABOVE[mpi.kind], None)
    return with_schema("bench", {**measured, "load_before": load})


def command(
    np: Annotated[
        Optional[int],
        typer.Option(
            "-n", "--ranks", "--np", min=1, metavar="N", help="Number of ranks. Default: one per usable CPU, 2 to 16."
        ),
    ] = None,
    mpi: Annotated[
        Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + MPI_HELP)
    ] = None,
    matrix: Annotated[
        Optional[Path],
        typer.Option(
            "--matrix",
            metavar="FILE.mtx",
            exists=True,
            dir_okay=False,
            help="A Matrix Market file instead of a generated graph.",
        ),
    ] = None,
    vertices: Annotated[
        int, typer.Option("--vertices", metavar="N", min=1, help="Size of the generated graph.")
    ] = 50000,
    repetitions: Annotated[
        int, typer.Option("--repeat", "-r", "--repetitions", min=1, metavar="N", help="Runs of each kind.")
    ] = 9,
    bench: Annotated[
        bool, typer.Option("--bench/--no-bench", help="Also a short benchmark of single collectives.")
    ] = True,
    json_file: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="Write the measurements as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
    picture: Annotated[
        Optional[Path],
        typer.Option("--plot", "--picture", metavar="FILE", help="Draw it (PNG, SVG, PDF). Default: build/demo.png."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also with more ranks than this machine can bear.")] = False,
) -> None:
    """Run a real MPI program with and without Stretto, compare results and times.

    PageRank on a power-law graph (or on a matrix of yours), by Scatterv, Allgatherv, Allgather and Gatherv. The program
    does not know of Stretto.
    """
    check_outputs(json_file, picture=picture)
    ranks = np or min(max(len(os.sched_getaffinity(0)), 2), 16)
    check_crowd(ranks, force)
    chosen = choosing.choose(mpi)
    library = library_for(chosen.abi)
    with working("compiling examples/pagerank.c"):
        pagerank.compile_pagerank(chosen)
    out.print(f"{chosen.title} on {machine.one_line()}", markup=False)
    warn_if_busy()
    arguments = ["--matrix", str(matrix.absolute())] if matrix else ["--vertices", str(vertices)]
    with tempfile.TemporaryDirectory(prefix="stretto-demo-") as folder:
        runs = {
            way: pagerank.Run(
                chosen, ranks, [*arguments, "--topics", "32"], library if way == "stretto" else None, Path(folder)
            )
            for way in pagerank.WAYS
        }
        pagerank.measure(runs, repetitions, "PageRank with and without Stretto")
    rows = pagerank.summarise(runs)
    identical = len(runs["mpi"].checksums() | runs["stretto"].checksums()) == 1
    out.print(runs["stretto"].stdout.split("seconds")[0].rstrip(), markup=False)
    pagerank_report.show(rows, chosen, ranks)
    measured = short_bench(chosen, ranks) if bench else None
    pagerank_report.conclude(rows, identical)
    target = picture or build_root() / "demo.png"
    pagerank_report.draw(target, rows, measured, chosen, ranks)
    note(f"picture: {target}")
    write_json(
        json_file,
        "demo",
        {
            "mpi": chosen.title,
            "np": ranks,
            "machine": machine.describe(),
            "identical": identical,
            "repetitions": repetitions,
            "pagerank": rows,
            "bench": measured,
        },
    )
    if not identical:
        raise typer.Exit(1)
