# SPDX-License-Identifier: BSD-3-Clause
"""run: the user's program, with the library preloaded into its ranks."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from stretto.commands import report as report_command
from stretto.commands.top.jobs import looker
from stretto.commands.options import LaunchedBy, Program
from stretto.core import arguments, attended, source_lines
from stretto.core.console import complain, fail, flush_stdout, note
from stretto.core.output_files import check_outputs
from stretto.job import recordings
from stretto.mpi import Mpi, binding, choosing, environments, keepers, launching, linkage
from stretto.native import probe
from stretto.native.build import library_for
from stretto.report import figures, page


def has_stderr() -> bool:
    try:
        os.fstat(2)
    except OSError:
        return False
    return True


# Without Stretto, but timed: the library is loaded, and the MPI serves every collective.
LEFT_TO_MPI = {f"STRETTO_{op.upper()}": "mpi" for op in arguments.COLLECTIVES} | {
    "STRETTO_KIND": "off",
    "STRETTO_NONBLOCKING": "off",
    "STRETTO_OVERLAP": "off",
}


def watch(metrics: Path) -> None:
    """Starts `stretto top` beside the job of this process. It ends with the job, and is no child of the launcher."""
    line = [sys.executable, "-m", "stretto", "top", "--metrics", str(metrics), "--wait", str(os.getpid())]
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": ":".join(filter(None, paths))}
    subprocess.run(["/bin/sh", "-c", '"$@" &', "sh", *line], env=env, stdout=subprocess.DEVNULL, check=False)


def write_report(path: Path, stats: Path, keep: bool) -> None:
    """The report of the statistics that the job has written."""
    if not stats.exists():
        return complain("no report: the program did not come to the end of MPI_Init with Stretto")
    try:
        found = figures.read(stats)
        page.write(path, found)
        report_command.say(figures.figures(found), path)
        flush_stdout()
    finally:
        if not keep:
            stats.unlink()


Np = Annotated[int, typer.Option("-n", "--ranks", "--np", min=1, metavar="N", help="Number of ranks.")]
Stats = Annotated[bool, typer.Option("--stats", help="Print at the end what ran, how often and how long.")]
StatsJson = Annotated[
    Optional[Path],
    typer.Option("--json", "--stats-json", metavar="FILE", help="The same as JSON into FILE ([b]-[/]: stdout)."),
]
Report = Annotated[
    Optional[Path], typer.Option("--report", metavar="FILE", help="Write a report about the run: one HTML file.")
]
Metrics = Annotated[
    Optional[Path],
    typer.Option("--metrics", metavar="FILE", help="While it runs, write Prometheus text into FILE once a second."),
]
Record = Annotated[
    Optional[Path],
    typer.Option(
        "--record", metavar="FILE", help="Record the job: for [b]stretto report[/] and [b]stretto model job[/]."
    ),
]
Check = Annotated[
    Optional[int],
    typer.Option(
        "--check",
        min=0,
        max=3,
        metavar="LEVEL",
        help="Check level: 3 runs every collective twice, ours and the MPI's, and compares.",
    ),
]
Settings = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set",
        "-s",
        metavar="NAME=VALUE",
        help="A Stretto option for this run, e.g. [b]-s wait=yield[/] or [b]-s bcast=mpi[/]. May be repeated.",
    ),
]
Off = Annotated[
    bool, typer.Option("--off", help="The same line without Stretto: for comparisons. With statistics, only timed.")
]
Launcher = Annotated[
    Optional[list[str]],
    typer.Option(
        "--launcher",
        "-L",
        metavar="WORDS",
        help="Words for mpiexec itself, e.g. [b]-L '--bind-to core'[/]. May be repeated.",
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help=f"Also more than {arguments.MOST_PER_CPU} ranks for each processor of this machine."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the command line instead of running it.")]


def command(
    program: Program,
    np: Np = 2,
    mpi: LaunchedBy = None,
    stats: Stats = False,
    stats_json: StatsJson = None,
    report: Report = None,
    metrics: Metrics = None,
    record: Record = None,
    check: Check = None,
    settings: Settings = None,
    off: Off = False,
    launcher: Launcher = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> None:
    """Run an MPI program with accelerated collectives.

    The program needs no change and no recompilation. The library is preloaded into the ranks only, not into mpiexec or
    its helpers. The exit status is the program's. Messages about calls name \
lines of source, if the program has debug information.

    [dim]stretto run -n 8 -- ./app --its-option[/]
    [dim]stretto run -n 4 --stats -- python script.py[/]
    [dim]stretto run -n 8 --report out.html -- ./app[/]
    [dim]stretto run -n 8 --record app.stretto -- ./app[/]
    [dim]stretto run -n 1 -- ./master : -n 7 ./worker[/]
    """
    path = choosing.find_program(program[0])
    check_outputs(stats_json, report, metrics, record)
    if report and str(stats_json) == "-":
        fail("--report: it is made from a file, so --json must name one")
    environments.parse_settings(settings or [])  # what is typed is judged before anything is built
    extra = launching.words_of(launcher or [])
    spread = launching.is_spread(extra)
    if not spread:
        arguments.check_crowd(np, force)
    chosen = choosing.choose_for(path, program[1:], mpi)
    timed = bool(stats or stats_json or report)
    # In the same directory: all hosts of a job see it, as a rule.
    to_file = stats_json if stats_json or not report else report.with_name(f".{report.name}.{os.getpid()}.json")
    wanted = {} if off else probe.checked_settings(settings or [])
    wanted |= statistics_of(to_file, stats) | ({} if check is None else {"STRETTO_CHECK": str(check)})
    if off:
        say_ignored({"--check": check is not None, "--set": settings, "--metrics": metrics})
        wanted = {**LEFT_TO_MPI, "STRETTO_STATS": wanted["STRETTO_STATS"]} if timed else {"STRETTO": "off"}
    wanted |= recordings.settings(record)
    env = {} if off and not timed and not record else of_ranks(chosen, wanted, path)
    extra = binding.bound(chosen, np, program, extra, spread)
    line = chosen.command(np, [str(path), *program[1:]], env, extra)
    if dry_run:
        return typer.echo(shlex.join(line))
    own = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | chosen.environment()
    if metrics and not off:
        looker()
        watch(metrics)
    attends = not off and source_lines.tool() is not None and has_stderr()
    if not attends and not timed and not record:
        os.execve(line[0], line, own)
    attend(line, own, to_file, report, stats, timed, spread, bool(stats_json), record)


def of_ranks(chosen: Mpi, wanted: dict[str, str], program: Path) -> dict[str, str]:
    """What is set for ranks, and for nobody else."""
    return environments.rank_environment(library_for(chosen.abi), wanted, linkage.sanitizer_runtimes(program))


def statistics_of(to_file: Path | None, stats: bool) -> dict[str, str]:
    """What tells the library where statistics go."""
    if to_file:
        return {"STRETTO_STATS": f"json:{'/dev/stdout' if str(to_file) == '-' else to_file.absolute()}"}
    return {"STRETTO_STATS": "text"} if stats else {}


def say_ignored(given: dict[str, Any]) -> None:
    if names := [name for name, value in given.items() if value]:
        note(f"{', '.join(names)}: no effect with --off")


def attend(
    line: list[str],
    own: dict[str, str],
    to_file: Path | None,
    report: Path | None,
    stats: bool,
    timed: bool,
    spread: bool,
    keep: bool,
    record: Path | None,
) -> None:
    """Runs the launcher beside this process, which turns addresses into lines and waits for statistics."""
    stream = source_lines.Stream(source_lines.Resolver())
    text = keepers.text_file() if stats and not to_file and not spread else None

    def finish(status: int) -> int:
        if record:
            recordings.gather(record)
        if not timed:
            return status
        keepers.wait(to_file, spread)
        if text:
            keepers.pass_text_on(text)
        ended = keepers.status_of(keepers.cut_short(to_file) if to_file else None, status)
        if report and to_file:
            write_report(report, to_file, keep=keep)
        return ended

    attended.run(line, own | keepers.mark(text), stream.feed, stream.end, finish)
