# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts, the table and the picture of the runs of PageRank."""

from __future__ import annotations

import math
from typing import Any

from rich.table import Table

from stretto.bench import pagerank
from stretto.bench.verdicts import NO_DIFFERENCE, of_ratios
from stretto.core.console import out
from stretto.mpi import Mpi

CAPTION = (
    "Ratio: median over pairs of neighbouring runs. A phase's time is that of the rank for which it was longest, "
    "and who waits in a collective "
    "for one that still computes counts that there: phases may add up to more than the whole run."
)


def contradictory(rows: dict[str, Any]) -> list[str]:
    """Rows whose two medians contradict the ratios of their pairs, because runs differ more than
    the two ways do."""
    return [
        name
        for name, row in rows.items()
        if abs(math.log(row["stretto_ms"] / max(row["mpi_ms"], 1e-9) / row["ratio"])) > math.log(1.15)
        and row["mpi_ms"] > 0.02 * rows["total"]["mpi_ms"]
    ]


def show(rows: dict[str, Any], mpi: Mpi, np: int) -> None:
    table = Table(
        title=f"PageRank on {np} ranks, milliseconds (medians)",
        title_style="bold",
        header_style="bold",
        caption=CAPTION,
    )
    table.add_column("Phase")
    for heading in (mpi.title, "with Stretto", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for name, row in rows.items():
        words, colour = of_ratios(row["ratios"])
        style = "bold" if name in ("collectives", "total") else ""
        if name == "collectives":
            table.add_section()
        table.add_row(
            title_of(name),
            f"{row['mpi_ms']:.2f}",
            f"{row['stretto_ms']:.2f}",
            f"{row['ratio']:.2f}",
            f"[{colour}]{words}[/]",
            style=style,
        )
    out.print(table)
    if names := contradictory(rows):
        out.print(
            f"[yellow]{', '.join(map(title_of, names))}[/]: the two times do not have this ratio, because runs of "
            "one way differ more from each "
            "other than the two ways do: the machine is busy. The ratio, of runs that follow each other, is the "
            "better figure."
        )


def title_of(name: str) -> str:
    return pagerank.PHASES.get(name, {"collectives": "all collectives", "total": "whole run"}.get(name, name))


def conclude(rows: dict[str, Any], identical: bool) -> None:
    out.print(
        "[green]The results are identical[/], bit for bit, in all runs."
        if identical
        else "[bold red]The results differ: this is a bug of ours, please report it.[/]"
    )
    inside, _ = of_ratios(rows["collectives"]["ratios"])
    whole, _ = of_ratios(rows["total"]["ratios"])
    share = rows["collectives"]["mpi_ms"] / max(rows["total"]["mpi_ms"], 1e-9)
    out.print(
        f"In the collectives: [bold]{inside}[/]. The whole run: [bold]{whole}[/]; "
        f"without Stretto it spends {share:.0%} of its time in collectives, which bounds what can be won."
    )
    between, _ = of_ratios(rows["compute"]["ratios"])
    if between != NO_DIFFERENCE:
        out.print(
            f"Computing, in which MPI has no part: [bold]{between}[/]. A collective leaves its data in some cache "
            "or other, and who computes next "
            "gains or pays: what counts is the whole run."
        )


def draw_phases(bars: Any, rows: dict[str, Any], title: str, np: int) -> None:
    names = [*pagerank.COLLECTIVES, "compute"]
    for shift, way, colour in ((-0.2, "mpi", "#9aa5b1"), (0.2, "stretto", "#2f7d4f")):
        bars.bar(
            [i + shift for i in range(len(names))],
            [rows[n][f"{way}_ms"] for n in names],
            0.38,
            color=colour,
            label=title if way == "mpi" else "with Stretto",
        )
    bars.set_xticks(
        range(len(names)), [pagerank.PHASES[n].replace(" of ", "\nof ").replace(" (", "\n(") for n in names], fontsize=8
    )
    bars.set_ylabel("milliseconds (median)")
    bars.set_title(f"PageRank, {np} ranks")
    bars.legend(frameon=False)


def draw_bench(axis: Any, bench: dict[str, Any]) -> None:
    by_op: dict[str, list[tuple[int, float]]] = {}
    for row in bench["results"]:
        by_op.setdefault(row["op"], []).append((row["bytes"], row["ratio"]))
    for op, points in by_op.items():
        points.sort()
        axis.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, label=op)
    axis.axhline(1, color="#888888", linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    sizes = sorted({row["bytes"] for row in bench["results"]})[::2]
    axis.set_xticks(sizes, [f"{size >> 10} KiB" if size >= 1024 else f"{size} B" for size in sizes])
    axis.minorticks_off()
    axis.set_xlabel("one rank's block")
    axis.set_ylabel("time / the MPI's own")
    axis.set_title(f"Collectives, {bench['np']} ranks (below 1: faster)")
    axis.legend(frameon=False, fontsize=8)
