# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite paper: the papers' figures and tables on this machine, beside what the papers claim."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from stretto.commands.options import checked
from stretto.core import html_pages, machine
from stretto.core.console import fail, note, out
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.papers import page, suite, table
from stretto.papers.entry import Row

OPTIONS = ("suite_name", "only", "budget", "mpi", "json_file", "html", "source")  # that go with --suite
FIRST = ("suite_name", "only", "html", "source")  # that go with nothing else


class Suite(str, Enum):
    paper = "paper"


def check_options(context: typer.Context, wanted: Suite | None) -> None:
    """Fails for options of a single measurement beside --suite, and the other way round."""
    given = [
        parameter
        for parameter in context.command.params
        if (source := context.get_parameter_source(parameter.name or "")) and source.name == "COMMANDLINE"
    ]
    for parameter in given:
        name = max(parameter.opts, key=len)
        if wanted and parameter.name not in OPTIONS:
            fail(f"{name} does not go with --suite; of --suite are --only, --budget, --mpi, --json, --html and --from")
        if not wanted and parameter.name in FIRST:
            fail(f"{name} goes with --suite paper")


def run(
    only: str, budget_s: float | None, mpi: str | None, json_file: Path | None, html: Path | None, source: Path | None
) -> None:
    entries = checked(table.chosen, only)
    check_outputs(json_file, html)
    if source:
        finish(page.read(source), None, html)
        return
    site = suite.site_of(mpi, entries)
    doc = suite.new_document(entries, site, suite.BUDGET_S if budget_s is None else budget_s)
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
