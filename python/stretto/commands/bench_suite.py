# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite: the papers' figures and tables beside their claims, and calls that have programs of their own."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from stretto.bench import beside_host
from stretto.cluster.cluster import Cluster
from stretto.cluster.registry import ClusterError
from stretto.commands.options import checked
from stretto.core import html_pages, machine
from stretto.core.console import fail, note, out
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.mpi import choosing
from stretto.mpi.launching import JobFailed, JobHangs
from stretto.papers import page, suite, table
from stretto.papers.entry import Row


class Suite(str, Enum):
    paper = "paper"
    nonblocking = "nonblocking"
    neighbors = "neighbors"


# Options that go with each suite, by the names of the command's parameters. Those of ALONE go with
# suites only.
OF_CALLS = ("suite_name", "np", "runs", "mpi", "json_file", "cluster", "force")
OPTIONS = {
    Suite.paper: ("suite_name", "only", "budget", "mpi", "json_file", "html", "source"),
    Suite.nonblocking: OF_CALLS,
    Suite.neighbors: OF_CALLS,
}
ALONE = ("suite_name", "only", "html", "source", "cluster")


def check_options(context: typer.Context, wanted: Suite | None) -> None:
    """Fails for options of a single measurement beside --suite, and the other way round."""
    names = {parameter.name or "": max(parameter.opts, key=len) for parameter in context.command.params}
    for parameter, name in names.items():
        source = context.get_parameter_source(parameter)
        if source is None or source.name != "COMMANDLINE":
            continue
        if wanted and parameter not in OPTIONS[wanted]:
            its = ", ".join(names[each] for each in OPTIONS[wanted] if each != "suite_name")
            fail(f"{name} does not go with --suite {wanted.value}, which has {its}")
        if not wanted and parameter in ALONE:
            suites = [each.value for each, options in OPTIONS.items() if parameter in options]
            fail(f"{name} goes with --suite {' or '.join(suites)}")


def run_calls(
    wanted: Suite, ranks: tuple[int, ...], runs: int, mpi: str | None, name: str | None, json_file: Path | None
) -> None:
    """Measures calls that have a program of their own."""
    calls = beside_host.SUITES[wanted.value]
    check_outputs(json_file)
    try:
        cluster = Cluster.find(name) if name else None
        calls = calls.on_links() if cluster else calls
        chosen = choosing.choose(mpi)
        machine.warn_if_busy()
        rows = beside_host.measure(calls, chosen, ranks, runs, cluster)
    except ClusterError as error:
        fail(str(error))
    except (JobFailed, JobHangs) as error:
        fail(str(error), 1)
    doc = beside_host.document(chosen, ranks, calls, rows, runs, cluster)
    write_json(json_file, wanted.value, doc)
    if json_file is None:
        beside_host.show(calls, doc)


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
