# SPDX-License-Identifier: BSD-3-Clause
"""Tables of what `stretto bench` has measured."""

from __future__ import annotations

from rich.measure import Measurement
from rich.table import Table

from stretto.bench import figures
from stretto.bench.program import Row
from stretto.bench.request import CHAINS, LONG
from stretto.core.console import out
from stretto.core.units import format_size

# Paper S1's claims against Open MPI 4.1.2 at 8 and 16 ranks on 16 cores, blocks of at most 64 KiB.
S1_CLAIMS = {"scatterv": 0.4, "gatherv": 0.1, "allgatherv": 0.3}
BUSY_FLAG = 8  # a flag between any two processors takes at most so many times that between the nearest two


def colour(value: float, good: float, bad: float, digits: int = 2) -> str:
    style = "green" if value <= good else "red" if value > bad else "yellow"
    return f"[{style}]{value:.{digits}f}[/]"


def format_us(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


TEXTS = ("", "operation", "path", "which work")  # columns of text


def show_table(title: str, names: list[str], rows: list[list[str]], *dispensable: str) -> None:
    """Prints a table. Columns for which there is no room are left out, in this order, because a
    number that is cut is wrong."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in names:
        table.add_column(name, justify="left" if name in TEXTS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    if dispensable and Measurement.get(out, out.options.update_width(1000), table).maximum > out.width:
        i = names.index(dispensable[0])
        return show_table(title, names[:i] + names[i + 1 :], [row[:i] + row[i + 1 :] for row in rows], *dispensable[1:])
    out.print(table)


def show_rows(doc: Row) -> None:
    several = isinstance(doc["np"], list)
    names = (["ranks"] if several else []) + [
        "operation",
        "bytes",
        "ours",
        "MPI's",
        "ratio",
        "bound",
        "ours/bound",
        "path",
    ]
    rows: list[list[str]] = []
    previous = None
    for r in doc["results"]:
        if previous not in (None, r["op"]):
            rows.append([])
        previous = r["op"]
        cells = [str(r["np"])] if several else []
        cells += [
            r["op"],
            format_size(r["bytes"]),
            format_us(r["ours_us"]),
            format_us(r["mpi_us"]),
            colour(r["ratio"], 1.0, doc["lost_above"]),
            format_us(r["bound_us"]),
            colour(figures.ratio(r["ours_us"], r["bound_us"]), 1.25, 1.5),
            r["path"],
        ]
        rows.append(cells)
    whose = "means of the ranks" if doc["method"] == "osu" else "the slowest rank"
    show_table(
        f"{doc['mpi_title']}, method {doc['method']}: times in us, {whose}",
        names,
        rows,
        "path",
        "bound",
        "ours/bound",
        "MPI's",
    )


def show_summary(doc: Row) -> None:
    claims = any(op in S1_CLAIMS for op in doc["geomean"]) and out.width >= 80
    names = ["operation", "all sizes", "to 64K", *(["published, to 64K *"] if claims else []), "worst ours/bound"]
    rows = []
    for op, value in doc["geomean"].items():
        small = doc["geomean_to_64k"].get(op)
        rows.append(
            [
                op,
                colour(value, 1.0, doc["lost_above"]),
                "" if small is None else f"{small:.2f}",
                *([str(S1_CLAIMS.get(op, ""))] if claims else []),
                f"{doc['bound_ratio_max'][op]:.2f}",
            ]
        )
    show_table("time / the MPI's own: geometric means (below 1: faster)", names, rows)
    if claims:
        out.print(
            "* Romanyuta and Kurnosov's figures (paper S1 of docs/measuring.md), against Open MPI 4.1.2 with 8 "
            "and 16 ranks on 16 cores"
        )
    if text := flags_text(doc):
        out.print(text)
    for r in doc["lost"]:
        where = f"{r['op']} {format_size(r['bytes'])}" + (f", {r['np']} ranks" if "np" in r else "")
        out.print(
            f"[red]lost[/] (above {doc['lost_above']} in all of {doc['runs']} run(s)): {where}: "
            + ", ".join(f"{v:.2f}" for v in r["ratios"])
        )
    for r in doc.get("over_bound", []):
        out.print(
            f"[red]over the bound[/]: {r['op']} {format_size(r['bytes'])}: {r['bound_ratio']:.2f} times "
            f"{format_us(r['bound_us'])} us"
        )


def flags_text(doc: Row) -> str | None:
    """Why the time of a bare flag varied, if each rank has a processor."""
    nearest, farthest = min(doc["flag_ns"]), max(doc["flag_ns"])
    if not isinstance(doc["np"], int) or doc["np"] > doc["machine_details"]["cpus_usable"] or farthest <= 1.5 * nearest:
        return None
    why = (
        "the machine was busy, and ranks had to wait for a processor: figures may be worth little"
        if farthest > BUSY_FLAG * nearest
        else "the processors were nearer to each other for some rows than for others, or the machine was busy"
    )
    return f"A bare flag took {nearest:.0f} to {farthest:.0f} ns: {why}."


def show_latency(doc: Row) -> None:
    latency = doc["latency"]
    rows = [["flag transfer", "", "", f"{latency['flag_ns']:.0f} ns", "1.00"]]
    for row in latency["chains"]:
        rows.append(
            [
                CHAINS[row["op"]],
                *(f"{row[f'{c}_ns']:.0f} ns" for c in figures.CONTENDERS),
                colour(row["per_flag"], 2.0, 2.0),
            ]
        )
    show_table(
        f"{doc['mpi_title']}, {doc['np']} ranks: one way, chained calls",
        ["", "ours", "MPI's", "bound", "ours / flag"],
        rows,
        "MPI's",
    )
    names = ["", "ours", "MPI's", "bound", "private data", "ours / that", "which work"]
    rows = []
    for row in latency["long"]:
        what, limit = LONG[row["op"]]
        rows.append(
            [
                f"{row['op']} {format_size(row['bytes'])}",
                *(format_us(row[f"{c}_us"]) for c in figures.CONTENDERS),
                format_us(row["plain_us"]),
                colour(row["per_plain"], limit, limit),
                what,
            ]
        )
    show_table("Long calls beside the same work on private data, us", names, rows, "which work", "bound", "MPI's")


def show(doc: Row) -> None:
    if doc["results"]:
        show_rows(doc)
        show_summary(doc)
    if "latency" in doc:
        show_latency(doc)
