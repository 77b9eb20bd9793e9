# SPDX-License-Identifier: BSD-3-Clause
"""cluster bench: our collectives between hosts against the best that the MPI has, and against what the slowest link needs.

The measuring program is that of `stretto bench`, in which ours and the MPI's own take turns. What Open MPI calls its own
depends on which of its components it prefers, so there is one run for each of them, in turn.
"""

from __future__ import annotations

import shlex
import statistics
import sys
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.table import Table

from stretto import bench, launch, machine
from stretto.bench import Request, Row
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster, ClusterError
from stretto.cluster.plan import Plan, PlanError, print_rate
from stretto.console import err, fail, note, out, write_json
from stretto.mpi import Mpi
from stretto.outputs import check_outputs

# What an MPI may mean by "its own": components of Open MPI, each preferred in turn. Others have one.
PEERS = {"openmpi": {"tuned": {"OMPI_MCA_coll_tuned_priority": "100"}, "han": {"OMPI_MCA_coll_han_priority": "100"}}}
# Operations of which each direction of an uplink must carry one message, whatever the algorithm.
ONCE_OVER = ("bcast", "reduce", "allreduce")


def peers_of(mpi: Mpi) -> dict[str, dict[str, str]]:
    return PEERS.get(mpi.kind, {mpi.kind: {}})


def run_once(
    cluster: Cluster, mpi: Mpi, where: str, env: dict[str, str], request: Request, on_row: Callable[[Row], None]
) -> list[Row]:
    """One run of the program; every event it prints."""
    argv = [bench.program(mpi), *request.arguments(), "--segment", cluster.shared / uuid.uuid4().hex]
    hosts = jobs.placement(cluster, cluster.plan.ranks, where)
    line = jobs.command(cluster, mpi, hosts, argv, env)
    with jobs.piped(cluster, mpi, line) as (output, end):
        events = bench.collect(output, on_row)
        bench.judge(line, events, *end())
    return events


# ---- figures -----------------------------------------------------------------------------------------------------------


def link_time_us(plan: Plan, op: str, bytes_: int) -> float | None:
    """What the slowest link needs for as much as must cross it."""
    if op not in ONCE_OVER or len(plan.hosts) == 1:
        return None
    slowest = min(link.rate_bps for link in plan.links)
    return bytes_ * 8e6 / slowest


def rows_of(plan: Plan, measured: dict[tuple[str, str], list[list[Row]]]) -> list[Row]:
    """One row per map, operation and size; `measured` has the runs by map and peer. Ratios are taken within runs, and the
    best peer is the one with the largest."""
    by_call: dict[tuple[str, str, int], dict[str, Row]] = {}
    for (where, peer), runs in measured.items():
        for result in bench.results_of(runs):
            by_call.setdefault((where, result["op"], result["bytes"]), {})[peer] = result
    rows = []
    for (where, op, size), peers in by_call.items():
        best = max(peers, key=lambda peer: peers[peer]["ratio"])
        ours, needed = statistics.median(p["ours_us"] for p in peers.values()), link_time_us(plan, op, size)
        rows.append(
            {
                "map": where,
                "op": op,
                "bytes": size,
                "ours_us": ours,
                "mpi_us": {peer: r["mpi_us"] for peer, r in peers.items()},
                "best": best,
                "ratio": peers[best]["ratio"],
                "ratios": peers[best]["ratios"],
                "link_us": needed,
                "link_ratio": ours / needed if needed else None,
                "path": peers[best]["path"],
            }
        )
    return rows


def document(
    cluster: Cluster, mpi: Mpi, request: Request, measured: dict[tuple[str, str], list[list[Row]]], runs: int
) -> Row:
    rows = rows_of(cluster.plan, measured)
    maps = list(dict.fromkeys(row["map"] for row in rows))
    return {
        "mpi": mpi.kind,
        "mpi_version": mpi.version,
        "mpi_title": mpi.title,
        "cluster": cluster.plan.as_json(),
        "machine": machine.one_line(),
        "machine_details": machine.describe(),
        "method": request.method,
        "root_shift": request.root_shift,
        "runs": runs,
        "command": shlex.join(["stretto", *sys.argv[1:]]),
        "results": rows,
        "geomean": {where: bench.geomeans([r for r in rows if r["map"] == where]) for where in maps},
        "worst": {
            where: {op: max(r["ratio"] for r in rows if (r["map"], r["op"]) == (where, op)) for op in request.ops}
            for where in maps
        },
    }


def show(doc: Row) -> None:
    plan = Plan(**doc["cluster"])
    peers = list(doc["results"][0]["mpi_us"])
    for where in doc["geomean"]:
        table = Table(
            title=f"{doc['mpi_title']} on {len(plan.hosts)} hosts x {plan.ranks_per_host} ranks, uplinks {print_rate(plan.uplink_rate_bps)}, "
            f"map {where}: times in us of the slowest rank",
            title_justify="left",
        )
        for name in ("operation", "bytes", "ours", *peers, "ours / best", "slowest link", "ours / link", "path"):
            table.add_column(name, justify="left" if name in ("operation", "path") else "right")
        for r in (r for r in doc["results"] if r["map"] == where):
            link = ("", "") if r["link_us"] is None else (bench.time_us(r["link_us"]), f"{r['link_ratio']:.2f}")
            table.add_row(
                r["op"],
                bench.print_size(r["bytes"]),
                bench.time_us(r["ours_us"]),
                *(bench.time_us(r["mpi_us"][p]) for p in peers),
                bench.colour(r["ratio"], 1.0, 1.1),
                *link,
                r["path"],
            )
        out.print(table)
        for op, value in doc["geomean"][where].items():
            out.print(
                f"{op}, map {where}: geometric mean {bench.colour(value, 0.6, 1.0)} of the best of {', '.join(peers)}, "
                f"worst {doc['worst'][where][op]:.2f}"
            )


# ---- the command -------------------------------------------------------------------------------------------------------


def command(
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Which cluster: several may be up.")] = "default",
    op: Annotated[
        str, typer.Option("--op", metavar="LIST", help="Operations, with commas, as of [b]stretto bench[/].")
    ] = "bcast,reduce,allreduce",
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="A:B", help="Bytes of one rank's block: the powers of two from A to B.")
    ] = "4:4M",
    maps: Annotated[
        str, typer.Option("--map", metavar="LIST", help="slot, node, or files, as of [b]stretto cluster run[/].")
    ] = "slot,node",
    peers: Annotated[
        Optional[str], typer.Option("--peers", metavar="LIST", help="Of Open MPI: tuned, han. Default: both.")
    ] = None,
    mpi: Annotated[
        Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + launch.MPI_HELP)
    ] = None,
    method: Annotated[bench.Method, typer.Option("--method", help="As of [b]stretto bench[/].")] = bench.Method.imb,
    root_shift: Annotated[
        int,
        typer.Option(
            "--root-shift", metavar="0|1", min=0, max=1, help="1: another root at each call. 0: always rank 0."
        ),
    ] = 1,
    budget: Annotated[
        float, typer.Option("--budget", metavar="S", min=0.001, help="Seconds for one contender at one size.")
    ] = 0.2,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat",
            metavar="N",
            min=0,
            max=4096,
            help="Calls in each of the five rounds; 0: as many as --budget allows.",
        ),
    ] = 0,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=1, help="Repeat everything; figures are medians over the runs.")
    ] = 1,
    settings: Annotated[
        Optional[list[str]],
        typer.Option(
            "--set", "-s", metavar="NAME=VALUE", help="A Stretto option, e.g. [b]-s bcast=schedule[/]. May be repeated."
        ),
    ] = None,
    off: Annotated[
        bool,
        typer.Option("--off", help="Without the library: the MPI against itself, which shows this machine's noise."),
    ] = False,
    json: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="Results as JSON into FILE (- for stdout), no table."),
    ] = None,
) -> None:
    """Measure our collectives between hosts against the MPI's own, and against what the slowest link needs."""
    least, most = bench.checked(bench.parse_sizes, sizes, "--sizes")
    request = Request(
        bench.checked(bench.parse_ops, op),
        least,
        most,
        method.value,
        root_shift,
        repeat=repeat,
        budget_s=budget,
        off=off,
    )
    check_outputs(json)
    options = launch.parse_settings(settings or [])
    try:
        cluster = Cluster.find(name)
        for where in maps.split(","):
            jobs.placement(cluster, cluster.plan.ranks, where)
        chosen = launch.choose(mpi)
        known = peers_of(chosen)
        wanted = peers.split(",") if peers else list(known)
        if unknown := [peer for peer in wanted if peer not in known]:
            fail(f"--peers {unknown[0]}: one of {', '.join(known)}")
        bench.warn_if_busy()
        ours = (
            {} if off else launch.rank_environment(launch.library_for(chosen.abi), {**launch.SERVED_AT_ONCE, **options})
        )
        measured = measure(
            cluster, chosen, maps.split(","), {peer: {**ours, **known[peer]} for peer in wanted}, request, runs
        )
    except (ClusterError, PlanError) as error:
        fail(str(error))
    doc = document(cluster, chosen, request, measured, runs)
    if json:
        write_json(json, "cluster.bench", doc)
    else:
        show(doc)


def measure(
    cluster: Cluster, mpi: Mpi, maps: Sequence[str], peers: dict[str, dict[str, str]], request: Request, runs: int
) -> dict[tuple[str, str], list[list[Row]]]:
    measured: dict[tuple[str, str], list[list[Row]]] = {}
    with err.status("starting") as status:
        for run in range(runs):
            for where in maps:
                for peer, env in peers.items():
                    text = f"against {peer}, map {where}, run {run + 1} of {runs}"
                    if not err.is_terminal:
                        note(text)

                    def shown(row, text=text):
                        return status.update(f"{text}: {row['op']} {bench.print_size(row['bytes'])}")  # noqa: E731

                    events = run_once(cluster, mpi, where, env, request, shown)
                    measured.setdefault((where, peer), []).append([{**e, "np": cluster.plan.ranks} for e in events])
    return measured
