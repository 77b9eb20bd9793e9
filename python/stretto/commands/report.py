# SPDX-License-Identifier: BSD-3-Clause
"""report: the statistics of a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.core import arguments
from stretto.core.console import out
from stretto.core.output_files import check_outputs
from stretto.report import figures, page
from stretto.report.verdict import verdict


def command(
    stats: Annotated[
        Path,
        typer.Argument(
            metavar="STATS",
            help="Statistics: the file of `stretto run --json FILE`, or of STRETTO_STATS=json:FILE.",
            callback=arguments.readable,
            show_default=False,
        ),
    ],
    compare: Annotated[
        Optional[Path],
        typer.Option(
            "--compare",
            metavar="OFF",
            help="Statistics of the same job without Stretto: of `stretto run --off --json OFF`.",
            callback=arguments.readable,
        ),
    ] = None,
    output: Annotated[
        Optional[Path],
        typer.Option("-o", "--output", metavar="FILE", help="The report. Default: STATS, ending in .html."),
    ] = None,
) -> None:
    """Write a report about a run: where its time goes, who waits for whom, and what to do next.

    The report is one HTML file, which needs no network and no other file. [b]stretto run --report FILE[/] runs \
a program and writes one.

    [dim]stretto report stats.json --compare off.json -o report.html[/]
    """
    path = output or stats.with_suffix(".html")
    check_outputs(path)
    on, off = figures.read(stats), figures.read(compare) if compare else None
    page.write(path, on, off)
    say(figures.figures(on), path)


def say(run: figures.Figures, path: Path) -> None:
    found = verdict(run)
    out.print(found.headline, markup=False)
    out.print(f"{' '.join(found.sentences[1:])} {found.next_step}".strip(), markup=False)
    out.print(f"report: {path}", style="dim", markup=False)
