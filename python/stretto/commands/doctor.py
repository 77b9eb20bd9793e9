# SPDX-License-Identifier: BSD-3-Clause
"""doctor: whether Stretto works on this machine, and if not, why and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.table import Table
from rich.text import Text

from stretto.core.console import out, working
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.diagnosis import job, machine, mpis, preload
from stretto.diagnosis import program as programs
from stretto.diagnosis.verdict import BAD, GOOD, WARN, Verdict
from stretto.mpi import choosing, launching
from stretto.native import probe
from stretto.native.build import BuildError, library_for

MARKS = {GOOD: "[green]ok[/]", WARN: "[yellow]note[/]", BAD: "[bold red]NO[/]"}


def examine(program: Sequence[str] = (), launcher: Sequence[str] = ()) -> Iterator[Verdict]:
    """The machine; then what the user names, or else each MPI."""
    yield from machine.check_tools()
    try:
        with working("building the probe"):
            probe.ask()
    except BuildError as error:
        yield Verdict(BAD, "building", "failed", str(error))
        return
    yield from machine.check()
    yield from preload.check_preload()
    path = choosing.find_program(program[0]) if program else None
    if path:
        yield from programs.check_program(path, program[1:])
    if launcher:
        with working("starting ranks"):
            yield from job.check_job(launcher, lambda: str(library_of(path, program[1:])))
    if not program and not launcher:
        yield from mpis.check_mpis()


def library_of(program: Path | None, arguments: Sequence[str]) -> Path:
    """The library for the MPI of the program, or for the first MPI of this machine."""
    mpi = choosing.mpi_of(program, arguments) if program else None
    return library_for((mpi or choosing.choose(None, fetch=False)).abi)


def command(
    program: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="-- PROGRAM [ARGS]...", help="Look at this program. It is not run.", show_default=False),
    ] = None,
    launcher: Annotated[
        Optional[str],
        typer.Option(
            "--launch",
            metavar="LINE",
            help="Look at the ranks that this line starts, e.g. [b]--launch 'srun --mpi=pmix -n 8'[/].",
        ),
    ] = None,
    json_file: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="Write the verdicts as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
) -> None:
    """Check whether Stretto can work here, and say what to do if not.

    Without a program and a launcher, it tries each MPI of this machine. Exit status 1 if something is broken.

    [dim]stretto doctor[/]
    [dim]stretto doctor -- ./app[/]
    [dim]stretto doctor --launch 'mpiexec -n 8' -- ./app[/]
    """
    check_outputs(json_file)
    verdicts = []
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for verdict in examine(program or [], launching.words_of([launcher] if launcher else [])):
        verdicts.append(verdict)
        advice = ("\n" + verdict.advice, "dim") if verdict.advice and verdict.level != GOOD else ""
        table.add_row(MARKS[verdict.level], Text(verdict.subject), Text.assemble(verdict.finding, advice))
    if json_file is None or str(json_file) != "-":
        out.print(table)
    write_json(json_file, "doctor", {"verdicts": [asdict(v) for v in verdicts]})
    if any(v.level == BAD for v in verdicts):
        raise typer.Exit(1)
