# SPDX-License-Identifier: BSD-3-Clause
"""model node: which cache lines a collective moves on a machine of many cores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto.commands.model import calibrate as calibration
from stretto.commands.model_options import JsonFile, Sizes, numbers
from stretto.core import arguments, output_files
from stretto.core.console import fail, note, out
from stretto.core.reports import write_json
from stretto.core.units import format_size, format_time
from stretto.model import machine as machines
from stretto.model import node, node_pictures

FEW = 2  # rows whose heat maps are shown without being asked for


Machine = Annotated[
    Optional[str],
    typer.Option(
        "--machine",
        "-m",
        metavar="NAME|FILE",
        help=f"One of {', '.join(f'[b]{name}[/]' for name in machines.names())}, or a file like theirs. "
        "Default: epyc-2x64.",
        show_default=False,
    ),
]
Op = Annotated[
    Optional[list[str]],
    typer.Option("--op", metavar="NAME", help="Collective; may be repeated. [b]all[/]: every one.", show_default=False),
]
Ranks = Annotated[
    str, typer.Option("--ranks", "-n", metavar="LIST", help="As [b]128[/], [b]16,64[/] or [b]2:128[/], doubled.")
]
Way = Annotated[
    Optional[list[str]],
    typer.Option(
        "--way",
        metavar="WAY",
        help="[b]ours[/] is the library, [b]shm:slices[/] an algorithm of it. Others are bare flags: [b]flat[/], "
        "[b]p2p[/], or groups within groups, as [b]l3+numa+socket[/] (like xhc) or [b]4+socket[/]. "
        "May be repeated.",
        show_default=False,
    ),
]
By = Annotated[
    str, typer.Option("--map", metavar="DOMAIN", help="Ranks go to cores in turn, or are dealt to l3, numa, socket.")
]
Heat = Annotated[bool, typer.Option("--heat", help="A heat map of each row's lines between L3 domains.")]
Plot = Annotated[
    Optional[Path],
    typer.Option(
        "--plot",
        "--picture",
        metavar="FILE",
        help="Draw the lines between L3 domains (PNG, SVG or PDF).",
        show_default=False,
        callback=output_files.drawable,
    ),
]
Calibrate = Annotated[
    bool, typer.Option("--calibrate", help="Measure this machine's own lines and calls, beside the model's.")
]


def command(
    machine: Machine = None,
    op: Op = None,
    ranks: Ranks = "128",
    sizes: Sizes = "8",
    way: Way = None,
    by: By = "core",
    heat: Heat = False,
    plot: Plot = None,
    calibrate: Calibrate = False,
    json_file: JsonFile = None,
) -> None:
    """The cache lines that a collective of this library moves on a machine of many cores: how many,
    between which caches, and what they take. It runs the library's code on a played machine."""
    if calibrate:
        return calibration.command(machine, json_file)
    if by not in machines.MAPS:
        fail(f"--map: {by}: one of {', '.join(machines.MAPS)}")
    played = machines.load(machine or "epyc-2x64")
    ops = arguments.checked_ops(op or ["allreduce"], node.COLLECTIVES)
    lengths = numbers(sizes, "--sizes", 1)
    check_lengths(ops, lengths)
    rows: list[dict[str, Any]] = []
    for count in numbers(ranks, "--ranks", 2):
        rows += node.ask(played, ops, count, lengths, way or [node.OURS], by)
    write_json(json_file, "model.node", {"machine": played.document, "map": by, "results": rows})
    if plot and rows:
        node_pictures.plot(rows, played, plot)
    if json_file and str(json_file) == "-":
        return
    out.print(f"{played.name}: {played.about}", markup=False, style="dim")
    out.print(table_of(rows))
    if heat or len(rows) <= FEW:
        for row in rows:
            out.print()
            out.print(node_pictures.heat_map(row, played))
    if plot and len(rows) > node_pictures.MOST_PANELS:
        note(f"{plot} shows the first {node_pictures.MOST_PANELS} of {len(rows)} rows")


def check_lengths(ops: list[str], lengths: list[int]) -> None:
    """Sums are of doubles."""
    sums = [op for op in ops if op in ("reduce", "allreduce", "scan", "reduce_scatter_block")]
    if sums and (wrong := [length for length in lengths if length % 8]):
        fail(f"--sizes {wrong[0]}: {sums[0]} adds doubles, of 8 bytes each")


def table_of(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("op", "way"):
        table.add_column(name)
    for name in ("ranks", "bytes", "lines", "most readers", "crowded", "between sockets", "time"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row["op"],
            row["way"],
            str(row["ranks"]),
            "-" if row["op"] == "barrier" else format_size(row["bytes"]),
            f"{row['line_transfers']:,.0f}",
            str(row["most_readers"]),
            f"{row['crowded_lines']:,.0f}",
            f"{row['socket_transfers']:,.0f}",
            format_time(row["time_us"] * 1e3),
        )
    return table
