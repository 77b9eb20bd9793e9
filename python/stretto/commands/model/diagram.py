# SPDX-License-Identifier: BSD-3-Clause
"""model diagram: a space-time diagram."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.commands.model_options import (
    Algorithms,
    K,
    Levels,
    LogP,
    Op,
    Ordered,
    PerNode,
    ProfileFile,
    Ranks,
    Root,
    Segments,
    Sizes,
    Topology,
    call_of,
    load,
    numbers,
    place,
)
from stretto.core import output_files
from stretto.core.console import fail
from stretto.core.units import format_time
from stretto.model import diagram, timer
from stretto.model.text import call_text, ranks_text


def command(
    op: Op,
    plot: Annotated[
        Path, typer.Option("--plot", metavar="FILE", help="SVG, PNG or PDF.", callback=output_files.drawable)
    ],
    algorithm: Algorithms = None,
    ranks: Ranks = "16",
    sizes: Sizes = "8",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    root: Root = 0,
    k: K = None,
    segments: Segments = 1,
    ordered: Ordered = False,
    title: Annotated[
        Optional[str], typer.Option("--title", metavar="TEXT", help="Instead of what is drawn.", show_default=False)
    ] = None,
) -> None:
    """Draw who does what when: the space-time diagram of a collective, with its critical path."""
    costs = load(profile, logp)
    line = call_of(op, algorithm, ranks, sizes, root=root, k=k, segments=segments, ordered=ordered, alone="diagram")
    if (number := numbers(ranks, "--ranks")[0]) > diagram.MOST_RANKS:
        fail(
            f"diagram: {number} ranks: more than {diagram.MOST_RANKS} cannot be told apart in a picture; `predict "
            "--per-rank` lists them"
        )
    job = timer.ask_json("trace", costs, [*line, *place(levels, topology, per_node)])
    diagram.draw(
        job,
        costs,
        plot,
        title
        or f"{call_text(op, numbers(sizes, '--sizes')[0])}, {job['name']}: "
        f"{ranks_text(job['ranks'])}, {format_time(job['time'], costs.unit)}",
    )
