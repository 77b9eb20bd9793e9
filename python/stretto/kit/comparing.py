# SPDX-License-Identifier: BSD-3-Clause
"""What the kit measured on a machine, beside what the model of a node says of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from stretto.bench.figures import geomean
from stretto.core.console import fail
from stretto.core.reports import read_json
from stretto.core.units import format_size
from stretto.model import node
from stretto.model.machine import NodeMachine

Row = dict[str, Any]
Call = tuple[str, int, int]  # operation, ranks, bytes
OF_THE_MODEL = ("line_transfers", "most_readers", "socket_transfers", "way")


def read_model(path: Path) -> list[Row]:
    """The results of `stretto model node --json`."""
    found = read_json(path)
    rows = found.get("results") if isinstance(found, dict) else None
    needed = {"op", "ranks", "bytes", "time_us"}
    if not isinstance(rows, list) or not all(isinstance(row, dict) and needed <= row.keys() for row in rows):
        fail(f"{path}: not a file of `stretto model node`")
    return rows


def of_mpi(results: Iterable[Row], mpi: str) -> list[Row]:
    """What was measured with one MPI, among ranks that are close."""
    return [row for row in results if row["mpi"] == mpi and row["placement"] == "close"]


def chosen(
    results: Iterable[Row], ops: Sequence[str], sizes: tuple[int, int], ranks: Sequence[int] | None
) -> list[Row]:
    least, most = sizes
    return [
        row
        for row in results
        if row["op"] in ops and row["bytes"] in (0, *range(least, most + 1)) and (not ranks or row["ranks"] in ranks)
    ]


def predict(machine: NodeMachine, results: Sequence[Row]) -> list[Row]:
    """What the model says of these calls. Many ranks take minutes."""
    calls: dict[tuple[str, int], list[int]] = {}
    for row in results:
        if row["ranks"] <= machine.cores:
            calls.setdefault((row["op"], row["ranks"]), []).append(row["bytes"])
    return [row for (op, ranks), sizes in calls.items() for row in node.ask(machine, [op], ranks, sizes, [node.OURS])]


def rows(measured: Iterable[Row], predicted: Iterable[Row]) -> list[Row]:
    """Calls that both know, and that Stretto served."""
    model = {_call(row): row for row in predicted}
    times = {_call(row): row for row in measured}
    found = []
    for call, row in times.items():
        if (expected := model.get(call)) and row["path"] != "host":
            half = times.get((call[0], call[1] // 2, call[2]))
            found.append(
                {
                    "op": call[0],
                    "ranks": call[1],
                    "bytes": call[2],
                    "measured_us": row["ours_us"],
                    "model_us": expected["time_us"],
                    "ratio": row["ours_us"] / expected["time_us"],
                    # What twice the ranks cost.
                    "step": row["ours_us"] / half["ours_us"] if half and half["ours_us"] else None,
                    "mpi_us": row["mpi_us"],
                    **{key: expected.get(key) for key in OF_THE_MODEL},
                }
            )
    return found


def _call(row: Row) -> Call:
    return row["op"], row["ranks"], row["bytes"]


def document(data: Row, compared: Sequence[Row], mpi: str, machine: str) -> Row:
    ops = dict.fromkeys(row["op"] for row in compared)
    by_op = {op: [row["ratio"] for row in compared if row["op"] == op] for op in ops}
    return {
        "machine": machine,
        "mpi": mpi,
        "measured": {"cpu": data["machine"]["cpu"], "begun": data["begun"], "method": data["settings"]["method"]},
        "results": list(compared),
        "geomean": {op: geomean(ratios) for op, ratios in by_op.items()},
        "least": {op: min(ratios) for op, ratios in by_op.items()},
        "most": {op: max(ratios) for op, ratios in by_op.items()},
    }


def table(doc: Row) -> Table:
    made = Table(title=f"{doc['measured']['cpu']} beside the model {doc['machine']}", title_justify="left")
    headings = ("operation", "bytes", "ranks", "measured us", "model us", "measured / model", "to half the ranks")
    for heading in (*headings, "the MPI's own us", "lines", "way"):
        made.add_column(heading, justify="left" if heading in ("operation", "way") else "right")
    for row in doc["results"]:
        made.add_row(
            row["op"],
            format_size(row["bytes"]),
            str(row["ranks"]),
            f"{row['measured_us']:.2f}",
            f"{row['model_us']:.2f}",
            f"{row['ratio']:.2f}",
            "" if row["step"] is None else f"{row['step']:.2f}",
            f"{row['mpi_us']:.2f}",
            "" if row["line_transfers"] is None else f"{row['line_transfers']:.0f}",
            row["way"] or "",
        )
    return made
