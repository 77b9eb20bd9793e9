# SPDX-License-Identifier: BSD-3-Clause
"""cluster bench: our collectives between hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.bench import between_hosts
from stretto.bench.request import Method, Request, parse_ops
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import PlanError
from stretto.cluster.registry import ClusterError
from stretto.commands.options import checked
from stretto.core import machine
from stretto.core.console import fail
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.core.units import parse_sizes
from stretto.mpi import choosing, environments
from stretto.mpi.choosing import MPI_HELP
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.native import probe
from stretto.native.build import library_for


Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Which cluster: several may be up.")]
Op = Annotated[str, typer.Option("--op", metavar="LIST", help="Operations, with commas, as of [b]stretto bench[/].")]
Sizes = Annotated[
    str, typer.Option("--sizes", metavar="A:B", help="Bytes of one rank's block: the powers of two from A to B.")
]
Maps = Annotated[
    str, typer.Option("--map", metavar="LIST", help="slot, node, or files, as of [b]stretto cluster run[/].")
]
Peers = Annotated[
    Optional[str], typer.Option("--peers", metavar="LIST", help="Of Open MPI: tuned, han. Default: both.")
]
Mpi = Annotated[Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + MPI_HELP)]
MethodOption = Annotated[Method, typer.Option("--method", help="As of [b]stretto bench[/].")]
RootShift = Annotated[
    int,
    typer.Option("--root-shift", metavar="0|1", min=0, max=1, help="1: another root at each call. 0: always rank 0."),
]
Budget = Annotated[
    float, typer.Option("--budget", metavar="S", min=0.001, help="Seconds for one contender at one size.")
]
Repeat = Annotated[
    int,
    typer.Option(
        "--repeat",
        metavar="N",
        min=0,
        max=4096,
        help="Calls in each of the five rounds; 0: as many as --budget allows.",
    ),
]
Runs = Annotated[
    int, typer.Option("--runs", metavar="N", min=1, help="Repeat everything; figures are medians over the runs.")
]
Settings = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set", "-s", metavar="NAME=VALUE", help="A Stretto option, e.g. [b]-s bcast=schedule[/]. May be repeated."
    ),
]
Off = Annotated[
    bool, typer.Option("--off", help="Without the library: the MPI against itself, which shows this machine's noise.")
]
JsonFile = Annotated[
    Optional[Path], typer.Option("--json", metavar="FILE", help="Results as JSON into FILE (- for stdout), no table.")
]


def command(
    name: Name = "default",
    op: Op = "bcast,reduce,allreduce",
    sizes: Sizes = "4:4M",
    maps: Maps = "slot,node",
    peers: Peers = None,
    mpi: Mpi = None,
    method: MethodOption = Method.imb,
    root_shift: RootShift = 1,
    budget: Budget = 0.2,
    repeat: Repeat = 0,
    runs: Runs = 1,
    settings: Settings = None,
    off: Off = False,
    json_file: JsonFile = None,
) -> None:
    """Measure our collectives between hosts against the MPI's own, and against what the slowest link needs."""
    least, most = checked(parse_sizes, sizes, "--sizes")
    request = Request(
        checked(parse_ops, op), least, most, method.value, root_shift, repeat=repeat, budget_s=budget, off=off
    )
    check_outputs(json_file)
    options = probe.checked_settings(settings or [])
    try:
        cluster = Cluster.find(name)
        for where in maps.split(","):
            jobs.placement(cluster, cluster.plan.ranks, where)
        chosen = choosing.choose(mpi)
        known = between_hosts.peers_of(chosen)
        wanted = peers.split(",") if peers else list(known)
        if unknown := [peer for peer in wanted if peer not in known]:
            fail(f"--peers {unknown[0]}: one of {', '.join(known)}")
        machine.warn_if_busy()
        ours = {} if off else environments.rank_environment(library_for(chosen.abi), {**SERVED_AT_ONCE, **options})
        measured = between_hosts.measure(
            cluster, chosen, maps.split(","), {peer: {**ours, **known[peer]} for peer in wanted}, request, runs
        )
    except (ClusterError, PlanError) as error:
        fail(str(error))
    doc = between_hosts.document(cluster, chosen, request, measured, runs)
    if json_file:
        write_json(json_file, "cluster.bench", doc)
    else:
        between_hosts.show(doc)
