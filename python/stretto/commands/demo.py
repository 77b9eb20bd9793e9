# SPDX-License-Identifier: BSD-3-Clause
"""demo: what Stretto is for, on this machine, in a minute."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.text import Text

from stretto.commands.options import MpiName
from stretto.core import machine
from stretto.core.arguments import check_crowd
from stretto.core.console import fail, note, out
from stretto.core.output_files import check_outputs
from stretto.core.paths import build_root
from stretto.core.reports import write_json
from stretto.demo import crowded, graph, hosts, mismatch, node
from stretto.demo.part import QUIET, Broken, Clock, Outcome, Part, Request, Skip, busy
from stretto.demo.pictures import Panel, draw, words
from stretto.mpi import Mpi, choosing, finding, wheels
from stretto.native.build import BuildError, library_for

PARTS = {part.name: part for part in (node.PART, crowded.PART, mismatch.PART, hosts.PART, graph.PART)}
ON_REQUEST = (graph.PART.name,)
NAMES = ", ".join(f"[b]{name}[/]" for name in PARTS)
INDENT, LOOK_S = " " * 4, 0.5


@dataclass(frozen=True)
class Said:
    """A part that ran, its line, and the share of the processors that other programs took."""

    outcome: Outcome
    verdict: str
    others: float

    def as_json(self) -> dict[str, Any]:
        return {"ran": True, "verdict": self.verdict, "others": self.others, **self.outcome.data}


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


def play(part: Part, request: Request, prepared: Any) -> Said | Skip:
    """Runs a part, and shows what came of it."""
    if isinstance(prepared, Skip):
        show(part.name, f"not run here: {prepared}", "yellow")
        return prepared
    others = machine.share_in_use(LOOK_S)
    try:
        outcome = part.run(request, prepared, Clock(part.seconds))
    except Skip as reason:
        return play(part, request, reason)
    except typer.Exit:  # it has said why
        return play(part, request, Broken("its program failed"))
    others = max(others, machine.share_in_use(LOOK_S))
    verdict = outcome.verdict(others)
    show(part.name, verdict, outcome.colour if verdict == outcome.verdict(0) else "yellow")
    for detail in outcome.details:
        out.print(Text(wrapped(detail), "dim"))
    return Said(outcome, verdict, others)


def show(name: str, text: str, colour: str) -> None:
    """A line that begins with the name of a part. What follows it is indented."""
    shown = Text(wrapped(f"{name}: {text}", ""), colour)
    shown.stylize("bold", 0, len(name))
    out.print(shown)


def wrapped(text: str, first: str = INDENT) -> str:
    return textwrap.fill(
        text, out.width, initial_indent=first, subsequent_indent=INDENT, break_on_hyphens=False, break_long_words=False
    )


def fetch_mpich(parts: list[Part], found: list[Mpi]) -> Callable[[], Mpi] | None:
    """Begins to install PyPI's MPICH if a part needs one and there is none. Returns what waits for it."""
    if crowded.PART not in parts or crowded.mpich(found):
        return None
    one = ThreadPoolExecutor(1, thread_name_prefix="stretto-mpich")
    fetched = one.submit(wheels.install_wheel, "mpich")
    one.shutdown(wait=False)
    return fetched.result


Only = Annotated[
    Optional[list[str]],
    typer.Option("--only", "--part", metavar="PART", help=f"This part alone: {NAMES}. May be repeated."),
]
Np = Annotated[
    Optional[int],
    typer.Option(
        "-n",
        "--ranks",
        "--np",
        min=1,
        metavar="N",
        help="Number of ranks on one node. Default: one per usable CPU, 2 to 16.",
    ),
]
Matrix = Annotated[
    Optional[Path],
    typer.Option(
        "--matrix",
        metavar="FILE.mtx",
        exists=True,
        dir_okay=False,
        help="PageRank of this Matrix Market file instead of a generated graph.",
    ),
]
Vertices = Annotated[
    Optional[int],
    typer.Option("--vertices", metavar="N", min=1, help="Size of PageRank's generated graph. Default: 50000."),
]
Repetitions = Annotated[
    int, typer.Option("--repeat", "-r", "--repetitions", min=1, metavar="N", help="Runs of each kind, as time allows.")
]
Bench = Annotated[
    bool, typer.Option("--bench/--no-bench", help="With PageRank: also a short benchmark of single collectives.")
]
JsonFile = Annotated[
    Optional[Path],
    typer.Option("--json", metavar="FILE", help="Write the measurements as JSON into FILE ([b]-[/]: stdout)."),
]
Picture = Annotated[
    Optional[Path],
    typer.Option("--plot", "--picture", metavar="FILE", help="Draw it (PNG, SVG, PDF). Default: build/demo.png."),
]
Force = Annotated[bool, typer.Option("--force", help="Also with more ranks than this machine can bear.")]


def command(
    only: Only = None,
    np: Np = None,
    mpi: MpiName = None,
    matrix: Matrix = None,
    vertices: Vertices = None,
    repetitions: Repetitions = 9,
    bench: Bench = True,
    json_file: JsonFile = None,
    picture: Picture = None,
    force: Force = False,
) -> None:
    """Show what Stretto is for, in a minute: programs with and without it, results checked. Where other programs \
run, it says so in place of how much faster they are.

    [b]node[/]: a program on one node that spends its time in a collective. [b]crowded[/]: more ranks than processors, \
on MPICH. [b]mismatch[/]: a program that hangs, and whose mistake Stretto names. [b]hosts[/]: four hosts on \
Ethernet, made of namespaces. On request [b]pagerank[/]: PageRank by phases.

    The programs (examples/) do not know of Stretto.
    """
    check_outputs(json_file, picture=picture)
    ranks = np or min(max(len(os.sched_getaffinity(0)), 2), 16)
    check_crowd(ranks, force)
    parts = chosen_parts(only or [], matrix is not None or vertices is not None)
    fetched = fetch_mpich(parts, finding.find_all())
    chosen = choosing.choose(mpi)
    arguments = ["--matrix", str(matrix.absolute())] if matrix else ["--vertices", str(vertices or 50000)]
    found = finding.find_all()
    request = Request(chosen, ranks, repetitions, found, fetched, (*arguments, "--topics", "32"), bench)
    prepared = {}
    library_for(chosen.abi)
    for part in parts:
        try:
            prepared[part.name] = prepare(part, request)
        except Skip as reason:
            prepared[part.name] = reason
    show("stretto demo", f"{chosen.title} on {machine.one_line()}", "")
    outcomes = {part.name: play(part, request, prepared[part.name]) for part in parts}
    target = picture or build_root() / "demo.png"
    draw(target, f"{title_of(outcomes, chosen)}\n{machine.one_line()}", panels_of(outcomes))
    note(f"picture: {target}")
    document = {
        name: {"ran": False, "why_not": str(came)} if isinstance(came, Skip) else came.as_json()
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
    if any(came.outcome.failed if isinstance(came, Said) else isinstance(came, Broken) for came in outcomes.values()):
        raise typer.Exit(1)


def title_of(outcomes: dict[str, Said | Skip], mpi: Mpi) -> str:
    others = max((came.others for came in outcomes.values() if isinstance(came, Said)), default=0.0)
    return f"stretto demo, {mpi.title}" + (f"; {busy(others)}" if others > QUIET else "")


def panels_of(outcomes: dict[str, Said | Skip]) -> list[Panel]:
    panels: list[Panel] = []
    for name, came in outcomes.items():
        why_not = partial(words, title=PARTS[name].about, text=f"not run here: {came}")
        panels += [why_not] if isinstance(came, Skip) else came.outcome.panels
    return panels
