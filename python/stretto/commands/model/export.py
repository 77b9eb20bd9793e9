# SPDX-License-Identifier: BSD-3-Clause
"""model export: schedules for other simulators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    place,
    write_text,
)
from stretto.core import output_files
from stretto.model import timer


def command(
    op: Op,
    goal: Annotated[
        Path,
        typer.Option(
            "--goal",
            metavar="FILE",
            help="GOAL text, for LogGOPSim and its kin ([b]-[/]: stdout).",
            callback=output_files.writable,
        ),
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
) -> None:
    """Write the schedules of all ranks for other simulators."""
    line = call_of(op, algorithm, ranks, sizes, root=root, k=k, segments=segments, ordered=ordered, alone="export")
    text = timer.ask("goal", load(profile, logp), [*line, *place(levels, topology, per_node)])
    write_text(goal, text)
