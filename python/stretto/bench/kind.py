# SPDX-License-Identifier: BSD-3-Clause
"""Measures calls in which a program waits (bench/kind.cpp): the MPI's own waits, and kind waiting, by turns."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from stretto.bench import program
from stretto.bench.program import Row
from stretto.bench.provenance import provenance
from stretto.core.console import note, out
from stretto.core.units import format_size
from stretto.mpi import Mpi, environments
from stretto.native.build import library_for

# What takes turns: without the library, with it but no kind waiting, with it as a user gets it.
CONTENDERS: dict[str, dict[str, str] | None] = {"mpi": None, "off": {"STRETTO_KIND": "off"}, "auto": {}}


@dataclass(frozen=True)
class Request:
    ranks: tuple[int, ...]
    runs: int
    budget: float
    most_times: int

    def arguments(self) -> list[str]:
        return [str(self.budget), str(self.most_times)]


def run(mpi: Mpi, np: int, argv: Sequence[str | Path], settings: dict[str, str] | None) -> list[Row]:
    """The rows of one job."""
    env = {} if settings is None else environments.rank_environment(library_for(mpi.abi), settings)
    events = program.run_job(mpi, mpi.command(np, argv, env), lambda _: None)
    return [event for event in events if event["event"] == "row"]


def measure(request: Request, mpi: Mpi) -> list[Row]:
    """Medians of the runs, by ranks, pattern and length."""
    argv = [program.program(mpi, "kind"), *request.arguments()]
    times: dict[tuple[int, str, int], dict[str, list[float]]] = {}
    for turn in range(request.runs):
        for np in request.ranks:
            for name, settings in CONTENDERS.items():
                note(f"measuring {mpi.title}, {np} ranks, {name}, run {turn + 1} of {request.runs}")
                for row in run(mpi, np, argv, settings):
                    of_call = times.setdefault((np, row["pattern"], row["bytes"]), {each: [] for each in CONTENDERS})
                    of_call[name].append(row["us"])
    return [
        {"ranks": np, "pattern": pattern, "bytes": length}
        | {f"{name}_us": statistics.median(found) for name, found in of_call.items()}
        | {f"{name}_ratio": statistics.median(map(operator.truediv, of_call[name], of_call["mpi"]))
           for name in ("off", "auto")}
        for (np, pattern, length), of_call in times.items()
    ]  # fmt: skip


def document(mpi: Mpi, request: Request, rows: list[Row]) -> Row:
    return {**provenance(mpi), "runs": request.runs, "results": rows}


def show(doc: Row) -> Any:
    table = Table(title=f"{doc['mpi_title']}: calls in which a program waits", title_justify="left")
    for name in ("ranks", "pattern", "bytes", "the MPI, us", "kind=off / MPI", "kind=auto, us", "kind=auto / MPI"):
        table.add_column(name, justify="left" if name == "pattern" else "right")
    for r in doc["results"]:
        table.add_row(
            str(r["ranks"]),
            r["pattern"],
            format_size(r["bytes"]),
            f"{r['mpi_us']:.4g}",
            f"{r['off_ratio']:.3f}",
            f"{r['auto_us']:.4g}",
            f"{r['auto_ratio']:.3f}",
        )
    out.print(table)
