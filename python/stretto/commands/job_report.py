# SPDX-License-Identifier: BSD-3-Clause
"""report of a recorded job: its efficiencies and where they are lost."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from stretto.core.console import complain, out
from stretto.core.output_files import check_outputs
from stretto.job import analysis, page, recordings
from stretto.report.drawings import format_seconds

MOST_PLACES = 8


def write(path: Path, output: Path | None) -> None:
    """Prints what costs most, and writes the page."""
    to = output or path.with_suffix(".html")
    check_outputs(to)
    files = recordings.files_of(path)
    found = analysis.analyse(files)
    page.write(to, files, found)
    out.print(page.headline(found), markup=False)
    for remark in page.remarks(found):
        complain(remark)
    out.print(_efficiencies(found))
    out.print(_places(found))
    out.print(f"report: {to}", style="dim", markup=False)


def _efficiencies(found: analysis.Analysis) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("efficiency", "value", "costs"):
        table.add_column(name, justify="left" if name == "efficiency" else "right")
    table.add_row("parallel", f"{found.efficiencies.parallel:.1%}", "")
    values = found.efficiencies.json()
    for name, cost in found.efficiencies.costs().items():
        table.add_row(f"  {page.NAMES[name][0]}", f"{values[name]:.1%}", format_seconds(cost))
    return table


def _places(found: analysis.Analysis) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("call")
    table.add_column("calls", justify="right")
    table.add_column("all ranks", justify="right")
    table.add_column("where", overflow="fold")
    for place in found.places()[:MOST_PLACES]:
        table.add_row(
            place["call"], str(place["calls"]), format_seconds(place["in_calls"]), place["place"] or "unknown"
        )
    return table
