# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite paper: the papers' figures and tables beside their claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.table import Table
from rich.text import Text

from stretto.commands.options import MpiName, checked
from stretto.core import html_pages, machine
from stretto.core.console import note, out
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.papers import page, suite, table
from stretto.papers.entry import Row

Only = Annotated[str, typer.Option("--only", metavar="LIST", help="s1 to s5, or figures as s1-figure-2; or all.")]
Budget = Annotated[
    float, typer.Option("--budget", metavar="S", min=0, help="Seconds for all of it; 0 measures nothing.")
]
JsonFile = Annotated[
    Optional[Path],
    typer.Option("--json", metavar="FILE", help="Results as JSON into FILE ([b]-[/]: stdout), no table."),
]
Html = Annotated[Optional[Path], typer.Option("--html", metavar="FILE", help="The report as one HTML file.")]
Source = Annotated[
    Optional[Path], typer.Option("--from", metavar="FILE", help="The report from its JSON; nothing is measured.")
]


def command(
    only: Only = "all",
    budget: Budget = suite.BUDGET_S,
    mpi: MpiName = None,
    json_file: JsonFile = None,
    html: Html = None,
    source: Source = None,
) -> None:
    """Repeat figures and tables of the papers that Stretto follows, each beside its claim.

    [dim]stretto bench --suite paper --html papers.html --json papers.json[/]
    """
    run(only, budget, mpi, json_file, html, source)


def run(
    only: str, budget_s: float, mpi: str | None, json_file: Path | None, html: Path | None, source: Path | None
) -> None:
    entries = checked(table.chosen, only)
    check_outputs(json_file, html)
    if source:
        finish(page.read(source), None, html)
        return
    site = suite.site_of(mpi, entries)
    doc = suite.new_document(entries, site, budget_s)
    if not doc["budget_s"]:
        finish(doc, json_file, html)
        return
    doc["load_before"] = machine.warn_if_busy()
    try:
        suite.run(doc, entries, site, note)
    except (KeyboardInterrupt, SystemExit):
        finish(doc, json_file, html)
        raise
    finish(doc, json_file, html)
    if any(entry["status"] == suite.FAILED for entry in doc["entries"]):
        raise typer.Exit(1)


def finish(doc: Row, json_file: Path | None, html: Path | None) -> None:
    """Writes what was asked for, and shows the claims unless stdout is for JSON."""
    write_json(json_file, "papers", doc)
    if html:
        html_pages.write(html, page.render(doc))
    if str(json_file) != "-":
        show(doc)


def show(doc: Row) -> None:
    shown = Table(box=None, pad_edge=False)
    for name in ("figure", "claim", "paper", "here", ""):
        shown.add_column(name, justify="right" if name == "here" else "left")
    for entry in doc["entries"]:
        name = f"{entry['paper']}, {entry['title']}"
        for claim in entry["claims"]:
            mark = {True: "[green]reached[/]", False: "[red]not reached[/]", None: ""}[claim["reached"]]
            shown.add_row(name, claim["what"], claim["paper"], page.number_text(claim["here"]), mark)
            name = ""
        if entry["reason"]:
            why = entry["reason"].splitlines()[0]
            shown.add_row(name, Text(f"{entry['status']}: {why}", "dim"))
    out.print(shown)
    out.print(page.verdict(doc))
