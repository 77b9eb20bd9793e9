# SPDX-License-Identifier: BSD-3-Clause
"""verify: every algorithm's schedules, executed on symbols."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from stretto.core import arguments, output_files
from stretto.core.console import out, working
from stretto.core.processes import report_of
from stretto.core.reports import write_json
from stretto.native import build


def run_verifier(line: list[str]) -> dict[str, Any]:
    """The report of stretto-verify. A terminal shows its progress."""
    with working("building the verifier"):
        program = build.ensure_built("release", ["stretto-verify"]) / "stretto-verify"
    return report_of([str(program), *line], "verifying schedules")[1]


def command(
    max_ranks: Annotated[
        int, typer.Option("--max-ranks", metavar="N", min=1, help="Every number of ranks up to N.")
    ] = 64,
    hierarchies: Annotated[
        Optional[int],
        typer.Option(
            "--hierarchies",
            metavar="N",
            min=0,
            help="So many random hierarchies of up to 4096 ranks (500 if --max-ranks is 64 or more, 20 otherwise).",
            show_default=False,
        ),
    ] = None,
    op: Annotated[
        Optional[list[str]],
        typer.Option("--op", metavar="LIST", help="Only these collectives, with commas.", show_default=False),
    ] = None,
    algorithm: Annotated[
        Optional[list[str]],
        typer.Option(
            "--algorithm",
            "-a",
            metavar="NAME",
            help="Only this algorithm, as [b]bcast:chain[/]. May be repeated.",
            show_default=False,
        ),
    ] = None,
    json_file: Annotated[
        Optional[Path],
        typer.Option(
            "--json",
            metavar="FILE",
            help="Write the report as JSON into FILE ([b]-[/]: stdout).",
            callback=output_files.writable,
        ),
    ] = None,
) -> None:
    """Check every algorithm's schedules: all ranks, roots, segment counts and in-place forms, executed on symbols.

    Found are wrong results, deadlocks, unmatched messages, races and accesses out of bounds. \
Exit status 1 if there are any.
    """
    line = ["--max-ranks", str(max_ranks)]
    for name in arguments.verified_names([*arguments.named_in(op or []), *(algorithm or [])]):
        line += ["--algorithm", name]
    if hierarchies is not None:
        line += ["--hierarchies", str(hierarchies)]
    report = run_verifier(line)
    write_json(json_file, "verify", report)
    if json_file is None or str(json_file) != "-":
        for failure in report["failures"]:
            out.print(f"{failure['trial']}: {failure['failure']}", markup=False)
        out.print(
            f"{report['checked']} checked, {report['failed']} failed, {report['steps']} steps in "
            f"{report['seconds']:.1f} s",
            markup=False,
        )
    if report["failed"]:
        raise typer.Exit(1)
