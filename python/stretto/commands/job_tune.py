# SPDX-License-Identifier: BSD-3-Clause
"""tune --job: the rules that make a recorded job fastest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.table import Table

from stretto.commands.model_options import JsonFile, Levels, PerNode, ProfileFile, Topology, load, place, write_text
from stretto.core import output_files
from stretto.core.console import note, out
from stretto.core.reports import write_json
from stretto.job import beside, recordings, tuning
from stretto.model.text import say_profile
from stretto.report.drawings import format_seconds

Job = Annotated[Path, typer.Argument(metavar="JOB", help="The file of `stretto run --record JOB`.", show_default=False)]
Output = Annotated[
    Optional[Path], typer.Option("-o", "--output", metavar="FILE", help="The rules. Default: JOB, ending in .rules.")
]
Launch = Annotated[
    Optional[list[str]],
    typer.Argument(
        metavar="-- LAUNCH...",
        help="The line that launches the job with Stretto: it is then measured with the rules, and without.",
        show_default=False,
    ),
]
Runs = Annotated[int, typer.Option("--runs", metavar="N", min=1, help="So many runs each way.")]


def command(
    job: Job,
    launch: Launch = None,
    output: Output = None,
    runs: Runs = 5,
    profile: ProfileFile = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    json_file: JsonFile = None,
) -> None:
    """Write the rules by which a recorded job is fastest, and say how many seconds they gain.

    Of each collective between nodes the timer says which schedule is fastest on the profile's machine. Replays of the
    job say which of these rules make it faster: no other is written. With a line that launches the job, it is run with
    the rules and without, by turns.

    [dim]stretto tune --job app.stretto --levels node:4 -o app.rules[/]
    [dim]stretto tune --job app.stretto -- stretto run -n 8 -- ./app[/]
    """
    files = recordings.files_of(job)
    to = output or job.with_suffix(".rules")
    output_files.writable(to)
    costs = load(profile, None)
    found = tuning.tune(files, costs, place(levels, topology, per_node))
    measured = recordings.summary(files)["seconds"]
    write_text(to, found.text(f"by stretto tune --job {job.name}"))
    beside_others = beside.measure(launch, to, runs) if launch else None
    report = {
        "profile": costs.origin,
        "rules": str(to),
        "measured_s": measured,
        "built_in_s": found.built_in,
        "mpi_s": found.mpi,
        "tuned_s": found.seconds,
        "kinds": [vars(kind) for kind in found.kinds],
        "in_node": found.in_node,
        "left": found.left,
        "runs": vars(beside_others) if beside_others else None,
    }
    write_json(json_file, "tune.job", report)
    if json_file and str(json_file) == "-":
        return
    say_profile(costs)
    _say(found)
    if beside_others:
        out.print(
            f"measured: {format_seconds(beside_others.seconds)} with these rules, "
            f"{format_seconds(beside_others.seconds_without)} without, medians of {runs}",
            markup=False,
        )
    note(f"written to {to}")


def _say(found: tuning.Tuned) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("collective", "ranks", "nodes", "calls", "the job takes", "rules"):
        table.add_column(name, justify="left" if name in ("collective", "rules") else "right", overflow="fold")
    for kind in found.kinds:
        says = ", ".join(rule.rpartition(": ")[2] for rule in kind.rules) if kind.kept else "none is faster"
        row = (kind.op, str(kind.ranks), str(kind.nodes), str(kind.calls), format_seconds(kind.seconds), says)
        table.add_row(*row)
    out.print(table)
    gained = found.built_in - found.seconds
    out.print(
        f"replays of the job take {format_seconds(found.seconds)} with these rules, {format_seconds(found.built_in)} "
        f"without, {format_seconds(found.mpi)} by an MPI's algorithms: {format_seconds(gained)} gained",
        markup=False,
    )
    if found.in_node:
        note(f"{found.in_node} calls are within a node, of which a profile knows nothing")
    if found.left:
        note(f"{found.left} calls have lengths that not all ranks know, or operations that do not commute")
