# SPDX-License-Identifier: BSD-3-Clause
"""cluster up, run, status, down: what the user types."""

from __future__ import annotations

import shlex
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto import launch
from stretto.arguments import check_crowd
from stretto.cluster import bench, cluster as clusters, jobs, shell, simulate
from stretto.cluster.cluster import Cluster, ClusterError
from stretto.cluster.plan import Plan, PlanError, parse_rate, print_rate
from stretto.cluster.wiring import Traffic
from stretto.console import err, fail, note, out, write_json
from stretto.outputs import check_outputs

HELP = """Clusters on this machine, for trying MPI programs between hosts.

Hosts are sets of Linux namespaces, each with its own name, network, processes and shared memory; switches are bridges; links
have rates. [b]stretto cluster up[/] makes one, [b]stretto cluster run -- ./app[/] starts a program on it. Needs root.
"""

app = typer.Typer(help=HELP, rich_markup_mode="rich", no_args_is_help=True)

NAME = Annotated[str, typer.Option("--name", metavar="NAME", help="Which cluster: several may be up.")]
JSON = Annotated[
    Optional[Path], typer.Option("--json", metavar="FILE", help="Write it as JSON into FILE ([b]-[/]: stdout).")
]


@contextmanager
def plain_errors():
    try:
        yield
    except (ClusterError, PlanError) as error:
        fail(str(error))


@app.command()
def up(
    name: NAME = "default",
    leaves: Annotated[
        int, typer.Option("--leaves", metavar="N", min=1, help="Leaf switches; two or more hang on one spine switch.")
    ] = 2,
    hosts: Annotated[int, typer.Option("--hosts", metavar="N", min=1, help="Hosts on each leaf switch.")] = 2,
    ranks: Annotated[int, typer.Option("--per-host", "--ranks", min=1, metavar="N", help="Ranks of each host.")] = 2,
    host_rate: Annotated[
        str, typer.Option("--host-rate", metavar="RATE", help="Bits per second of each host's link, each way.")
    ] = "1G",
    uplink_rate: Annotated[
        str, typer.Option("--uplink-rate", metavar="RATE", help="The same from a leaf switch to the spine.")
    ] = "0.5G",
    nics: Annotated[
        int,
        typer.Option(
            "--nics",
            metavar="N",
            min=1,
            help="Network cards of each host, each with a link of its own; Open MPI's ranks take them in turn.",
        ),
    ] = 1,
) -> None:
    """Make a cluster and leave it up."""
    with plain_errors():
        cluster = Cluster.up(Plan(name, leaves, hosts, ranks, parse_rate(host_rate), parse_rate(uplink_rate), nics))
    out.print(f"cluster {name} is up: {describe(cluster.plan)}; network file {cluster.network_file}", markup=False)


def describe(plan: Plan) -> str:
    cards = f"{plan.nics} x " if plan.nics > 1 else ""
    rates = f"hosts {cards}{print_rate(plan.host_rate_bps)}" + (
        f", uplinks {print_rate(plan.uplink_rate_bps)}" if plan.leaves > 1 else ""
    )
    return f"{plan.leaves} leaf switches x {plan.hosts_per_leaf} hosts x {plan.ranks_per_host} ranks, {rates}"


@app.command()
def down(
    name: NAME = "default", all_: Annotated[bool, typer.Option("--all", help="All clusters of this machine.")] = False
) -> None:
    """Take a cluster away, with everything that runs on it, whatever state it is in."""
    if reason := clusters.why_not():
        fail(reason)
    with plain_errors():
        for each in (found := clusters.names() if all_ else [name]):
            clusters.down(each)
            out.print(f"cluster {each} is gone", markup=False)
    if not found:
        out.print("there is no cluster")


app.command("bench")(bench.command)
app.command("simulate")(simulate.command)


# ---- status ------------------------------------------------------------------------------------------------------------


def report(cluster: Cluster) -> dict[str, Any]:
    plan, links = cluster.plan, cluster.links()
    return {
        **plan.as_json(),
        "network_file": str(cluster.network_file),
        "agent": str(cluster.agent),
        "hosts": [
            {"name": h.name, "address": h.address, "switch": h.leaf, "processes": len(cluster.processes(h.name))}
            for h in plan.hosts
        ],
        "links": links_report(cluster, links),
    }


def links_report(cluster: Cluster, links: Mapping[str, Traffic]) -> list[dict[str, Any]]:
    return [
        {
            "name": link.name,
            "upper": link.upper,
            "uplink": link.is_uplink,
            "rate_bps": link.rate_bps,
            "up_bytes": links[link.name].up_bytes,
            "down_bytes": links[link.name].down_bytes,
        }
        for link in cluster.plan.links
    ]


def show_links(rows: list[dict[str, Any]], title: str, print_: Callable[[Any], None]) -> None:
    table = Table(title=title, title_justify="left")
    for column in ("link", "rate", "bytes up", "bytes down"):
        table.add_column(column, justify="left" if column == "link" else "right")
    for row in rows:
        table.add_row(
            f"{row['name']} - {row['upper']}",
            print_rate(row["rate_bps"]),
            f"{row['up_bytes']:,}",
            f"{row['down_bytes']:,}",
        )
    print_(table)


@app.command()
def status(name: NAME = "default", json: JSON = None) -> None:
    """Show a cluster's hosts and links, and what has crossed them."""
    if reason := clusters.why_not():
        fail(reason)
    with plain_errors():
        found = report(Cluster.find(name))
    write_json(json, "cluster.status", found)
    if json and str(json) == "-":
        return
    table = Table(title=f"cluster {name}, network file {found['network_file']}", title_justify="left")
    for column in ("host", "address", "switch", "processes"):
        table.add_column(column, justify="right" if column == "processes" else "left")
    for host in found["hosts"]:
        table.add_row(host["name"], host["address"], host["switch"], str(host["processes"]))
    out.print(table)
    show_links(found["links"], "links", out.print)


# ---- run ---------------------------------------------------------------------------------------------------------------


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    program: Annotated[
        list[str],
        typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The MPI program and its arguments.", show_default=False),
    ],
    name: NAME = "default",
    np: Annotated[
        Optional[int],
        typer.Option(
            "-n",
            "--ranks",
            "--np",
            min=1,
            metavar="N",
            help="Number of ranks. Default: as many as the cluster was made for.",
        ),
    ] = None,
    where: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="MAP",
            help="Where ranks go: [b]slot[/] fills host after host, [b]node[/] deals "
            "them out, or a file with a host's name per line.",
        ),
    ] = "slot",
    mpi: Annotated[
        Optional[str],
        typer.Option(
            "--mpi",
            metavar="MPI",
            help="Which MPI launches it. Default: the one the program is "
            "linked to, else the one in PATH. " + launch.MPI_HELP,
        ),
    ] = None,
    preload: Annotated[
        bool, typer.Option("--with/--without", help="With Stretto in front of the program, or without.")
    ] = True,
    settings: Annotated[
        Optional[list[str]],
        typer.Option("--set", "-s", metavar="NAME=VALUE", help="A Stretto option for this run. May be repeated."),
    ] = None,
    launcher: Annotated[
        Optional[list[str]],
        typer.Option("--launcher", "-L", metavar="WORDS", help="Words for mpiexec itself. May be repeated."),
    ] = None,
    links: Annotated[bool, typer.Option("--links", help="Print at the end what crossed every link.")] = False,
    json: JSON = None,
) -> None:
    """Run an MPI program on a cluster, by the MPI's own launcher. The exit status is the launcher's.

    [dim]stretto cluster run --map node --links -- ./app --its-option[/]
    """
    if reason := clusters.why_not():
        fail(reason)
    path = launch.find_program(program[0])
    check_outputs(json)
    wanted, extra = launch.parse_settings(settings or []), launch.words_of(launcher or [])
    check_crowd(np or 1)
    with plain_errors():
        cluster = Cluster.find(name)
        hosts = jobs.placement(cluster, np or cluster.plan.ranks, where)
    chosen = launch.choose(mpi) if mpi else launch.mpi_of(path, program[1:]) or launch.choose(None)
    launch.check_mpi(chosen, path, program[1:])
    env = launch.rank_environment(launch.library_for(chosen.abi), wanted) if preload else {}
    with plain_errors():
        if len(hosts) > cluster.plan.ranks:
            note(
                f"{len(hosts)} ranks, but cluster {name} was made for {cluster.plan.ranks}: they share processors even more"
            )
        line = jobs.command(cluster, chosen, hosts, [path, *program[1:]], env, extra)
        before, begin = cluster.links(), time.monotonic()
        status = attend(cluster, jobs.start(cluster, chosen, line))
        seconds, after = time.monotonic() - begin, cluster.links()
    rows = links_report(cluster, {link: after[link] - before[link] for link in after})
    if links:
        show_links(rows, f"in {seconds:.1f} s", err.print)
    write_json(
        json,
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
    """Waits for the job; whatever would end us goes to it instead."""
    for number in shell.FORWARDED:
        signal.signal(number, lambda number, _: shell.send_signal(connection, number))
    with connection:
        status = shell.wait(connection)
    return status if status >= 0 else 128 - status
