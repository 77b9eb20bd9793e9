# SPDX-License-Identifier: BSD-3-Clause
"""model chains: a Reduce by k chains for every k."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.table import Table

from stretto.commands.model_options import JsonFile, Levels, LogP, ProfileFile, Ranks, Sizes, load, numbers, place
from stretto.core import output_files
from stretto.core.console import fail, out
from stretto.core.reports import write_json
from stretto.core.units import format_size, format_time
from stretto.model import plots, timer
from stretto.model.text import say_profile


Plot = Annotated[
    Optional[Path],
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw time against the number of chains.",
        show_default=False,
        callback=output_files.drawable,
    ),
]


def command(
    ranks: Ranks = "100,200,300,400",
    sizes: Sizes = "8",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    plot: Plot = None,
    json_file: JsonFile = None,
) -> None:
    """A Reduce by k chains for every k: estimate, timer, the best k and the practical rule's."""
    costs = load(profile, logp)
    counts, lengths = numbers(ranks, "--ranks", 2), numbers(sizes, "--sizes")
    if plot and min(counts) < plots.LEAST_CHAINED:
        fail(f"chains: to draw it takes {plots.LEAST_CHAINED} ranks or more")
    report = timer.ask_json(
        "chains",
        costs,
        ["--ranks", ",".join(map(str, counts)), "--bytes", ",".join(map(str, lengths)), *place(levels, None, 1)],
    )
    write_json(json_file, "model.chains", {"profile": costs.origin, **report})
    if plot:
        if not all(p["time"] for curve in report["curves"] for p in curve["points"]):
            fail("chains: nothing to draw: by this profile some of them take no time")
        (plots.plot_chains if len(lengths) == 1 else plots.plot_chains_of_lengths)(report["curves"], costs, plot)
    if json_file and str(json_file) == "-":
        return
    say_profile(costs)
    table = Table(title="reduce, k chains", title_justify="left", box=None, pad_edge=False)
    for name in (
        "ranks",
        "bytes",
        "best k",
        "time",
        "estimate's best k",
        "practical k",
        "time",
        "of the best",
        "staggered chains",
    ):
        table.add_column(name, justify="right")
    for curve in report["curves"]:
        times = {p["k"]: p["time"] for p in curve["points"]}
        best, practical = min(times, key=lambda k: times[k]), curve["practical_k"]
        table.add_row(
            str(curve["ranks"]),
            format_size(curve["bytes"]),
            str(best),
            format_time(times[best], costs.unit),
            str(curve["estimate_best_k"]),
            str(practical),
            format_time(times[practical], costs.unit),
            f"{times[practical] / times[best]:.2f}" if times[best] else "-",
            "-" if levels else format_time(curve["staggered"], costs.unit),
        )
    out.print(table)
