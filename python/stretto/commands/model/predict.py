# SPDX-License-Identifier: BSD-3-Clause
"""model predict: the time of a collective, and its parts."""

from __future__ import annotations

from typing import Annotated, Any

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
    Root,
    Segments,
    Sizes,
    Topology,
    call_of,
    load,
    place,
)
from stretto.core.console import out
from stretto.core.reports import write_json
from stretto.core.units import format_size, format_time
from stretto.model import timer
from stretto.model.text import call_text, format_parts, ranks_text, say_profile


def command(
    op: Op,
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
    per_rank: Annotated[bool, typer.Option("--per-rank", help="Start, end and idle time of every rank.")] = False,
    posted: Annotated[
        bool, typer.Option("--posted", help="The most messages and bytes on their way to one rank or domain at a time.")
    ] = False,
    json_file: JsonFile = None,
) -> None:
    """The time of a collective, what it goes into, and with --per-rank what each rank does meanwhile."""
    costs = load(profile, logp)
    line = call_of(op, algorithm, ranks, sizes, root=root, k=k, segments=segments, ordered=ordered)
    asked = [name for name, wanted in (("--per-rank", per_rank), ("--posted", posted)) if wanted]
    report = timer.ask_json("predict", costs, [*line, *place(levels, topology, per_node), *asked])
    write_json(json_file, "model.predict", {"profile": costs.origin, **report})
    if json_file and str(json_file) == "-":
        return
    say_profile(costs)
    out.print(prediction_table(op, report["predictions"], costs.unit))
    if per_rank:
        for each in report["predictions"]:
            out.print(rank_table(op, each, costs.unit))


def prediction_table(op: str, predictions: list[dict[str, Any]], unit: str) -> Table:
    table = Table(title=op, title_justify="left", box=None, pad_edge=False)
    levels = [crossed["level"] for crossed in predictions[0]["crossed"]] if predictions else []
    places = [posted["level"] for posted in predictions[0].get("posted", [])] if predictions else []
    for name, justify in (
        ("algorithm", "left"),
        ("ranks", "right"),
        ("bytes", "right"),
        ("time", "right"),
        ("messages", "right"),
        ("critical path", "left"),
        ("mean idle", "right"),
        *((f"leave {level}", "left") for level in levels),
        *((f"at once to a {name}", "left") for name in places),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for each in predictions:
        mean = each["mean"]
        idle = 1 - mean["busy"] / each["time"] if each["time"] else 0
        if each.get("timed_ranks"):
            table.caption = "All ranks do the same, so few were timed: see timed_ranks of --json"
        table.add_row(
            each["name"],
            str(each["ranks"]),
            "-" if op == "barrier" else format_size(each["bytes"]),
            format_time(each["time"], unit),
            str(each["critical"]["messages"]),
            format_parts(each["critical"]),
            f"{max(idle, 0):.0%}",
            *(f"{some['messages']}, {format_size(some['bytes'])}" for some in each["crossed"] + each.get("posted", [])),
        )
    return table


def rank_table(op: str, prediction: dict[str, Any], unit: str, most: int = 64) -> Table:
    title = f"{call_text(op, prediction['bytes'])}, {prediction['name']}, {ranks_text(prediction['ranks'])}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("rank", "end", "busy", "waits: partner", "wire", "port", "gap", "crowd"):
        table.add_column(name, justify="right")
    for each in prediction["per_rank"][:most]:
        idle = [
            format_time(each["idle"][cause], unit) if each["idle"][cause] else "-"
            for cause in ("partner", "wire", "port", "gap", "crowd")
        ]
        table.add_row(str(each["rank"]), format_time(each["end"], unit), format_time(each["busy"], unit), *idle)
    if len(prediction["per_rank"]) > most:
        table.caption = f"{len(prediction['per_rank']) - most} more: --json has them all"
    return table
