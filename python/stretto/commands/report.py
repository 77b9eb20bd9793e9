# SPDX-License-Identifier: BSD-3-Clause
"""report: the statistics of a run, or of several, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.commands import job_report, overlap_report
from stretto.core import arguments
from stretto.core.console import fail, out
from stretto.core.output_files import check_outputs
from stretto.core.parts import commands_of
from stretto.job import recordings
from stretto.report import early, figures, page, series, series_page
from stretto.report.verdict import verdict

parts = typer.Typer(rich_markup_mode="rich")
parts.command("overlap")(overlap_report.command)
PARTS = {f"--{name}": command for name, command in commands_of(parts).items()}


def _checked(files: list[Path]) -> list[Path]:
    """A recording may be named by what the names of its ranks' files begin with."""
    if len(files) == 1 and not files[0].exists() and files[0].with_name(f"{files[0].name}.0").is_file():
        return files
    return arguments.all_readable(files)


Compare = Annotated[
    Optional[Path],
    typer.Option(
        "--compare",
        metavar="OFF",
        help="Statistics of the same job without Stretto: of `stretto run --off --json OFF`.",
        callback=arguments.readable,
    ),
]
Output = Annotated[
    Optional[Path],
    typer.Option(
        "-o", "--output", metavar="FILE", help="The report. Default: STATS, ending in .html; of several, runs.html."
    ),
]
Export = Annotated[
    Optional[list[str]],
    typer.Option(
        "--export",
        metavar="FORMAT=FILE",
        help="Write a recorded job for other tools instead: \
[b]chrome[/], [b]goal[/], [b]otf2[/] or [b]ti[/]. May be repeated.",
    ),
]


def command(
    stats: Annotated[
        list[Path],
        typer.Argument(
            metavar="STATS...",
            help="Statistics: the file of `stretto run --json FILE`, or of STRETTO_STATS=json:FILE. \
Several: runs of a program over time. Or a job that `stretto run --record` has recorded, or traces in OTF2.",
            callback=_checked,
            show_default=False,
        ),
    ],
    compare: Compare = None,
    output: Output = None,
    export: Export = None,
    overlap: Annotated[
        bool,
        typer.Option(
            "--overlap",
            help="Run a program instead, and say of each call site what hides behind the computation after it: "
            "[b]stretto report --overlap --help[/].",
        ),
    ] = False,  # a command of its own stands in for this one: core/parts.py
) -> None:
    """Write a report about a run: where its time goes, who waits for whom, and what to do next.

    The report is one HTML file, which needs no network and no other file. [b]stretto run --report FILE[/] runs \
a program and writes one.

    Of a recorded job it says how efficient it is, where that is lost, and draws a timeline. Of several, how they scale.

    Of several runs it shows what each took, and what of the latest is slower than in each run before.

    [dim]stretto report stats.json --compare off.json -o report.html[/]
    [dim]stretto report monday.json tuesday.json friday.json -o week.html[/]
    [dim]stretto report app.stretto[/]
    [dim]stretto report on-4.stretto on-8.stretto[/]
    [dim]stretto report --overlap -n 4 -- ./app[/]
    """
    if len(stats) > 1 and all(map(recordings.is_recording, stats)):
        return job_report.compare(stats)
    if len(stats) > 1:
        over_time(stats, compare, output or Path("runs.html"))
        return
    if not stats[0].exists() or recordings.is_recording(stats[0]):
        return job_report.export(stats[0], export) if export else job_report.write(stats[0], output)
    if export:
        fail("--export is for a recorded job: `stretto run --record FILE` makes one")
    path = output or stats[0].with_suffix(".html")
    check_outputs(path)
    on, off = figures.read(stats[0]), figures.read(compare) if compare else None
    page.write(path, on, off)
    say(figures.figures(on), path)


def over_time(files: list[Path], compare: Path | None, path: Path) -> None:
    if compare:
        fail("--compare is for one run; several are compared with each other")
    check_outputs(path)
    runs = series.in_order((file, figures.read(file)) for file in files)
    found = series.slower(runs)
    series_page.write(path, runs, found)
    out.print(f"{series_page.headline(runs)}\n{series_page.verdict(found)}", markup=False)
    for text in series.differences(runs):
        out.print(f"the latest run differs: {text}", markup=False)
    out.print(f"report: {path}", style="dim", markup=False)


def say(run: figures.Figures, path: Path) -> None:
    found = verdict(run)
    out.print(found.headline, markup=False)
    out.print(f"{' '.join(found.sentences[1:])} {found.next_step}".strip(), markup=False)
    if advice := early.advice(run):
        out.print(advice, markup=False)
    out.print(f"report: {path}", style="dim", markup=False)
