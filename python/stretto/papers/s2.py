# SPDX-License-Identifier: BSD-3-Clause
"""S2: Reduce, Bcast and Allreduce over levels of memory and network (tables 2 to 4), on a cluster of
namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stretto.bench import between_hosts, figures
from stretto.bench.request import Request
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import Plan, describe
from stretto.core.console import err
from stretto.core.time_limit import TimeUp
from stretto.core.units import format_size, sizes_between
from stretto.mpi import environments
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.native.build import library_for
from stretto.papers.clusters import temporary
from stretto.papers.entry import (
    PAPER,
    Axis,
    Claim,
    Entry,
    Judge,
    Keep,
    Panel,
    Row,
    Rows,
    Series,
    Site,
    curves,
    mean_ratio,
)
from stretto.papers.turns import Cut, Turn, in_turn

LEAST, FACTOR = 4, 4
OVERHEAD = 2.5  # time of a run / that in which its contenders are timed
PEER = "tuned"  # of Open MPI; S2 compares with it. Other MPIs have one component
THEIRS = (
    "10 nodes of 2 Kunpeng 920, 64 cores and 2 NUMA nodes each, InfiniBand EDR; Open MPI 5.0.0rc9, coll/tuned; OSU "
    "5.8, 1000 calls"
)
ALL, FEWER = "levels node and switch", "level node alone"
LEVELS = {ALL: {}, FEWER: {"STRETTO_HIERARCHY": "node"}}
MAPS = {"slot": "blocks", "node": "in turn"}
RUNS = ((ALL, "slot"), (ALL, "node"), (FEWER, "slot"))

Points = Mapping[int, float]

# Of S2's tables, read from a scan: the least time of coll/tcl / the least of coll/tuned's
# algorithms. Left out are lines that cannot be read, and times of which the table has one digit.
REDUCE_ALL = {4: 0.34, 8: 0.11, 16: 0.45, 32: 0.38, 64: 0.20, 128: 0.36, 256: 0.21, 1024: 0.30, 2048: 0.083}
REDUCE_FEWER = {4: 0.45, 8: 0.091, 16: 0.22, 32: 0.35, 64: 1.6, 128: 1.8, 256: 0.26, 1024: 0.38, 2048: 0.10}
LONG_REDUCE = {1 << 20: 1.4}
# The k-nomial tree's, k = 2, with all levels.
BCAST = {
    **{8: 0.11, 16: 0.21, 32: 0.11, 64: 0.26, 128: 0.16, 256: 0.18, 512: 0.33, 1024: 0.27, 2048: 0.33, 4096: 0.42},
    **{8192: 0.53, 16384: 0.22, 32768: 0.16, 65536: 0.21, 131072: 0.50, 262144: 0.80, 524288: 1.0, 1 << 20: 1.0},
}
# ReduceBcast's, with all levels.
ALLREDUCE = {
    **{8: 0.99, 16: 0.79, 32: 0.83, 64: 0.66, 128: 0.81, 256: 0.86, 512: 0.92},
    **{262144: 2.3, 524288: 2.8, 1 << 20: 1.6},
}


@dataclass(frozen=True)
class Table:
    number: int
    op: str
    most: int
    theirs: dict[str, Points]
    claims: tuple[Claim, ...]


def ratio(least: int, most: int, levels: str = ALL) -> Judge:
    """The geometric mean of the ratios with these levels between two lengths."""
    return lambda rows: mean_ratio(rows, bytes=(least, most), levels=levels, map="slot")


K, M = 1 << 10, 1 << 20
TABLES = (
    Table(
        2,
        "reduce",
        M,
        {"S2, all levels": {**REDUCE_ALL, **LONG_REDUCE}, "S2, without sockets": REDUCE_FEWER},
        (
            Claim("time / tuned's, 4 B to 4 KiB", "0.2 to 0.4", ratio(4, 4 * K), 0.4),
            Claim("time / tuned's, above 16 KiB", "above 1: no segments", ratio(16 * K + 1, M)),
        ),
    ),
    Table(
        3,
        "bcast",
        4 * M,
        {"S2, all levels": BCAST},
        (
            Claim("time / tuned's, 4 B to 512 KiB", "0.1 to 0.5", ratio(4, 512 * K), 0.5),
            Claim("time / tuned's, above 512 KiB", "about 1", ratio(512 * K + 1, 4 * M), 1.05),
        ),
    ),
    Table(
        4,
        "allreduce",
        M,
        {"S2, all levels": ALLREDUCE},
        (
            Claim("time / tuned's, 4 B to 2 KiB, all levels", "below 1", ratio(4, 2 * K), 1.0),
            Claim("the same with a level less", "above 1", ratio(4, 2 * K, FEWER)),
        ),
    ),
)


def plan_of(name: str, cores: int) -> Plan:
    """Two leaf switches of two hosts. Hosts have the ranks that the machine has cores for; at least
    two."""
    return Plan(name, 2, 2, min(max(cores // 4, 2), 16))


def measure(table: Table, site: Site, seconds: float, keep: Keep) -> None:
    is_cut = False
    with temporary(lambda name: plan_of(name, site.cores)) as cluster:
        for (levels, where), share in in_turn(RUNS, seconds):
            request = request_of(table, share)
            text = f"{table.op}, {levels}, map {where}"
            turn = Turn(share)
            with err.status(text) as status:

                def row(event: Row) -> None:
                    status.update(f"{text}: {format_size(event['bytes'])}")
                    keep(row_of(event, levels, where))
                    turn.check()

                try:
                    run(cluster, site, levels, where, request, row)
                except Cut:
                    is_cut = True
    if is_cut:
        raise TimeUp


def request_of(table: Table, seconds: float) -> Request:
    """What one job measures in this time."""
    sizes = sizes_between(LEAST, table.most, FACTOR)
    budget_s = max(seconds / OVERHEAD / len(sizes) / 2, 0.001)
    return Request((table.op,), LEAST, sizes[-1], budget_s=budget_s, factor=FACTOR)


def run(cluster: Cluster, site: Site, levels: str, where: str, request: Request, row: Keep) -> None:
    ours = environments.rank_environment(library_for(site.mpi.abi), {**SERVED_AT_ONCE, **LEVELS[levels]})
    env = {**ours, **between_hosts.peers_of(site.mpi).get(PEER, {})}
    between_hosts.run_once(cluster, site.mpi, where, env, request, row)


def row_of(event: Row, levels: str, where: str) -> Row:
    return {
        "levels": levels,
        "map": where,
        "bytes": event["bytes"],
        "ours_us": event["ours_us"],
        "mpi_us": event["mpi_us"],
        "ratio": figures.ratio(event["ours_us"], event["mpi_us"]),
        "path": event["path"],
    }


def panels(table: Table, rows: Rows) -> list[Panel]:
    ours = curves(rows, lambda row: f"{row['levels']}, {MAPS[row['map']]}", "bytes", "ratio")
    theirs = [Series(name, sorted(points.items()), PAPER) for name, points in table.theirs.items()]
    return [
        Panel(
            table.op.capitalize(),
            Axis("bytes", "log2", "bytes"),
            Axis("time / tuned's", "log10"),
            ours + theirs,
            baseline=1.0,
            note="S2's points are its best algorithm / the best of coll/tuned, from a scan; lines that cannot be read, "
            "and times of one digit, are left out.",
        )
    ]


def here(site: Site) -> str:
    peer = "its component tuned" if between_hosts.PEERS.get(site.mpi.kind) else "its own choice"
    plan = plan_of("here", site.cores)
    return (
        f"{describe(plan)}, {plan.ranks} ranks on {site.cores} cores; {site.mpi.title}, {peer}. Levels here are node "
        "and switch, not NUMA node and socket"
    )


def entry(table: Table) -> Entry:
    return Entry(
        f"s2-table-{table.number}",
        "S2",
        f"Table {table.number}",
        f"{table.op.capitalize()}: time / one of coll/tuned's algorithms, by length, 4 B to {format_size(table.most)}; "
        "groups on all levels, and without sockets",
        THEIRS,
        here,
        table.claims,
        55,
        ("mpi", "cluster"),
        lambda site: site.build("collectives"),
        lambda site, seconds, keep: measure(table, site, seconds, keep),
        lambda rows: panels(table, rows),
    )


ENTRIES = tuple(entry(table) for table in TABLES)
