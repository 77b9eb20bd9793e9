# SPDX-License-Identifier: BSD-3-Clause
"""report --overlap: what a program gains from calls that return before their data are there."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.bench import overlap_report
from stretto.bench.overlap_report import Unusable
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.commands.cluster.options import plain_errors
from stretto.commands.cluster.run import attend
from stretto.commands.options import Launcher, ResultsFile
from stretto.core import arguments, early, output_files
from stretto.core.console import fail
from stretto.core.reports import write_json
from stretto.mpi import Mpi, choosing, environments, launching, linkage
from stretto.mpi.choosing import MPI_HELP
from stretto.native import probe
from stretto.native.build import library_for


Program = Annotated[
    Optional[list[str]],
    typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The MPI program and its arguments.", show_default=False),
]
Np = Annotated[
    Optional[int],
    typer.Option("-n", "--ranks", "--np", min=1, metavar="N", help="Number of ranks. Default: 2, or the cluster's."),
]
Name = Annotated[
    Optional[str], typer.Option("--name", metavar="CLUSTER", help="Run on this cluster ([b]stretto cluster up[/]).")
]
Where = Annotated[str, typer.Option("--map", metavar="MAP", help="Where ranks go, as of [b]stretto cluster run[/].")]
MpiOption = Annotated[
    Optional[str],
    typer.Option("--mpi", metavar="MPI", help="Which MPI launches it. Default: the program's. " + MPI_HELP),
]
Settings = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set", "-s", metavar="NAME=VALUE", help="A Stretto option. Default: [b]overlap=256K[/]. May be repeated."
    ),
]
Source = Annotated[
    Optional[Path],
    typer.Option("--from", metavar="FILE", help="Read this file of STRETTO_STATS=json:FILE, and run nothing."),
]
Picture = Annotated[
    Optional[Path],
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw a bar for each site: in the call, hidden, waited; and the same over the run (.png, .svg, .pdf).",
        callback=output_files.drawable,
    ),
]


def command(
    program: Program = None,
    np: Np = None,
    name: Name = None,
    where: Where = "slot",
    mpi: MpiOption = None,
    settings: Settings = None,
    launcher: Launcher = None,
    source: Source = None,
    picture: Picture = None,
    json_file: ResultsFile = None,
) -> None:
    """Run a program, and say of each call site what hides behind the computation after it.

    A site is an operation and a length. Its data come until some time after the call. The program waits for pages \
that it touches before; the rest is hidden.

    [dim]stretto report --overlap --name mine -- ./fft3d --size 128[/]
    [dim]stretto report --overlap --from stats.json --plot sites.png[/]
    """
    if bool(program) == bool(source):
        fail("either a program or --from FILE is expected" + (", not both" if program else ""))
    try:
        if source:
            of, stats = str(source), overlap_report.read(source)
        else:
            words = list(program or [])
            of, stats = shlex.join(words), run(words, np, name, where, mpi, settings or [], launcher or [])
        rows = overlap_report.results(stats)
    except Unusable as error:
        fail(str(error), 2 if source else 1)
    write_json(
        json_file,
        "overlap.report",
        {"of": of, "ranks": stats["ranks"], "command": shlex.join(["stretto", *sys.argv[1:]]), "results": rows},
    )
    if picture:
        overlap_report.plot(rows, of, picture)
    if json_file is None:
        overlap_report.show(rows, of, overlap_report.forgotten(stats))


def run(
    program: list[str],
    np: int | None,
    name: str | None,
    where: str,
    mpi: str | None,
    settings: list[str],
    launcher: list[str],
) -> overlap_report.Row:
    """The statistics of the program's run. What it prints stays visible, on stderr."""
    path = choosing.find_program(program[0])
    wanted, extra = probe.checked_settings(settings), launching.words_of(launcher)
    if name or not launching.is_spread(extra):
        arguments.check_crowd(np or 1)
    with plain_errors():
        cluster = Cluster.find(name) if name else None
        hosts = jobs.placement(cluster, np or cluster.plan.ranks, where) if cluster else []
    chosen = choosing.choose_for(path, program[1:], mpi)
    library = library_for(chosen.abi)
    with scratch(cluster) as folder:
        file = folder / "stats.json"
        given = {**early.ALWAYS, **wanted, "STRETTO_STATS": f"json:{file}"}
        env = environments.rank_environment(library, given, linkage.sanitizer_runtimes(path))
        argv = [str(path), *program[1:]]
        status = (
            _on_cluster(cluster, chosen, hosts, argv, env, extra)
            if cluster
            else _here(chosen, chosen.command(np or 2, argv, env, extra))
        )
        if status:
            fail(f"{program[0]} ended with status {status}: no report", status if 0 < status < 256 else 1)
        if not file.exists():
            fail(f"{program[0]} left no statistics: it does not call MPI_Finalize, or is no MPI program", 1)
        return overlap_report.read(file)


@contextmanager
def scratch(cluster: Cluster | None) -> Iterator[Path]:
    """A folder that the ranks see."""
    with tempfile.TemporaryDirectory(dir=cluster.directory if cluster else None) as folder:
        yield Path(folder)


def _on_cluster(
    cluster: Cluster, mpi: Mpi, hosts: list[str], argv: list[str], env: dict[str, str], extra: list[str]
) -> int:
    with plain_errors():
        line = jobs.command(cluster, mpi, hosts, argv, env, extra)
        return attend(cluster, jobs.start(cluster, mpi, line, (0, 2, 2)))


def _here(mpi: Mpi, line: list[str]) -> int:
    with launching.launched(line, env=environments.launching_environment(mpi), stdout=sys.stderr) as job:
        return job.wait()
