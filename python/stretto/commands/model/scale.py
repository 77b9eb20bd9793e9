# SPDX-License-Identifier: BSD-3-Clause
"""model scale: how the time grows with the number of ranks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.table import Table

from stretto.commands.model_options import (
    Algorithms,
    JsonFile,
    K,
    Levels,
    LogP,
    Op,
    Ordered,
    PerNode,
    ProfileFile,
    Ranks,
    Segments,
    Sizes,
    Topology,
    call_of,
    load,
    numbers,
    only,
    place,
)
from stretto.core import output_files
from stretto.core.console import note, out
from stretto.core.reports import write_json
from stretto.core.units import format_time
from stretto.model import growth, plots, timer
from stretto.model.text import call_text, say_profile


def command(
    op: Op,
    algorithm: Algorithms = None,
    ranks: Ranks = "2:4096",
    sizes: Sizes = "8",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    k: K = None,
    segments: Segments = 1,
    ordered: Ordered = False,
    plot: Annotated[
        Optional[Path],
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Draw it (PNG, SVG or PDF).",
            show_default=False,
            callback=output_files.drawable,
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """How the time grows with the number of ranks: fitted with log P, sqrt P and P."""
    costs = load(profile, logp)
    size = only(numbers(sizes, "--sizes"), "--bytes", "scale")
    line = call_of(op, algorithm, ranks, sizes, k=k, segments=segments, ordered=ordered)
    report = timer.ask_json("predict", costs, [*line, *place(levels, topology, per_node)])
    curves = growth.curves_of(report["predictions"])
    write_json(
        json_file,
        "model.scale",
        {"profile": costs.origin, "op": op, "bytes": size, "unit": costs.unit, "curves": curves},
    )
    if plot:
        plots.plot_scale(curves, call_text(op, size), costs, plot)
    if json_file and str(json_file) == "-":
        return
    say_profile(costs)
    table = Table(title=call_text(op, size), title_justify="left", box=None, pad_edge=False)
    for name in ("algorithm", "growth", "formula", "off by at most", f"at P = {curves[0]['ranks'][-1]}"):
        table.add_column(name)
    for curve in curves:
        fit = curve["fit"]
        cells = (fit["growth"], growth.formula(fit, costs.unit), f"{fit['worst']:.0%}") if fit else ("-", "-", "-")
        table.add_row(curve["algorithm"], *cells, format_time(curve["times"][-1], costs.unit))
    out.print(table)
    if not all(curve["fit"] for curve in curves):
        note(why_no_growth(curves[0]["ranks"]))


def why_no_growth(ranks: Sequence[int]) -> str:
    if len(set(ranks)) < growth.LEAST_POINTS:
        return f"to say how the time grows takes {growth.LEAST_POINTS} numbers of ranks, as -n 2:4096"
    return "how the time grows cannot be said where a call takes none"
