# SPDX-License-Identifier: BSD-3-Clause
"""bench: our collectives, the MPI's own and the physical bound, in turn within one run of one program.

The program is bench/*.cpp, which prints one JSON object per line. docs/measuring.md explains the
figures.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.bench import figures, program, tables
from stretto.bench.plots import plot_ratios
from stretto.bench.program import Row
from stretto.bench.request import OPS, Method, Request, parse_ops, parse_ranks
from stretto.commands import suites
from stretto.commands.options import checked
from stretto.core import machine
from stretto.core.arguments import MOST_PER_CPU, check_crowd
from stretto.core.console import fail, note
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.core.units import parse_sizes
from stretto.mpi import choosing
from stretto.mpi.choosing import MPI_HELP


SUITES = suites.parts()
BUDGET_S, LEAST_BUDGET_S = 0.4, 0.001


Op = Annotated[
    str, typer.Option("--op", metavar="LIST", help="Operations, with commas: " + ", ".join(OPS) + "; or all.")
]
Np = Annotated[str, typer.Option("-n", "--ranks", "--np", metavar="LIST", help="Number of ranks; several with commas.")]
Sizes = Annotated[
    str, typer.Option("--sizes", metavar="A:B", help="Bytes of one rank's block: the powers of two from A to B.")
]
MethodOption = Annotated[
    Method,
    typer.Option(
        "--method",
        help="imb: a buffer out of the cache at each call. warm: the same buffers. used: as imb, and what is "
        "received is read, too. live: the same buffers, and what is sent is written before, what is received "
        "is read after. osu: as the OSU benchmarks: the same buffers and root, the mean of the ranks.",
    ),
]
Mpi = Annotated[Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + MPI_HELP)]
JsonFile = Annotated[
    Optional[Path], typer.Option("--json", metavar="FILE", help="Results as JSON into FILE (- for stdout), no table.")
]
Plot = Annotated[
    Optional[Path],
    typer.Option("--plot", metavar="FILE", help="Draw time / the MPI's own against size (PNG, SVG, PDF)."),
]
Spread = Annotated[
    float,
    typer.Option("--spread", metavar="X", min=0, max=1, help="Blocks of v-operations from 1-X to 1+X times the size."),
]
RootShift = Annotated[
    Optional[int],
    typer.Option(
        "--root-shift",
        metavar="0|1",
        min=0,
        max=1,
        help="1: another root at each call. 0: always rank 0. Default: 1, with --method osu 0.",
        show_default=False,
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        "--repeat",
        metavar="N",
        min=0,
        max=4096,
        help="Calls of each contender in each of the five rounds; 0: as many as --budget allows, at most 1000.",
    ),
]
Budget = Annotated[
    float, typer.Option("--budget", metavar="S", min=LEAST_BUDGET_S, help="Seconds for one contender at one size.")
]
Runs = Annotated[
    int, typer.Option("--runs", metavar="N", min=1, help="Repeat everything; figures are medians over the runs.")
]
Lost = Annotated[
    Optional[float],
    typer.Option(
        "--lost",
        metavar="X",
        min=0,
        help="A size is lost when its ratio is above X in all runs. Default: 1.1, for Intel MPI 1.2.",
        show_default=False,
    ),
]
CheckLost = Annotated[bool, typer.Option("--check-lost", help="Exit with 1 when a size is lost.")]
CheckBound = Annotated[
    Optional[float],
    typer.Option(
        "--check-bound", metavar="X", help="Exit with 1 when ours takes more than X times the bound at any size."
    ),
]
Latency = Annotated[
    bool,
    typer.Option(
        "--latency",
        help="Instead of --op: one-way times beside a flag's, and long calls beside the same work on private data.",
    ),
]
Off = Annotated[
    bool, typer.Option("--off", help="Without the library: the MPI against itself, which shows this machine's noise.")
]
Suite = Enum("Suite", {name.split()[1]: name.split()[1] for name in SUITES}, type=str)
SuiteName = Annotated[
    Optional[Suite],
    typer.Option(
        "--suite",
        help="Something else, which has options of its own: [b]stretto bench --suite NAME --help[/]. paper: the "
        "papers' "
        "figures and tables. nonblocking: nonblocking collectives. neighbors: a halo exchange. kind: waits of ranks "
        "that share processors. overlap: what calls that return early hide, on a cluster. pages: what loops over huge "
        "pages lose by them. programs: whole programs with such calls and without. kv: lock schemes.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help=f"Also more than {MOST_PER_CPU} ranks for each processor.")]


def command(
    op: Op = "all",
    np: Np = "2",
    sizes: Sizes = "64:1M",
    method: MethodOption = Method.imb,
    mpi: Mpi = None,
    json_file: JsonFile = None,
    plot: Plot = None,
    spread: Spread = 0.0,
    root_shift: RootShift = None,
    repeat: Repeat = 0,
    budget: Budget = BUDGET_S,
    runs: Runs = 1,
    lost: Lost = None,
    check_lost: CheckLost = False,
    check_bound: CheckBound = None,
    latency: Latency = False,
    off: Off = False,
    suite: SuiteName = None,  # a command of its own stands in for this one: core/parts.py
    force: Force = False,
) -> None:
    """Measure our collectives against the MPI's own and against the physical bound.

    All three take turns within one run of one program, and every result is checked.

    [dim]stretto bench --op scatterv,bcast -n 2 --sizes 64:1M --plot ratio.png[/]
    [dim]stretto bench --latency[/]
    [dim]stretto bench --suite paper --html papers.html --json papers.json[/]
    [dim]stretto bench --suite nonblocking -n 2,8[/]
    """
    ranks, (least, most) = checked(parse_ranks, np), checked(parse_sizes, sizes, "--sizes")
    check_crowd(max(ranks), force)
    ops = () if latency else checked(parse_ops, op)
    shift = root_shift if root_shift is not None else int(method is not Method.osu)
    request = Request(ops, least, most, method.value, shift, spread, repeat, budget, latency, off)
    check_request(request, ranks, plot)
    check_outputs(json_file, picture=plot)
    doc = measure(mpi, ranks, request, runs, lost, check_bound)
    present(doc, json_file, plot)
    if (check_lost and doc["lost"]) or doc.get("over_bound"):
        raise typer.Exit(1)


def check_request(request: Request, ranks: tuple[int, ...], plot: Path | None) -> None:
    if request.latency and len(ranks) > 1:
        fail("--latency takes one number of ranks")
    if plot and set(request.ops) <= {"barrier"}:
        fail(
            "--plot: nothing to draw: it takes an operation with data"
            + (", of which --latency measures none" if request.latency else "")
        )


def measure(
    mpi: str | None, ranks: tuple[int, ...], request: Request, runs: int, lost: float | None, check_bound: float | None
) -> Row:
    chosen = choosing.choose(mpi)
    load = machine.warn_if_busy()
    measured = program.run_all(chosen, ranks, request, runs)
    lost_above = figures.LOST_ABOVE[chosen.kind] if lost is None else lost
    return {**figures.document(chosen, ranks, request, measured, lost_above, check_bound), "load_before": load}


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
