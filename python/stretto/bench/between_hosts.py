# SPDX-License-Identifier: BSD-3-Clause
"""Measures our collectives between hosts of a cluster, beside the MPI's own and the time that the
slowest link needs.

The measuring program is that of `stretto bench`. What Open MPI calls its own collective depends on
which of its components has priority. So there is one run for each component, in turn.
"""

from __future__ import annotations

import statistics
import uuid
from collections.abc import Callable, Sequence

from rich.table import Table

from stretto.bench import figures, program, tables
from stretto.bench.program import Row
from stretto.bench.provenance import provenance
from stretto.bench.request import Request
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import Plan, format_rate
from stretto.core.console import err, note, out
from stretto.core.units import format_size
from stretto.mpi import Mpi

# What an MPI may mean by "its own": a component of Open MPI. Other MPIs have one.
PEERS = {"openmpi": {"tuned": {"OMPI_MCA_coll_tuned_priority": "100"}, "han": {"OMPI_MCA_coll_han_priority": "100"}}}
# Operations that send at least one message over an uplink, each way, whatever the algorithm.
ONCE_OVER = ("bcast", "reduce", "allreduce")


def peers_of(mpi: Mpi) -> dict[str, dict[str, str]]:
    return PEERS.get(mpi.kind, {mpi.kind: {}})


def run_once(
    cluster: Cluster, mpi: Mpi, where: str, env: dict[str, str], request: Request, on_row: Callable[[Row], None]
) -> list[Row]:
    """Runs the program once and returns its events."""
    argv = [program.program(mpi), *request.arguments(), "--segment", cluster.shared / uuid.uuid4().hex]
    hosts = jobs.placement(cluster, cluster.plan.ranks, where)
    line = jobs.command(cluster, mpi, hosts, argv, env)
    with jobs.piped(cluster, mpi, line) as (output, end):
        events = program.collect(output, on_row)
        program.judge(line, events, *end())
    return events


# ---- figures -------------------------------------------------------------------------------------


def link_time_us(plan: Plan, op: str, bytes_: int) -> float | None:
    """The time that the slowest link needs for the bytes that must cross it."""
    if op not in ONCE_OVER or len(plan.hosts) == 1:
        return None
    slowest = min(link.rate_bps for link in plan.links)
    return bytes_ * 8e6 / slowest


def rows_of(plan: Plan, measured: dict[tuple[str, str], list[list[Row]]]) -> list[Row]:
    """One row per map, operation and size. `measured` has the runs by map and peer. Ratios are
    taken within runs; the best peer is the one with the largest ratio."""
    by_call: dict[tuple[str, str, int], dict[str, Row]] = {}
    for (where, peer), runs in measured.items():
        for result in figures.results_of(runs):
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
        **provenance(mpi, cluster),
        "method": request.method,
        "root_shift": request.root_shift,
        "runs": runs,
        "results": rows,
        "geomean": {where: figures.geomeans([r for r in rows if r["map"] == where]) for where in maps},
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
            title=f"{doc['mpi_title']} on {len(plan.hosts)} hosts x {plan.ranks_per_host} ranks, uplinks "
            f"{format_rate(plan.uplink_rate_bps)}, "
            f"map {where}: times in us of the slowest rank",
            title_justify="left",
        )
        for name in ("operation", "bytes", "ours", *peers, "ours / best", "slowest link", "ours / link", "path"):
            table.add_column(name, justify="left" if name in ("operation", "path") else "right")
        for r in (r for r in doc["results"] if r["map"] == where):
            link = ("", "") if r["link_us"] is None else (tables.format_us(r["link_us"]), f"{r['link_ratio']:.2f}")
            table.add_row(
                r["op"],
                format_size(r["bytes"]),
                tables.format_us(r["ours_us"]),
                *(tables.format_us(r["mpi_us"][p]) for p in peers),
                tables.colour(r["ratio"], 1.0, 1.1),
                *link,
                r["path"],
            )
        out.print(table)
        for op, value in doc["geomean"][where].items():
            out.print(
                f"{op}, map {where}: geometric mean {tables.colour(value, 0.6, 1.0)} of the best of "
                f"{', '.join(peers)}, "
                f"worst {doc['worst'][where][op]:.2f}"
            )


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
                        return status.update(f"{text}: {row['op']} {format_size(row['bytes'])}")  # noqa: E731

                    events = run_once(cluster, mpi, where, env, request, shown)
                    measured.setdefault((where, peer), []).append([{**e, "np": cluster.plan.ranks} for e in events])
    return measured
