# SPDX-License-Identifier: BSD-3-Clause
"""Measures how much of a collective hides behind the computation after it: paper S5's
microbenchmark (bench/overlap.cpp) on a cluster.

The first job's calls may return early. What is hidden is the time of communicating alone, plus that
of computing alone, less that of both. The second job does the same work, but its calls block. So
it tells what the program gains, also where calls that may return early go another way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from stretto.bench import program
from stretto.bench.overlap_bounds import Level, bound, formula_1, production_bound, wire_time_s
from stretto.bench.program import Row
from stretto.bench.provenance import provenance
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.core.console import err, fail, note, out
from stretto.core.units import format_size, sizes_between
from stretto.mpi import Mpi

OPS = (
    "alltoall",
    "alltoallv",
    "bcast",
    "allgather",
    "allgatherv",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "reduce",
    "allreduce",
)
MAPS = {"block": "slot", "cyclic": "node"}  # in the words of `stretto cluster run`
REGIMES = "abcde"
WORD = 8  # bytes; blocks are of whole words
PATIENCE_S = 120  # until a job that prints nothing counts as hanging
# A call that takes more than this part of the time until all data are there has not returned early.
EARLY = 0.5


@dataclass(frozen=True)
class Request:
    ops: tuple[str, ...]
    least: int
    most: int
    maps: tuple[str, ...]
    order: str
    compute: str
    regimes: str
    repeat: int

    def calls(self) -> list[str]:
        return [f"{op}:{size}" for op in self.ops for size in sizes_between(self.least, self.most)]

    def rows(self) -> int:
        """Of all jobs."""
        return 2 * len(self.maps) * len(self.calls()) * len(self.regimes)

    def arguments(self) -> list[str]:
        return [
            *("--order", self.order, "--compute", self.compute),
            *("--regimes", self.regimes, "--repeat", str(self.repeat)),
        ]


def parse_maps(text: str) -> tuple[str, ...]:
    return _names(text, MAPS, "map")


def parse_ops(text: str) -> tuple[str, ...]:
    return OPS if text.strip().lower() == "all" else _names(text, OPS, "operation")


def parse_regimes(text: str) -> str:
    found = set(text.replace(",", ""))
    if not found or found - set(REGIMES):
        raise ValueError(f"'{text}': letters of {REGIMES}, for example bc")
    return "".join(sorted(found))


def _names(text: str, known: Sequence[str] | dict[str, str], what: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip().lower())))
    for name in names or ("",):
        if name not in known:
            raise ValueError(f"no such {what}: '{name}': one of {', '.join(known)}")
    return names


# ---- running -------------------------------------------------------------------------------------


Runner = Callable[[str, list[str], dict[str, str]], Iterator[str]]  # map, arguments, variables -> lines


def runner(cluster: Cluster, mpi: Mpi) -> Runner:
    path = program.program(mpi, "overlap")
    ranks = cluster.plan.ranks
    return lambda where, words, env: jobs.lines(cluster, mpi, [path, *words], ranks, MAPS[where], PATIENCE_S, env)


def pairs(rows: list[Row], others: list[Row], expected: int) -> list[tuple[Row, Row]]:
    """Rows of two jobs side by side. All of them must be there."""
    if {len(rows), len(others)} != {expected}:
        fail(f"the measuring program printed {len(rows)} and {len(others)} rows, not {expected}", 1)
    return list(zip(rows, others))


def measure(
    request: Request, run: Runner, early: dict[str, str], blocking: dict[str, str]
) -> dict[str, list[tuple[Row, Row]]]:
    """By map: rows of the first job, each with that of the second. `early` and `blocking` are what
    the ranks of each job have in their environment."""
    measured: dict[str, list[tuple[Row, Row]]] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("starting", total=request.rows())

        def job(where: str, title: str, words: list[str], env: dict[str, str]) -> list[Row]:
            if not err.is_terminal:
                note(f"measuring: map {where}, {title}")

            def show(row: Row) -> None:
                call = f"{row['op']} {format_size(row['bytes'])}, regime {row['regime']}"
                progress.update(task, advance=1, description=f"map {where}, {title}: {call}")

            return program.collect(run(where, [*request.arguments(), *words], env), show)

        expected = len(request.calls()) * len(request.regimes)
        for where in request.maps:
            plan, *events = job(where, "may return early", request.calls(), early)
            rows = [row for row in events if row["event"] == "row"]
            times = {f"{row['op']}:{row['bytes']}": row["comm_us"] for row in rows}
            same = ["--rate", str(plan["rate"]), *(f"{call}:{us:.1f}" for call, us in times.items())]
            others = job(where, "blocking", same, blocking)
            measured[where] = pairs(rows, [row for row in others if row["event"] == "row"], expected)
    return measured


# ---- figures -------------------------------------------------------------------------------------


def levels_of(cluster: Cluster, where: str) -> list[Level]:
    """Hosts and leaf switches of all ranks."""
    plan = cluster.plan
    leaf = {host.name: host.leaf for host in plan.hosts}
    hosts = jobs.placement(cluster, plan.ranks, MAPS[where])
    return [Level(hosts, plan.host_rate_bps * plan.nics), Level([leaf[h] for h in hosts], plan.uplink_rate_bps)]


def result_of(where: str, request: Request, levels: Sequence[Level], early: Row, blocking: Row) -> Row:
    """Times in ms. `formula` is S5's (1) without the time within the call."""
    comm, comp, init = early["comm_us"], early["comp_us"], early["init_us"]
    # Ranks that share a processor compute for longer than asked for.
    stretch = comp / (early["curc_us"] + early["crc_us"])
    curc, crc = early["curc_us"] * stretch, early["crc_us"] * stretch
    processors = len(os.sched_getaffinity(0))
    cpu = max(early["cpu_us"], early["cpu_of_all_us"] / processors) if request.compute == "work" else 0.0
    wire = 1e6 * wire_time_s(early["op"], levels, early["bytes"])
    most = production_bound(early["op"], levels, request.order, early["pieces"], comm, curc, crc, wire)
    in_us = {
        "comm": comm,
        "wire": wire,
        "curc": curc,
        "crc": crc,
        "comp": comp,
        "total": early["total_us"],
        "init": init,
        "cpu": early["cpu_us"],
        "overlap": comm + comp - early["total_us"],
        "formula": max(0.0, formula_1(comm, curc, crc) - init),
        "bound": bound(most, comm, cpu, init),
        "blocking_comm": blocking["comm_us"],
        "blocking_total": blocking["total_us"],
        "gain": blocking["total_us"] - early["total_us"],
    }
    return {
        "op": early["op"],
        "bytes": early["bytes"],
        "regime": early["regime"],
        "map": where,
        "order": request.order,
        "early": init < EARLY * comm,
        "pieces": early["pieces"],
        **{f"{name}_ms": us / 1e3 for name, us in in_us.items()},
    }


def document(cluster: Cluster, mpi: Mpi, request: Request, measured: dict[str, list[tuple[Row, Row]]]) -> Row:
    results = []
    for where, pairs in measured.items():
        levels = levels_of(cluster, where)
        results += [result_of(where, request, levels, *pair) for pair in pairs]
    return {**provenance(mpi, cluster), "compute": request.compute, "repeat": request.repeat, "results": results}


def advice(request: Request, ranks: int, per_host: int) -> str | None:
    """What no library can do about the map."""
    if "block" not in request.maps or request.order not in ("rank", "reverse") or per_host == ranks:
        return None
    return (
        f"map block, order {request.order}: of the computing on received data, C, only C (M-1)/N = "
        f"{per_host - 1}/{ranks} C can be hidden when blocks are used as a whole, and {per_host}/{ranks} C piece by "
        "piece, because one host's link must first carry its ranks' blocks to everybody"
    )


def show(doc: Row) -> Any:
    for where in dict.fromkeys(r["map"] for r in doc["results"]):
        rows = [r for r in doc["results"] if r["map"] == where]
        table = Table(
            title=f"{doc['mpi_title']} on cluster {doc['cluster']['name']}, map {where}, order {rows[0]['order']}, "
            f"computing: {doc['compute']}; times in ms",
            title_justify="left",
        )
        for name in ("operation", "bytes", "regime"):
            table.add_column(name)
        for name in (
            "call",
            "computing",
            "both",
            "within call",
            "hidden",
            "formula",
            "bound",
            "of formula",
            "blocking",
            "gain",
        ):
            table.add_column(name, justify="right")
        for r in rows:
            ms = ("comm", "comp", "total", "init", "overlap", "formula", "bound")
            share = f"{r['overlap_ms'] / r['formula_ms']:.2f}" if r["early"] and r["formula_ms"] > 0 else "-"
            shown = [f"{r[f'{name}_ms']:.1f}" for name in (*ms, "blocking_total", "gain")]
            table.add_row(r["op"], format_size(r["bytes"]), r["regime"], *shown[: len(ms)], share, *shown[len(ms) :])
        out.print(table)
    if late := list(dict.fromkeys(r["op"] for r in doc["results"] if not r["early"])):
        note(f"no early return, so nothing is hidden: {', '.join(late)}")
