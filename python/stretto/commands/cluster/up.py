# SPDX-License-Identifier: BSD-3-Clause
"""cluster up: makes a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import Plan, describe, parse_rate
from stretto.commands.cluster.options import NAME, plain_errors
from stretto.core.console import out


def command(
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
