# SPDX-License-Identifier: BSD-3-Clause
"""The measuring program (bench/*.cpp): building and running it, and the events that it prints."""

from __future__ import annotations

import json
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from stretto.bench.request import Request
from stretto.core.console import err, fail, note, working
from stretto.core.units import format_size
from stretto.mpi import Mpi, environments, launching
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.native import programs
from stretto.native.build import BuildError, library_for

Row = dict[str, Any]


def program(mpi: Mpi, name: str = "collectives") -> Path:
    """A program of bench/programs.toml, built if it is missing."""
    try:
        with working("building the measuring program"):
            return programs.compiled(mpi, name)
    except BuildError as error:
        fail(f"the measuring program cannot be built\n{error}")


def run_program(mpi: Mpi, np: int, request: Request, on_row: Callable[[Row], None]) -> list[Row]:
    """Runs the program once and returns its events, in order."""
    env = {} if request.off else environments.rank_environment(library_for(mpi.abi), SERVED_AT_ONCE)
    return run_job(mpi, mpi.command(np, [program(mpi), *request.arguments()], env), on_row)


def run_job(mpi: Mpi, line: Sequence[str], on_row: Callable[[Row], None]) -> list[Row]:
    """Runs a command line that starts such a program, and returns its events, in order."""
    with tempfile.TemporaryFile("w+") as errors:
        with (
            suppress(subprocess.TimeoutExpired),
            launching.launched(
                line,
                env=environments.launching_environment(mpi),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            events = collect(process.stdout, on_row)
            process.wait(timeout=60)
        errors.seek(0)
        judge(line, events, process.returncode, errors.read())
    return events


def collect(output: Iterable[str], on_row: Callable[[Row], None]) -> list[Row]:
    """The events in what a program prints, as they come."""
    events: list[Row] = []
    for text in output:
        if event := parse_event(text):
            events.append(event)
            if event["event"] in ("row", "flag", "chain", "long"):
                on_row(event)
    return events


def judge(line: Sequence[str], events: Sequence[Row], status: int, said: str) -> None:
    """Fails if a run has not ended well. Otherwise shows what the library said."""
    if status or not events or events[-1]["event"] != "done":
        fail(f"$ {shlex.join(line)}\n{said.rstrip()[-4000:]}\nexit status {status}", 1)
    for text in said.splitlines():
        if "stretto" in text.lower():
            note(text)


def parse_event(text: str) -> Row | None:
    if not text.startswith('{"event"'):
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def run_all(mpi: Mpi, ranks: Sequence[int], request: Request, runs: int) -> list[list[Row]]:
    """The events of every run, each with its number of ranks."""
    path = program(mpi)  # before the bar, because building shows its own progress
    if not request.off:
        library_for(mpi.abi)
    assert path
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    measured: list[list[Row]] = []
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("starting", total=request.rows() * len(ranks) * runs)

        def show(np: int, run: int, row: Row) -> None:
            where = f"{row.get('op', 'flag')} {format_size(row.get('bytes', 0))}, {np} ranks"
            progress.update(task, advance=1, description=where + (f", run {run + 1} of {runs}" if runs > 1 else ""))

        for run in range(runs):
            events: list[Row] = []
            for np in ranks:
                if not err.is_terminal:
                    note(f"measuring {mpi.title}, {np} ranks" + (f", run {run + 1} of {runs}" if runs > 1 else ""))
                events += [{**e, "np": np} for e in run_program(mpi, np, request, lambda row: show(np, run, row))]
            measured.append(events)
    return measured
