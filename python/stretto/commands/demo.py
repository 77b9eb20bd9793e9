# SPDX-License-Identifier: BSD-3-Clause
"""demo: what Stretto is for, on this machine, in a minute."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.markup import escape

from stretto.commands.options import MpiName
from stretto.core import machine
from stretto.core.arguments import check_crowd
from stretto.core.console import fail, note, out
from stretto.core.output_files import check_outputs
from stretto.core.paths import build_root
from stretto.core.reports import write_json
from stretto.demo import crowded, graph, hosts, mismatch, node
from stretto.demo.part import Broken, Clock, Outcome, Part, Request, Skip, draw, words
from stretto.mpi import choosing, finding
from stretto.native.build import BuildError, library_for

PARTS = {part.name: part for part in (node.PART, crowded.PART, mismatch.PART, hosts.PART, graph.PART)}
ON_REQUEST = (graph.PART.name,)
NAMES = ", ".join(f"[b]{name}[/]" for name in PARTS)


def warn_if_busy() -> None:
    load, cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cpus * 0.75 + 0.5:
        out.print(f"[yellow]Other programs are running here (load {load:.1f} on {cpus} CPUs): times say little.[/]")


def chosen_parts(only: list[str], of_graph: bool) -> list[Part]:
    if wrong := [name for name in only if name not in PARTS]:
        fail(f"--only {wrong[0]}: one of {', '.join(PARTS)}")
    if only:
        return [PARTS[name] for name in PARTS if name in only]
    return [part for part in PARTS.values() if (part.name in ON_REQUEST) == of_graph]


def prepare(part: Part, request: Request) -> Any:
    try:
        return part.prepare(request)
    except BuildError as error:
        raise Skip(f"its program cannot be built: {str(error).strip().splitlines()[-1]}") from None
    except typer.Exit:  # it has said why
        raise Skip("its library cannot be built") from None


def play(part: Part, request: Request, prepared: Any) -> Outcome | Skip:
    """Runs a part, and shows what came of it, the verdict first."""
    if isinstance(prepared, Skip):
        out.print(f"[bold]{part.name}[/]: [yellow]not run here[/]: {escape(str(prepared))}")
        return prepared
    try:
        outcome = part.run(request, prepared, Clock(part.seconds))
    except Skip as reason:
        return play(part, request, reason)
    except typer.Exit:  # it has said why
        return play(part, request, Broken("its program failed"))
    out.print(f"[bold]{part.name}[/]: [{outcome.colour}]{escape(outcome.verdict)}[/]")
    for detail in outcome.details:
        out.print(f"    {detail}", style="dim", markup=False)
    return outcome


def command(
    only: Annotated[
        Optional[list[str]],
        typer.Option("--only", "--part", metavar="PART", help=f"This part alone: {NAMES}. May be repeated."),
    ] = None,
    np: Annotated[
        Optional[int],
        typer.Option(
            "-n",
            "--ranks",
            "--np",
            min=1,
            metavar="N",
            help="Number of ranks on one node. Default: one per usable CPU, 2 to 16.",
        ),
    ] = None,
    mpi: MpiName = None,
    matrix: Annotated[
        Optional[Path],
        typer.Option(
            "--matrix",
            metavar="FILE.mtx",
            exists=True,
            dir_okay=False,
            help="PageRank of this Matrix Market file instead of a generated graph.",
        ),
    ] = None,
    vertices: Annotated[
        Optional[int],
        typer.Option("--vertices", metavar="N", min=1, help="Size of PageRank's generated graph. Default: 50000."),
    ] = None,
    repetitions: Annotated[
        int,
        typer.Option("--repeat", "-r", "--repetitions", min=1, metavar="N", help="Runs of each kind, as time allows."),
    ] = 9,
    bench: Annotated[
        bool, typer.Option("--bench/--no-bench", help="With PageRank: also a short benchmark of single collectives.")
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
    """Show what Stretto is for, in a minute: programs with and without it, results checked.

    [b]node[/]: a program on one node that spends its time in a collective. [b]crowded[/]: more ranks than processors, \
on MPICH. [b]mismatch[/]: a program that hangs, and whose mistake Stretto names. [b]hosts[/], for root: four hosts on \
Ethernet, made of namespaces, with calls that return early. On request [b]pagerank[/]: PageRank by phases.

    The programs (examples/) do not know of Stretto.
    """
    check_outputs(json_file, picture=picture)
    ranks = np or min(max(len(os.sched_getaffinity(0)), 2), 16)
    check_crowd(ranks, force)
    parts = chosen_parts(only or [], matrix is not None or vertices is not None)
    chosen = choosing.choose(mpi)
    arguments = ["--matrix", str(matrix.absolute())] if matrix else ["--vertices", str(vertices or 50000)]
    request = Request(chosen, ranks, repetitions, finding.find_all(), (*arguments, "--topics", "32"), bench)
    prepared = {}
    library_for(chosen.abi)
    for part in parts:
        try:
            prepared[part.name] = prepare(part, request)
        except Skip as reason:
            prepared[part.name] = reason
    out.print(f"{chosen.title} on {machine.one_line()}", markup=False)
    warn_if_busy()
    outcomes = {part.name: play(part, request, prepared[part.name]) for part in parts}
    target = picture or build_root() / "demo.png"
    panels = []
    for name, came in outcomes.items():
        why_not = partial(words, title=PARTS[name].about, text=f"not run here: {came}")
        panels += [why_not] if isinstance(came, Skip) else came.panels
    draw(target, f"stretto demo, {chosen.title}\n{machine.one_line()}", panels)
    note(f"picture: {target}")
    document = {
        name: {"ran": False, "why_not": str(came)}
        if isinstance(came, Skip)
        else {"ran": True, "verdict": came.verdict, **came.data}
        for name, came in outcomes.items()
    }
    write_json(
        json_file,
        "demo",
        {
            "mpi": chosen.title,
            "np": ranks,
            "machine": machine.describe(),
            "repetitions": repetitions,
            "parts": document,
        },
    )
    if any(isinstance(came, Broken) or (isinstance(came, Outcome) and came.failed) for came in outcomes.values()):
        raise typer.Exit(1)
