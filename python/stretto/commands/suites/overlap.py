# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite overlap: how much of a collective hides behind the computation that follows it."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Optional

import typer

from stretto.bench import overlap
from stretto.bench.overlap_bounds import ORDERS
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import PlanError
from stretto.cluster.registry import ClusterError
from stretto.commands.options import MpiName, ResultsFile, checked
from stretto.core import machine
from stretto.core.console import fail, note
from stretto.core.early import ALWAYS
from stretto.core.reports import write_json
from stretto.core.units import parse_sizes
from stretto.mpi import choosing, environments
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.mpi.launching import JobFailed, JobHangs
from stretto.native import probe
from stretto.native.build import library_for

Order = Enum("Order", {name: name for name in ORDERS}, type=str)  # as in bench/overlap.cpp
BLOCKING = {"STRETTO_OVERLAP": "off"}


class Compute(str, Enum):
    sleep = "sleep"
    work = "work"


Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Which cluster: several may be up.")]
Op = Annotated[
    str, typer.Option("--op", metavar="LIST", help="Operations, with commas: " + ", ".join(overlap.OPS) + "; or all.")
]
Sizes = Annotated[
    str, typer.Option("--sizes", metavar="A:B", help="Bytes of one rank's block: the powers of two from A to B.")
]
Maps = Annotated[
    str, typer.Option("--map", metavar="LIST", help="block: ranks fill host after host. cyclic: one on each, in turn.")
]
OrderOption = Annotated[
    Order,
    typer.Option(
        "--order",
        help="Which received block is touched first. own: a rank's own, then those of the ranks before it. rank: "
        "0 to N-1. reverse: N-1 to 0. alike: a part of every block at a time.",
    ),
]
ComputeOption = Annotated[
    Compute, typer.Option("--compute", help="sleep: computing needs no processor. work: it does.")
]
Regimes = Annotated[
    str, typer.Option("--regimes", metavar="LETTERS", help="Of S5: how much is computed after the call, and on what.")
]
Repeat = Annotated[
    int, typer.Option("--repeat", metavar="N", min=1, max=1000, help="Repetitions; figures are medians.")
]
Settings = Annotated[
    Optional[list[str]],
    typer.Option(
        "--set", "-s", metavar="NAME=VALUE", help="A Stretto option, for both kinds of jobs. May be repeated."
    ),
]


def command(
    name: Name = "default",
    op: Op = "alltoall,alltoallv",
    sizes: Sizes = "1M",
    maps: Maps = "block,cyclic",
    order: OrderOption = Order.own,
    compute: ComputeOption = Compute.sleep,
    regimes: Regimes = overlap.REGIMES,
    repeat: Repeat = 5,
    mpi: MpiName = None,
    settings: Settings = None,
    json_file: ResultsFile = None,
) -> None:
    """Measure how much of a collective hides behind the computation after it, on a cluster.

    This is paper S5's microbenchmark in its five regimes. Calls may return early in the first job and block in the \
second, which does the same work. Beside what is hidden stand S5's formula (1), without the time within the call, and \
the most that this order and map allow.

    [dim]stretto cluster up --leaves 1 --hosts 4 --host-rate 200M[/]
    [dim]stretto bench --suite overlap --op alltoall --map block --order rank[/]
    """
    least, most = checked(parse_sizes, sizes, "--sizes")
    if least % overlap.WORD:
        fail(f"--sizes {sizes}: a multiple of {overlap.WORD} bytes")
    request = overlap.Request(
        checked(overlap.parse_ops, op, "--op"),
        least,
        most,
        checked(overlap.parse_maps, maps, "--map"),
        order.value,
        compute.value,
        checked(overlap.parse_regimes, regimes, "--regimes"),
        repeat,
    )
    options = probe.checked_settings(settings or [])
    try:
        cluster = Cluster.find(name)
        chosen = choosing.choose(mpi)
        machine.warn_if_busy()
        library = library_for(chosen.abi)
        ours = [
            environments.rank_environment(library, {**SERVED_AT_ONCE, **kind})
            for kind in ({**ALWAYS, **options}, {**options, **BLOCKING})
        ]
        if said := overlap.advice(request, cluster.plan.ranks, cluster.plan.ranks_per_host):
            note(said)
        measured = overlap.measure(request, overlap.runner(cluster, chosen), *ours)
    except (ClusterError, PlanError) as error:
        fail(str(error))
    except (JobFailed, JobHangs) as error:
        fail(str(error), 1)
    doc = overlap.document(cluster, chosen, request, measured)
    write_json(json_file, "overlap.bench", doc)
    if json_file is None:
        overlap.show(doc)
