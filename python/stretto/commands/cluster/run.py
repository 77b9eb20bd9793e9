# SPDX-License-Identifier: BSD-3-Clause
"""cluster run: an MPI program on a cluster."""

from __future__ import annotations

import shlex
import signal
import time
from typing import Annotated, Optional

import typer

from stretto.cluster import jobs, shell
from stretto.cluster.cluster import Cluster
from stretto.cluster.prerequisites import why_not
from stretto.commands.cluster.options import JSON, NAME, links_report, plain_errors, show_links
from stretto.commands.options import LaunchedBy, Launcher, Program
from stretto.core.arguments import check_crowd
from stretto.core.console import err, fail, note
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.mpi import choosing, environments, launching
from stretto.native import probe
from stretto.native.build import library_for


Np = Annotated[
    Optional[int],
    typer.Option(
        "-n",
        "--ranks",
        "--np",
        min=1,
        metavar="N",
        help="Number of ranks. Default: as many as the cluster was made for.",
    ),
]
Where = Annotated[
    str,
    typer.Option(
        "--map",
        metavar="MAP",
        help="Where ranks go: [b]slot[/] fills host after host, [b]node[/] deals "
        "them out, or a file with a host's name per line.",
    ),
]
Preload = Annotated[bool, typer.Option("--with/--without", help="With Stretto in front of the program, or without.")]
Settings = Annotated[
    Optional[list[str]],
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="A Stretto option for this run. May be repeated."),
]
Links = Annotated[bool, typer.Option("--links", help="Print at the end what crossed every link.")]


def command(
    program: Program,
    name: NAME = "default",
    np: Np = None,
    where: Where = "slot",
    mpi: LaunchedBy = None,
    preload: Preload = True,
    settings: Settings = None,
    launcher: Launcher = None,
    links: Links = False,
    json_file: JSON = None,
) -> None:
    """Run an MPI program on a cluster, by the MPI's own launcher. The exit status is the launcher's.

    [dim]stretto cluster run --map node --links -- ./app --its-option[/]
    """
    if reason := why_not():
        fail(reason)
    path = choosing.find_program(program[0])
    check_outputs(json_file)
    wanted, extra = probe.checked_settings(settings or []), launching.words_of(launcher or [])
    check_crowd(np or 1)
    with plain_errors():
        cluster = Cluster.find(name)
        hosts = jobs.placement(cluster, np or cluster.plan.ranks, where)
    chosen = choosing.choose(mpi) if mpi else choosing.mpi_of(path, program[1:]) or choosing.choose(None)
    chosen = choosing.check_mpi(chosen, path, program[1:])
    env = environments.rank_environment(library_for(chosen.abi), wanted) if preload else {}
    with plain_errors():
        if len(hosts) > cluster.plan.ranks:
            note(
                f"{len(hosts)} ranks, but cluster {name} was made for {cluster.plan.ranks}: more ranks "
                "share a processor"
            )
        line = jobs.command(cluster, chosen, hosts, [path, *program[1:]], env, extra)
        before, begin = cluster.links(), time.monotonic()
        status = attend(cluster, jobs.start(cluster, chosen, line))
        seconds, after = time.monotonic() - begin, cluster.links()
    rows = links_report(cluster, {link: after[link] - before[link] for link in after})
    if links:
        show_links(rows, f"in {seconds:.1f} s", err.print)
    write_json(
        json_file,
        "cluster.run",
        {
            "mpi": chosen.title,
            "np": len(hosts),
            "map": where,
            "preloaded": preload,
            "status": status,
            "seconds": seconds,
            "command": shlex.join(line),
            "links": rows,
        },
    )
    raise typer.Exit(status)


def attend(cluster: Cluster, connection) -> int:
    """Waits for the job. Signals that would end this process go to the job."""
    for number in shell.FORWARDED:
        signal.signal(number, lambda number, _: shell.send_signal(connection, number))
    with connection:
        status = shell.wait(connection)
    return status if status >= 0 else 128 - status
