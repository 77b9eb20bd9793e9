# SPDX-License-Identifier: BSD-3-Clause
"""report of a recorded job: its efficiencies and where they are lost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from rich.console import JustifyMethod
from rich.table import Table

from stretto.core.console import complain, fail, note, out
from stretto.core.early import WORTH
from stretto.core.output_files import check_outputs
from stretto.job import analysis, hiding, page, recordings
from stretto.job.efficiencies import Efficiencies
from stretto.report.drawings import format_seconds

MOST_PLACES = 8
MOST_CRITICAL = 5
FORMATS = {
    "chrome": "for Perfetto and chrome://tracing",
    "goal": "for LogGOPSim and its kin",
    "otf2": "an archive for Vampir, Cube and their kin",
    "ti": "for SimGrid: a nanosecond is a flop",
}


def write(path: Path, output: Path | None) -> None:
    """Prints what costs most, and writes the page."""
    to = output or path.with_suffix(".html")
    check_outputs(to)
    files = recordings.files_of(path)
    found = analysis.analyse(files, critical=True)
    early = hiding.of(files, found.line)
    page.write(to, files, found, early)
    out.print(page.headline(found), markup=False)
    for remark in page.remarks(found):
        complain(remark)
    out.print(_efficiencies(found))
    out.print(_places(found))
    out.print(_critical(found))
    say_early(early)
    out.print(f"report: {to}", style="dim", markup=False)


def compare(paths: list[Path]) -> None:
    """How recordings of the same work on different numbers of ranks scale."""
    found = [analysis.analyse(recordings.files_of(path)) for path in paths]
    for path, each in zip(paths, found):
        for remark in page.remarks(each):
            complain(f"{path}: {remark}")
    all_ = sorted((each.efficiencies for each in found), key=lambda each: each.ranks)
    out.print(_scaling(all_))
    note(f"the same work is expected in all; {all_[0].ranks} ranks are the reference")


def _scaling(found: list[Efficiencies]) -> Table:
    reference = found[0]

    def row(each: Efficiencies) -> tuple[str, ...]:
        computation = each.computation(reference)
        parts = (each.parallel * computation, each.parallel, each.load_balance, each.serialisation, each.transfer)
        speed = f"{reference.seconds / each.seconds:.2f}" if each.seconds else ""
        shares = (f"{part:.1%}" for part in (*parts, computation))
        return (str(each.ranks), format_seconds(each.seconds), speed, *shares)

    names = (
        "ranks",
        "time",
        "speedup",
        "global",
        "parallel",
        "load balance",
        "serialisation",
        "transfer",
        "computation",
    )
    return _table({name: "right" for name in names}, map(row, found))


def export(path: Path, formats: list[str]) -> None:
    """Writes the job for other tools."""
    wanted = [_format(text) for text in formats]
    files = recordings.files_of(path)
    for name, to in wanted:
        unknown = json.loads(recordings.ask("export", [name, to, *files], f"writing {to}"))["unknown"]
        lost = f"; {unknown} calls are computation there: the format has no word for them" if unknown else ""
        note(f"written: {to}, {FORMATS[name]}{lost}")


def _format(text: str) -> tuple[str, Path]:
    name, _, to = text.partition("=")
    if name not in FORMATS or not to:
        fail(f"--export: '{text}': one of {', '.join(FORMATS)} and a file expected, as chrome=trace.json")
    check_outputs(Path(to))
    return name, Path(to)


def _table(columns: dict[str, JustifyMethod], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name, justify in columns.items():
        table.add_column(name, justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _efficiencies(found: analysis.Analysis) -> Table:
    values, costs = found.efficiencies.json(), found.efficiencies.costs()
    rows = [(f"  {page.NAMES[name][0]}", f"{values[name]:.1%}", format_seconds(cost)) for name, cost in costs.items()]
    whole = ("parallel", f"{found.efficiencies.parallel:.1%}", "")
    return _table({"efficiency": "left", "value": "right", "costs": "right"}, [whole, *rows])


def _places(found: analysis.Analysis) -> Table:
    return _table(
        {"call": "left", "calls": "right", "all ranks": "right", "where": "left"},
        (
            (line["call"], str(line["calls"]), format_seconds(line["in_calls"]), line["place"] or "unknown")
            for line in found.places()[:MOST_PLACES]
        ),
    )


def say_early(found: hiding.Hiding) -> None:
    """What calls that return early could hide at most: a sentence, and where that is worth it a table."""
    out.print(found.advice(), markup=False)
    if found.part >= WORTH:
        out.print(_early_calls(found))


def _early_calls(found: hiding.Hiding) -> Table:
    """By place in the program, also those that gain nothing."""
    columns: dict[str, JustifyMethod] = {"blocking collective": "left", "calls": "right"}
    columns |= {name: "right" for name in ("in it", "moving", "computing behind", "hidden at most")}
    return _table(
        {**columns, "where": "left"},
        (
            (
                site.call,
                str(site.calls),
                *map(format_seconds, (site.in_calls_s, site.moving_s, site.computing_s)),
                site.reason or format_seconds(site.hidden_at_most_s),
                site.place or "unknown",
            )
            for site in found.shown()[:MOST_PLACES]
        ),
    )


def _critical(found: analysis.Analysis) -> Table:
    return _table(
        {"critical path: computation before": "left", "rank": "right", "seconds": "right", "where": "left"},
        (
            (
                line["call"],
                str(line["rank"]),
                format_seconds(line["compute"] + line["in_call"]),
                line["place"] or "unknown",
            )
            for line in found.critical()[:MOST_CRITICAL]
        ),
    )
