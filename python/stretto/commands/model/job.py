# SPDX-License-Identifier: BSD-3-Clause
"""model job: a recorded job on a machine that is not there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto.commands.model_options import JsonFile, Levels, PerNode, ProfileFile, Topology, load, place
from stretto.core.console import fail, note, out
from stretto.core.reports import write_json
from stretto.job import analysis, efficiencies, page, recordings, what_if
from stretto.model import timer
from stretto.model.profile import Profile
from stretto.model.text import say_profile
from stretto.report.drawings import format_seconds


@dataclass
class Scenario:
    """A replay and what it has that the recording had not."""

    name: str
    words: list[str] = field(default_factory=list)
    network: dict[str, float] = field(default_factory=dict)


def command(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The file of `stretto run --record JOB`.")],
    network: Annotated[
        Optional[list[str]],
        typer.Option(
            "--set",
            "-s",
            metavar="NAME=xF,..",
            help="Another network: [b]latency=x0.5[/], [b]bandwidth=x2[/], [b]overhead=x0.5[/]. May be repeated.",
        ),
    ] = None,
    compute: Annotated[
        Optional[list[str]],
        typer.Option("--compute", metavar="xF", help="Computation that takes so many times as long. May be repeated."),
    ] = None,
    balance: Annotated[bool, typer.Option("--balance", help="All ranks compute for as long.")] = False,
    profile: ProfileFile = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    json_file: JsonFile = None,
) -> None:
    """What a recorded job would take on another network, with faster computation, or in balance.

    The replay runs all ranks in virtual time: computation as it was, messages as the profile's machine moves them,
    collectives as long as they took, changed as their schedules change. The first line is the recording's own machine.

    [dim]stretto model job app.stretto -s latency=x0.5 -s bandwidth=x2 --compute x0.8 --balance[/]
    """
    files = recordings.files_of(job)
    costs = load(profile, None)
    scenarios = [Scenario("as recorded")]
    scenarios += [Scenario(text, network=what_if.changes(text)) for text in network or []]
    for text in compute or []:
        by = what_if.factor(text, "--compute")
        scenarios.append(Scenario(f"compute x{by:g}", ["--compute", str(by)]))
    if balance:
        scenarios.append(Scenario("in balance", ["--balance"]))
    found = analysis.analyse(files)
    answers = [_replayed(files, each, costs, place(levels, topology, per_node)) for each in scenarios]
    report = _report(found, scenarios, answers)
    write_json(json_file, "model.job", {"profile": costs.origin, **report})
    if json_file and str(json_file) == "-":
        return
    say_profile(costs)
    for remark in page.remarks(found):
        note(remark)
    out.print(_table(report))


def _replayed(files: list[Path], scenario: Scenario, costs: Profile, where: list[str]) -> dict[str, Any]:
    with timer.costs_file(costs) as was:
        answer = recordings.replay(
            files, [*where, "--was", was, *scenario.words], what_if.changed(costs, scenario.network)
        )
    if "failure" in answer:
        fail(f"the job cannot be replayed: {answer['failure']}")
    return answer


def _report(found: analysis.Analysis, scenarios: list[Scenario], answers: list[dict[str, Any]]) -> dict[str, Any]:
    """A replay's error on the recording's own machine corrects the others."""
    own = answers[0]["seconds"]
    rows = []
    for scenario, answer in zip(scenarios, answers):
        compute = [rank["compute"] for rank in answer["ranks"]]
        seconds = answer["seconds"] * found.summary["seconds"] / own if own else 0
        rows.append(
            {
                "name": scenario.name,
                "replayed_s": answer["seconds"],
                "predicted_s": seconds,
                "efficiency": efficiencies.of(seconds, seconds, compute).parallel,
            }
        )
    return {
        "ranks": len(found.ranks),
        "measured_s": found.summary["seconds"],
        "predicted_s": own,
        "efficiencies": found.efficiencies.json(),
        "what_if": rows,
    }


def _table(report: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("what if")
    for name in ("time", "of the recording's", "parallel efficiency"):
        table.add_column(name, justify="right")
    table.add_row("measured", format_seconds(report["measured_s"]), "", f"{report['efficiencies']['parallel']:.1%}")
    for row in report["what_if"]:
        seconds = row["replayed_s"] if row["name"] == "as recorded" else row["predicted_s"]
        ratio = seconds / report["measured_s"] if report["measured_s"] else 0
        table.add_row(row["name"], format_seconds(seconds), f"{ratio:.3f}", f"{row['efficiency']:.1%}")
    return table
