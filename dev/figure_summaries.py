# SPDX-License-Identifier: BSD-3-Clause
"""The tables that pages show of several files of docs/data at once, for figures.py."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable

from figure_texts import (
    Doc,
    Lines,
    machine_of,
    mean,
    microseconds,
    mpi_of,
    hosts_of,
    overlapped,
    place,
    shape_of,
    size,
    table,
    title,
    unique,
)

SUMMARIES: dict[tuple[str, str], Callable[[list[Doc]], Lines]] = {}
TABLES: dict[tuple[str, str], Callable[[dict[str, Doc]], Lines]] = {}  # of all data


def summary(schema: str) -> Callable[[Callable[[list[Doc]], Lines]], Callable[[list[Doc]], Lines]]:
    def add(function: Callable[[list[Doc]], Lines]) -> Callable[[list[Doc]], Lines]:
        SUMMARIES[schema, function.__name__.split("_")[-1]] = function
        return function

    return add


# ---- of one kind of data -------------------------------------------------------------------------


@summary("stretto.bench")
def bench_beside(docs: list[Doc]) -> Lines:
    """Each operation's geometric mean and worst size, beside each MPI."""

    def cells(doc: Doc, op: str | None) -> list[str]:
        found = [r for r in doc["results"] if op in (None, r["op"])]
        worst = max(found, key=lambda r: r["ratio"])
        return [f"{mean(r['ratio'] for r in found):.2f}", f"{worst['ratio']:.2f} ({place(worst)})".replace(" ()", "")]

    names = {op: op for op in unique(r["op"] for doc in docs for r in doc["results"])}
    rows = [[name, *(c for doc in docs for c in cells(doc, op))] for op, name in (*names.items(), (None, "**all**"))]
    return table(["", *(word for doc in docs for word in (title(doc), "worst"))], rows)


@summary("stretto.bench")
def bench_bound(docs: list[Doc]) -> Lines:
    """Each operation's time / the bound beside each MPI: mean, and all sizes above 1.25."""

    def over(doc: Doc, op: str) -> list[str]:
        found = {size(r["bytes"]): r["ours_us"] / r["bound_us"] for r in doc["results"] if r["op"] == op}
        above = [f"{name} {ratio:.2f}".removeprefix("0 B ") for name, ratio in found.items() if ratio > 1.25]
        return [f"{mean(found.values()):.2f}", ", ".join(above)]

    ops = unique(r["op"] for doc in docs for r in doc["results"])
    rows = [[op, *(cell for doc in docs for cell in over(doc, op))] for op in ops]
    return table(["", *(word for doc in docs for word in (title(doc), "above 1.25"))], rows)


def by_ranks(docs: list[Doc], name: Callable[[Doc], str]) -> Lines:
    """A row for each MPI and number of ranks: the mean of the ratios, the best and the worst call."""
    rows = []
    for doc in docs:
        for ranks in unique(r["np"] for r in doc["results"]):
            found = [r for r in doc["results"] if r["np"] == ranks and "under_way" not in r]
            ends = [end(found, key=lambda r: r["ratio"]) for end in (min, max)]
            called = [f"{r['ratio']:.2f} ({name(r)})" for r in ends]
            rows.append([title(doc), str(ranks), f"{mean(r['ratio'] for r in found):.2f}", *called])
    return table(("", "ranks", "mean", "best", "worst"), rows)


def on_cluster(doc: Doc, ranks: str) -> str:
    """Beside which MPI, on how many hosts, and which ranks they have."""
    order = {"slot": ", in blocks", "node": ", in turn"} if doc["cluster"]["ranks_per_host"] > 1 else {}
    return f"{mpi_of(doc)}, {shape_of(doc)}{order.get(ranks, '')}"


def clusters_of(docs: list[Doc]) -> list[tuple[Doc, str]]:
    return [(doc, ranks) for doc in docs for ranks in unique(r["map"] for r in doc["results"])]


@summary("stretto.cluster.bench")
def cluster_beside(docs: list[Doc]) -> Lines:
    """Each operation's geometric mean and its worst ratio, on each cluster."""

    def cell(doc: Doc, ranks: str, op: str | None) -> str:
        found = [r for r in doc["results"] if r["map"] == ranks and op in (None, r["op"])]
        ratios = [r["ratio"] for r in found]
        return f"**{mean(ratios):.2f}**, {max(ratios):.2f}" if ratios else ""

    where = clusters_of(docs)
    names = {op: op for op in unique(r["op"] for doc in docs for r in doc["results"])}
    rows = [[name, *(cell(*each, op) for each in where)] for op, name in (*names.items(), (None, "**all**"))]
    return table(["mean, worst", *(on_cluster(*each) for each in where)], rows)


@summary("stretto.cluster.bench")
def cluster_slower(docs: list[Doc]) -> Lines:
    """All sizes above 1.1."""
    rows = []
    for doc, ranks in clusters_of(docs):
        slower = [r for r in doc["results"] if r["map"] == ranks and r["ratio"] > 1.1]
        named = (f"{r['op']} {size(r['bytes'])} {r['ratio']:.2f}".replace(" 0 B", "") for r in slower)
        rows.append([on_cluster(doc, ranks), ", ".join(named) or "none"])
    return table(["cluster", "slower than 1.1"], rows)


@summary("stretto.nonblocking")
def nonblocking_beside(docs: list[Doc]) -> Lines:
    return by_ranks(docs, lambda r: f"{r['op'].capitalize()}, {size(r['bytes'])}".removesuffix(", 0 B"))


@summary("stretto.neighbors")
def neighbors_beside(docs: list[Doc]) -> Lines:
    return by_ranks(docs, lambda r: size(r["bytes"]))


@summary("stretto.kind")
def kind_beside(docs: list[Doc]) -> Lines:
    """The ratio of each pattern beside each MPI, the mean of all lengths."""

    def cell(doc: Doc, ranks: int, pattern: str) -> str:
        found = [r["auto_ratio"] for r in doc["results"] if (r["ranks"], r["pattern"]) == (ranks, pattern)]
        return f"{mean(found):.3f}" if found else ""

    calls = unique((r["ranks"], r["pattern"]) for doc in docs for r in doc["results"])
    rows = [[str(ranks), pattern, *(cell(doc, ranks, pattern) for doc in docs)] for ranks, pattern in calls]
    return table(("ranks", "pattern", *map(title, docs)), rows)


@summary("stretto.overlap.bench")
def overlap_beside(docs: list[Doc]) -> Lines:
    """What each regime hides, divided by the bound."""
    found: dict[str, dict[str, float]] = {}
    for doc in docs:
        for r in doc["results"]:
            found.setdefault(overlapped(doc, r), {})[r["regime"]] = r["overlap_ms"] / r["bound_ms"]
    regimes = sorted({regime for row in found.values() for regime in row})
    return table(
        ("hosts x ranks", *regimes), [[name, *(f"{row[x]:.2f}" for x in regimes)] for name, row in found.items()]
    )


@summary("stretto.overlap.bench")
def overlap_alone(docs: list[Doc]) -> Lines:
    """What calls take that nothing is computed beside: ours, the MPI's, and ours until they return."""
    found: dict[str, list[Doc]] = {}
    for doc in docs:
        for r in doc["results"]:
            found.setdefault(overlapped(doc, r), []).append(r)
    rows = []
    for name, of_name in found.items():
        keys = ("comm_ms", "blocking_comm_ms", "init_ms")
        ours, theirs, returned = (statistics.median(r[key] for r in of_name) for key in keys)
        rows.append((name, f"{ours:.0f} ms", f"{theirs:.0f} ms", f"{ours / theirs:.2f}", f"{returned:.0f} ms"))
    return table(("hosts x ranks", "by connections", "by the MPI", "ratio", "returns after"), rows)


@summary("stretto.overlap.programs")
def programs_beside(docs: list[Doc]) -> Lines:
    """Times of whole programs, and their ratios with each value of STRETTO_OVERLAP."""
    values = unique(r["value"] for doc in docs for r in doc["results"] if r["value"] != "off")
    rows = []
    for doc in docs:
        found: dict[str, dict[str, Doc]] = {}
        for r in doc["results"]:
            found.setdefault(r["program"], {})[r["value"]] = r
        for program, by_value in found.items():
            ratios = (f"{by_value[value]['ratio']:.2f}" if value in by_value else "" for value in values)
            off = by_value["off"]
            best = f"{off['best_ratio']:.2f}" if "best_ratio" in off else ""
            rows.append((hosts_of(doc), f"`{program}`", f"{1e3 * off['seconds']:.1f} ms", *ratios, best))
    return table(("hosts x ranks", "program", "off", *(f"{value} / off" for value in values), "at best"), sorted(rows))


@summary("stretto.model.node")
def node_ways(docs: list[Doc]) -> Lines:
    """Lines and time of each way of a call, on each machine."""
    rows = [
        (
            f"{r['op']}, {size(r['bytes'])}, {r['ranks']} ranks of `{doc['machine']['name']}`",
            r["way"].removeprefix("shm:"),
            f"{r['line_transfers']:,.0f}",
            f"{r['socket_transfers']:,.0f}",
            microseconds(r["time_us"]),
        )
        for doc in docs
        for r in doc["results"]
    ]
    return table(("call", "way", "lines", "between sockets", "time"), rows)


# ---- of all data ---------------------------------------------------------------------------------

# A row of the README's table, and how the names of its files begin.
HEADLINE = {
    "two-ranks": "2 ranks, 17 collectives, 8 B to 16 MiB",
    "crowded": "4 to 16 ranks on 2 processors, 17 collectives, 8 B to 1 MiB",
    "hosts": "4 hosts, TCP: Bcast, Reduce, Allreduce, 4 B to 4 MiB",
}


def front_headline(data: dict[str, Doc]) -> Lines:
    """Means of all rows whose files are of one commit and one machine with the newest."""
    rows = {begin: {n: doc for n, doc in data.items() if n.startswith(f"{begin}-")} for begin in HEADLINE}
    shown = [doc for docs in rows.values() for doc in docs.values()]
    newest = next(doc for doc in data.values() if doc in shown)

    def alike(doc: Doc) -> bool:
        return doc["taken"]["commit"] == newest["taken"]["commit"] and doc.get("machine") == newest.get("machine")

    shown = [doc for doc in shown if alike(doc)]
    mpis = sorted(unique(mpi_of(doc) for doc in shown), reverse=True)
    lines = []
    for begin, name in HEADLINE.items():
        of = {
            mpi_of(doc): f"{mean(r['ratio'] for r in doc['results']):.2f}" for doc in rows[begin].values() if alike(doc)
        }
        commands = [typed(doc) for doc in rows[begin].values() if alike(doc)]
        lines += [[name, *(of.get(mpi, "") for mpi in mpis), f"`{commands[-1]}`"]] if of else []
    taken = newest["taken"]
    says = f"Commit {taken['commit']}, {taken['date']}, on {machine_of(newest)}."
    return [*table(["", *mpis, "command"], lines), "", says]


def typed(doc: Doc) -> str:
    """The command, without the file that it wrote."""
    return re.sub(r" --json \S+", "", doc["command"])


def data_index(data: dict[str, Doc]) -> Lines:
    rows = [
        (doc["taken"]["date"], f"[{name}](../../data/{name}.json)", doc["taken"]["commit"], f"`{typed(doc)}`")
        for name, doc in data.items()
    ]
    return table(("date", "data", "commit", "command"), rows)


TABLES["front", "headline"] = front_headline
TABLES["data", "index"] = data_index
