# SPDX-License-Identifier: BSD-3-Clause
"""bench: our collectives, the MPI's own and the physical bound, in turn within one run of one program.

The program is bench/*.cpp, which prints one JSON object per line. docs/measuring.md explains the
figures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.bench import figures, program, tables
from stretto.bench.plots import plot_ratios
from stretto.bench.program import Row
from stretto.bench.request import OPS, Method, Request, parse_ops, parse_ranks
from stretto.commands import bench_suite
from stretto.commands.options import ClusterName, checked
from stretto.core import machine
from stretto.core.arguments import MOST_PER_CPU, check_crowd
from stretto.core.console import fail, note
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.core.units import parse_sizes
from stretto.mpi import choosing
from stretto.mpi.choosing import MPI_HELP
from stretto.papers import suite


BUDGET_S, LEAST_BUDGET_S = 0.4, 0.001


def command(
    context: typer.Context,
    op: Annotated[
        str, typer.Option("--op", metavar="LIST", help="Operations, with commas: " + ", ".join(OPS) + "; or all.")
    ] = "all",
    np: Annotated[
        str, typer.Option("-n", "--ranks", "--np", metavar="LIST", help="Number of ranks; several with commas.")
    ] = "2",
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="A:B", help="Bytes of one rank's block: the powers of two from A to B.")
    ] = "64:1M",
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="imb: a buffer out of the cache at each call. warm: the same buffers. used: as imb, and what is "
            "received is read, too. live: the same buffers, and what is sent is written before, what is received "
            "is read after. osu: as the OSU benchmarks: the same buffers and root, the mean of the ranks.",
        ),
    ] = Method.imb,
    mpi: Annotated[
        Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + MPI_HELP)
    ] = None,
    json_file: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="Results as JSON into FILE (- for stdout), no table."),
    ] = None,
    plot: Annotated[
        Optional[Path],
        typer.Option("--plot", metavar="FILE", help="Draw time / the MPI's own against size (PNG, SVG, PDF)."),
    ] = None,
    spread: Annotated[
        float,
        typer.Option(
            "--spread", metavar="X", min=0, max=1, help="Blocks of v-operations from 1-X to 1+X times the size."
        ),
    ] = 0.0,
    root_shift: Annotated[
        Optional[int],
        typer.Option(
            "--root-shift",
            metavar="0|1",
            min=0,
            max=1,
            help="1: another root at each call. 0: always rank 0. Default: 1, with --method osu 0.",
            show_default=False,
        ),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat",
            metavar="N",
            min=0,
            max=4096,
            help="Calls of each contender in each of the five rounds; 0: as many as --budget allows, at most 1000.",
        ),
    ] = 0,
    budget: Annotated[
        Optional[float],
        typer.Option(
            "--budget",
            metavar="S",
            min=0,
            help=f"Seconds for one contender at one size; default {BUDGET_S}. With --suite paper: for all of it; "
            f"default {suite.BUDGET_S:.0f}, and 0 measures nothing.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=1, help="Repeat everything; figures are medians over the runs.")
    ] = 1,
    lost: Annotated[
        Optional[float],
        typer.Option(
            "--lost",
            metavar="X",
            min=0,
            help="A size is lost when its ratio is above X in all runs. Default: 1.1, for Intel MPI 1.2.",
            show_default=False,
        ),
    ] = None,
    check_lost: Annotated[bool, typer.Option("--check-lost", help="Exit with 1 when a size is lost.")] = False,
    check_bound: Annotated[
        Optional[float],
        typer.Option(
            "--check-bound", metavar="X", help="Exit with 1 when ours takes more than X times the bound at any size."
        ),
    ] = None,
    latency: Annotated[
        bool,
        typer.Option(
            "--latency",
            help="Instead of --op: one-way times beside a flag's, and long calls beside the same work on private data.",
        ),
    ] = False,
    off: Annotated[
        bool,
        typer.Option("--off", help="Without the library: the MPI against itself, which shows this machine's noise."),
    ] = False,
    suite_name: Annotated[
        Optional[bench_suite.Suite],
        typer.Option(
            "--suite",
            help="Instead of --op. paper: the papers' figures and tables, each beside its claim. nonblocking: "
            "nonblocking collectives. neighbors: a halo exchange by Neighbor_alltoallv.",
        ),
    ] = None,
    only: Annotated[
        str,
        typer.Option("--only", metavar="LIST", help="Of --suite paper: s1 to s5, or figures as s1-figure-2; or all."),
    ] = "all",
    html: Annotated[
        Optional[Path], typer.Option("--html", metavar="FILE", help="The suite's report as one HTML file.")
    ] = None,
    source: Annotated[
        Optional[Path],
        typer.Option("--from", metavar="FILE", help="The suite's report from its JSON; nothing is measured."),
    ] = None,
    cluster: ClusterName = None,
    force: Annotated[
        bool, typer.Option("--force", help=f"Also more than {MOST_PER_CPU} ranks for each processor.")
    ] = False,
) -> None:
    """Measure our collectives against the MPI's own and against the physical bound.

    All three take turns within one run of one program, and every result is checked.

    [dim]stretto bench --op scatterv,bcast -n 2 --sizes 64:1M --plot ratio.png[/]
    [dim]stretto bench --latency[/]
    [dim]stretto bench --suite paper --html papers.html --json papers.json[/]
    [dim]stretto bench --suite nonblocking -n 2,8[/]
    """
    bench_suite.check_options(context, suite_name)
    if suite_name is bench_suite.Suite.paper:
        bench_suite.run(only, budget, mpi, json_file, html, source)
        return
    ranks = checked(parse_ranks, np)
    if not cluster:
        check_crowd(max(ranks), force)
    if suite_name:
        bench_suite.run_calls(suite_name, ranks, runs, mpi, cluster, json_file)
        return
    if budget is None:
        budget = BUDGET_S
    elif budget < LEAST_BUDGET_S:
        fail(f"--budget {budget:g}: at least {LEAST_BUDGET_S} s")
    least, most = checked(parse_sizes, sizes, "--sizes")
    request = Request(
        () if latency else checked(parse_ops, op),
        least,
        most,
        method.value,
        root_shift if root_shift is not None else int(method is not Method.osu),
        spread,
        repeat,
        budget,
        latency,
        off,
    )
    if latency and len(ranks) > 1:
        fail("--latency takes one number of ranks")
    check_outputs(json_file, picture=plot)
    if plot and set(request.ops) <= {"barrier"}:
        fail(
            "--plot: nothing to draw: it takes an operation with data"
            + (", of which --latency measures none" if latency else "")
        )
    chosen = choosing.choose(mpi)
    load = machine.warn_if_busy()
    measured = program.run_all(chosen, ranks, request, runs)
    doc = {
        **figures.document(
            chosen, ranks, request, measured, figures.LOST_ABOVE[chosen.kind] if lost is None else lost, check_bound
        ),
        "load_before": load,
    }
    present(doc, json_file, plot)
    if (check_lost and doc["lost"]) or doc.get("over_bound"):
        raise typer.Exit(1)


def present(doc: Row, json_file: Path | None, plot: Path | None) -> None:
    """Shows the figures, and writes and draws them as asked for."""
    if not doc["preloaded"]:
        note("the library is not in these runs: 'ours' is the MPI itself")
    if not json_file:
        tables.show(doc)
    try:
        write_json(json_file, "bench", doc)
    except typer.Exit:
        tables.show(doc)  # so that the figures are not lost
        raise
    if plot:
        plot_ratios(doc, plot)
        note(f"drawn: {plot}")
