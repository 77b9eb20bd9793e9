# SPDX-License-Identifier: BSD-3-Clause
"""model best-k: whether the model's number of chains is the best one."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto.cluster.simulation import Network, Simulation, network_of
from stretto.cluster.target import Target, choose_target
from stretto.commands.model_options import JsonFile, ProfileFile, Sizes, numbers
from stretto.commands.options import ClusterName, MpiName
from stretto.core.console import fail, out, working
from stretto.core.reports import write_json
from stretto.core.units import format_size, format_time
from stretto.model import best_k, profile_file
from stretto.model.profile import Profile


Simulated = Annotated[
    Optional[list[str]],
    typer.Option(
        "--simulate",
        metavar="CLUSTER",
        help="Simulated clusters (SimGrid), as [b]stretto cluster simulate[/] has "
        "them: [b]48x1[/], [b]16x8[/]. May be repeated.",
        show_default=False,
    ),
]
Ks = Annotated[
    Optional[str],
    typer.Option(
        "--k",
        metavar="LIST",
        help="Only these, as [b]1:64[/], doubled, or [b]1,2,3[/]. Default: every one.",
        show_default=False,
    ),
]
Repeat = Annotated[
    int, typer.Option("--repeat", metavar="N", min=1, help="Timed runs of each on a cluster of namespaces.")
]
Patience = Annotated[
    float, typer.Option("--patience", metavar="S", min=1, help="Seconds for the simulations of one length.")
]
Overhead = Annotated[
    float,
    typer.Option(
        "--overhead",
        metavar="US",
        min=0,
        help="Simulated: microseconds of a processor for each message, at either end.",
    ),
]


def command(
    simulated: Simulated = None,
    cluster: ClusterName = None,
    mpi: MpiName = None,
    sizes: Sizes = "8,8K,8M",
    profile: ProfileFile = None,
    ks: Ks = None,
    repeat: Repeat = 40,
    patience: Patience = 600,
    overhead: Overhead = best_k.OVERHEAD_US,
    json_file: JsonFile = None,
) -> None:
    """Execute a Reduce by k chains for every k, and other algorithms: is the model's k the best?"""
    if bool(simulated) == bool(cluster):
        fail("best-k: --simulate CLUSTER, or --cluster NAME")
    lengths = numbers(sizes, "--sizes")
    wanted = numbers(ks, "--k", 1) if ks else None
    networks = [
        replace(network_of(text), overhead_us=overhead, eager_bytes=best_k.EAGER_BYTES) for text in simulated or []
    ]
    costs = profile_file.load(profile, cluster) if cluster else None
    reports = [simulated_report(network, patience, lengths, wanted) for network in networks]
    if costs:
        reports.append(measured_report(choose_target(mpi, cluster), costs, lengths, wanted, repeat))
    write_json(json_file, "model.best-k", {"reports": reports})
    if json_file and str(json_file) == "-":
        return
    for each in reports:
        show(each["title"], each["rows"])


def simulated_report(network: Network, patience: float, lengths: list[int], ks: list[int] | None) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="stretto-simulated-") as folder,
        working(f"simulating {network.ranks} ranks"),
    ):
        simulation = Simulation(network, Path(folder), patience)
        costs = best_k.simulated_profile(simulation, lengths)
        levels, by = ["--levels", network.levels], best_k.by_simulation(simulation)
        rows = best_k.tried(costs, network.ranks, levels, lengths, ks, by)
    title = f"reduce, {network.nodes} simulated nodes of {network.per_node} ranks"
    return {"network": asdict(network), "ranks": network.ranks, "title": title, "rows": rows}


def measured_report(
    target: Target, costs: Profile, lengths: list[int], ks: list[int] | None, repeat: int
) -> dict[str, Any]:
    assert target.cluster
    ranks = target.cluster.plan.ranks
    with working(f"measuring {target.name}"):
        by = best_k.by_cluster(target, ranks, repeat)
        rows = best_k.tried(costs, ranks, target.placement(ranks), lengths, ks, by)
    title = f"reduce, {target.name}, {ranks} ranks"
    return {"cluster": target.cluster.plan.as_json(), "ranks": ranks, "title": title, "rows": rows}


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    others = list(rows[0]["others"])
    for name in ("bytes", "model's k", "its time", "best k", "its time", "model's / best", *others):
        table.add_column(name, justify="right")
    for r in rows:
        table.add_row(
            format_size(r["bytes"]),
            str(r["model_k"]),
            format_time(r["model_k_time"]),
            str(r["best_k"]),
            format_time(r["best_time"]),
            f"{r['ratio']:.2f}",
            *(format_time(r["others"][name]) for name in others),
        )
    out.print(table)
