# SPDX-License-Identifier: BSD-3-Clause
"""model job: a recorded job on a machine that is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto.commands import job_report, model_options
from stretto.commands.model_options import JsonFile, Levels, PerNode, ProfileFile, Topology, load
from stretto.core.console import fail, note, out
from stretto.core.reports import write_json
from stretto.job import analysis, hiding, page, recordings, scaling, what_if
from stretto.model.text import say_profile
from stretto.report.drawings import format_seconds

Network = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set",
        "-s",
        metavar="NAME=xF,..",
        help="Another network: [b]latency=x0.5[/], [b]20us[/] or [b]+5us[/], [b]bandwidth=x2[/] or [b]2G[/] (bits per "
        "second), [b]overhead=x0.5[/]. May be repeated.",
    ),
]
Compute = Annotated[
    Optional[list[str]],
    typer.Option("--compute", metavar="xF", help="Computation that takes so many times as long. May be repeated."),
]
Collectives = Annotated[
    Optional[list[str]],
    typer.Option(
        "--collectives",
        metavar="BY",
        help="Collectives as [b]recorded[/], by algorithms that an MPI takes ([b]mpi[/]), by those that [b]stretto[/] "
        "takes, or by a file of rules. May be repeated.",
    ),
]
Place = Annotated[
    Optional[list[str]],
    typer.Option(
        "--place",
        metavar="slot|node|FILE",
        help="Ranks one node after the other, on all nodes in turn, or as a file says. May be repeated.",
    ),
]
Noise = Annotated[
    Optional[list[str]],
    typer.Option(
        "--noise",
        metavar="PERCENT|recorded",
        help="Computation that takes longer by chance, by so much in the mean; [b]recorded[/]: each time is another "
        "one between the same calls. May be repeated.",
    ),
]

Jobs = Annotated[
    list[Path],
    typer.Argument(
        metavar="JOB...",
        help="The file of `stretto run --record JOB`, or another tool's trace in OTF2. With [b]-n[/] several, of "
        "the same program on different numbers of ranks.",
        show_default=False,
    ),
]
Ranks = Annotated[
    Optional[int],
    typer.Option("--ranks", "-n", metavar="P", min=2, help="On so many ranks, by the laws of several recordings."),
]
MOST_LAWS = 12


def command(
    jobs: Jobs,
    ranks: Ranks = None,
    network: Network = None,
    compute: Compute = None,
    collectives: Collectives = None,
    place: Place = None,
    noise: Noise = None,
    balance: Annotated[bool, typer.Option("--balance", help="All ranks compute for as long.")] = False,
    overlap: Annotated[
        str, typer.Option("--overlap", metavar="on|off", help="Calls return early where STRETTO_OVERLAP lets them.")
    ] = "off",
    profile: ProfileFile = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    json_file: JsonFile = None,
) -> None:
    """What a recorded job would take on another network, with other collectives, with faster computation, in balance.

    The replay runs all ranks in virtual time: computation as it was, messages as the profile's machine moves them,
    collectives as long as they took, changed as their schedules change. The first line is the recording's own machine.

    [dim]stretto model job app.stretto -s latency=x0.5 -s bandwidth=x2 --compute x0.8 --balance[/]
    [dim]stretto model job on-4.stretto on-8.stretto -n 16[/]
    """
    scaled = _scaled(jobs, ranks)
    files = scaled.files if scaled else recordings.files_of(jobs[0])
    costs = load(profile, None)
    scenarios = [what_if.Scenario(text, network=what_if.changes(text, costs)) for text in network or []]
    scenarios += map(what_if.compute, compute or [])
    scenarios += map(what_if.collectives, collectives or [])
    scenarios += map(what_if.place, place or [])
    scenarios += map(what_if.noise, noise or [])
    scenarios += [what_if.Scenario("in balance", ["--balance"])] if balance else []
    scenarios += what_if.overlap(overlap)
    found = analysis.analyse(files)
    where = model_options.place(levels, topology, per_node)
    if scaled:
        found = scaling.expected(found, scaled, costs, where)
    report = what_if.report(found, files, scenarios, costs, where)
    early = hiding.of(files, found.line, where)
    write_json(json_file, "model.job", {"profile": costs.origin, **report, "early": early.json()})
    if json_file and str(json_file) == "-":
        return
    say_profile(costs)
    for remark in (*page.remarks(found), *report["notes"]):
        note(remark)
    if scaled:
        said = " and ".join(map(str, scaling.ranks_of(scaled)))
        note(f"nobody has measured {ranks} ranks: recordings of {said} say what they would take")
        out.print(_laws(scaled))
    out.print(_table(report))
    for row in report["what_if"]:
        if row.get("sites"):
            out.print(_sites(row))
    job_report.say_early(early)


def _scaled(jobs: list[Path], ranks: int | None) -> scaling.Scaled | None:
    if ranks is None and len(jobs) > 1:
        fail("several recordings are for another number of ranks: say which with -n")
    return scaling.scaled(jobs, ranks) if ranks else None


def _laws(scaled: scaling.Scaled) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("call", "where", "computation before", "bytes", "peers"):
        table.add_column(name, overflow="fold")
    for law in scaled.main_laws()[:MOST_LAWS]:
        table.add_row(law["call"], law["place"] or "unknown", law["compute"], law["bytes"], law["peers"])
    return table


def _table(report: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("what if")
    for name in ("time", "±", "of the recording's", "parallel efficiency"):
        table.add_column(name, justify="right")
    table.add_row("measured", format_seconds(report["measured_s"]), "", "", f"{report['efficiencies']['parallel']:.1%}")
    for row in report["what_if"]:
        seconds = row["replayed_s"] if row["name"] == "as recorded" else row["predicted_s"]
        ratio = seconds / report["measured_s"] if report["measured_s"] else 0
        spread = None if row["high_s"] is None else row["high_s"] - row["predicted_s"]
        cells = (format_seconds(seconds), format_seconds(spread), f"{ratio:.3f}", f"{row['efficiency']:.1%}")
        table.add_row(row["name"], *cells)
    return table


def _sites(row: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, title=f"{row['name']}: calls that return early", title_justify="left")
    for name in ("call", "at"):
        table.add_column(name)
    for name in ("calls", "hidden at most, of a rank"):
        table.add_column(name, justify="right")
    for site in row["sites"]:
        table.add_row(site["call"], site["place"], str(site["calls"]), format_seconds(site["hidden_at_most_s"]))
    return table
