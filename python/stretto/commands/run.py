# SPDX-License-Identifier: BSD-3-Clause
"""run: the user's program, with the library preloaded into its ranks."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.core import arguments, attended, source_lines
from stretto.core.console import note
from stretto.core.output_files import check_outputs
from stretto.mpi import choosing, environments, launching, linkage
from stretto.mpi.choosing import MPI_HELP
from stretto.native.build import library_for


def has_stderr() -> bool:
    try:
        os.fstat(2)
    except OSError:
        return False
    return True


def command(
    program: Annotated[
        list[str],
        typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The MPI program and its arguments.", show_default=False),
    ],
    np: Annotated[int, typer.Option("-n", "--ranks", "--np", min=1, metavar="N", help="Number of ranks.")] = 2,
    mpi: Annotated[
        Optional[str],
        typer.Option(
            "--mpi",
            metavar="MPI",
            help="Which MPI launches it. Default: the one the program is linked to, else the one in PATH. " + MPI_HELP,
        ),
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print at the end what ran, how often and how long.")] = False,
    stats_json: Annotated[
        Optional[Path],
        typer.Option("--json", "--stats-json", metavar="FILE", help="The same as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
    check: Annotated[
        Optional[int],
        typer.Option(
            "--check",
            min=0,
            max=3,
            metavar="LEVEL",
            help="Check level: 3 runs every collective twice, ours and the MPI's, and compares.",
        ),
    ] = None,
    settings: Annotated[
        Optional[list[str]],
        typer.Option(
            "--set",
            "-s",
            metavar="NAME=VALUE",
            help="A Stretto option for this run, e.g. [b]-s wait=yield[/] or [b]-s bcast=mpi[/]. May be repeated.",
        ),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="The same line without Stretto: for comparisons.")] = False,
    launcher: Annotated[
        Optional[list[str]],
        typer.Option(
            "--launcher",
            "-L",
            metavar="WORDS",
            help="Words for mpiexec itself, e.g. [b]-L '--bind-to core'[/]. May be repeated.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help=f"Also more than {arguments.MOST_PER_CPU} ranks for each processor of this machine."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the command line instead of running it.")] = False,
) -> None:
    """Run an MPI program with accelerated collectives.

    The program needs no change and no recompilation. The library is preloaded into the ranks only, not into mpiexec or
    its helpers. The exit status is the program's. Messages about calls name \
lines of source, if the program has debug information.

    [dim]stretto run -n 8 -- ./app --its-option[/]
    [dim]stretto run -n 4 --stats -- python script.py[/]
    [dim]stretto run -n 1 -- ./master : -n 7 ./worker[/]
    """
    path = choosing.find_program(program[0])
    check_outputs(None if off else stats_json)
    wanted = environments.parse_settings(settings or [])
    extra = launching.words_of(launcher or [])
    if not launching.is_spread(extra):
        arguments.check_crowd(np, force)
    chosen = choosing.choose(mpi) if mpi else choosing.mpi_of(path, program[1:]) or choosing.choose(None)
    chosen = choosing.check_mpi(chosen, path, program[1:])
    env = {}
    if off:
        idle = {"--stats": stats, "--json": stats_json, "--check": check is not None, "--set": settings}
        if names := [name for name, given in idle.items() if given]:
            note(f"{', '.join(names)}: no effect with --off")
    else:
        if stats_json:
            wanted["STRETTO_STATS"] = f"json:{'/dev/stdout' if str(stats_json) == '-' else stats_json.absolute()}"
        elif stats:
            wanted["STRETTO_STATS"] = "text"
        if check is not None:
            wanted["STRETTO_CHECK"] = str(check)
        env = environments.rank_environment(library_for(chosen.abi), wanted, linkage.sanitizer_runtimes(path))
    line = chosen.command(np, [str(path), *program[1:]], env, extra)
    if dry_run:
        typer.echo(shlex.join(line))
        return
    own = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"} | chosen.environment()
    if off or source_lines.tool() is None or not has_stderr():
        os.execve(line[0], line, own)
    stream = source_lines.Stream(source_lines.Resolver())
    attended.run(line, own, stream.feed, stream.end)
