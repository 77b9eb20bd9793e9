# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite nonblocking, neighbors: calls that have a program of their own, beside the MPI's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.bench import beside_host
from stretto.bench.request import parse_ranks
from stretto.cluster.cluster import Cluster
from stretto.cluster.registry import ClusterError
from stretto.commands.options import ClusterName, MpiName, ResultsFile, checked
from stretto.core import machine
from stretto.core.arguments import MOST_PER_CPU, check_crowd
from stretto.core.console import fail
from stretto.core.reports import write_json
from stretto.mpi import choosing
from stretto.mpi.launching import JobFailed, JobHangs

RankCounts = Annotated[
    str, typer.Option("-n", "--ranks", "--np", metavar="LIST", help="Number of ranks; several with commas.")
]
Runs = Annotated[
    int, typer.Option("--runs", metavar="N", min=1, help="Repeat everything; figures are medians over the runs.")
]
Force = Annotated[bool, typer.Option("--force", help=f"Also more than {MOST_PER_CPU} ranks for each processor.")]


def nonblocking(
    np: RankCounts = "2",
    runs: Runs = 1,
    mpi: MpiName = None,
    cluster: ClusterName = None,
    json_file: ResultsFile = None,
    force: Force = False,
) -> None:
    """Measure nonblocking collectives: their latency, and what is left of them beside computing.

    [dim]stretto bench --suite nonblocking -n 2,8[/]
    """
    measure("nonblocking", np, runs, mpi, cluster, json_file, force)


def neighbors(
    np: RankCounts = "2",
    runs: Runs = 1,
    mpi: MpiName = None,
    cluster: ClusterName = None,
    json_file: ResultsFile = None,
    force: Force = False,
) -> None:
    """Measure a halo exchange by MPI_Neighbor_alltoallv.

    [dim]stretto bench --suite neighbors -n 2,4,8[/]
    """
    measure("neighbors", np, runs, mpi, cluster, json_file, force)


def measure(
    suite: str, np: str, runs: int, mpi: str | None, name: str | None, json_file: Path | None, force: bool
) -> None:
    ranks, calls = checked(parse_ranks, np), beside_host.SUITES[suite]
    if not name:
        check_crowd(max(ranks), force)
    try:
        cluster = Cluster.find(name) if name else None
        calls = calls.on_links() if cluster else calls
        chosen = choosing.choose(mpi)
        machine.warn_if_busy()
        rows = beside_host.measure(calls, chosen, ranks, runs, cluster)
    except ClusterError as error:
        fail(str(error))
    except (JobFailed, JobHangs) as error:
        fail(str(error), 1)
    doc = beside_host.document(chosen, ranks, calls, rows, runs, cluster)
    write_json(json_file, suite, doc)
    if json_file is None:
        beside_host.show(calls, doc)
