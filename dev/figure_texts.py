# SPDX-License-Identifier: BSD-3-Clause
"""How pages write tables, numbers and whence data are, for figure_views.py and figures.py."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

Doc = dict[str, Any]
Lines = list[str]


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Lines:
    names = list(head)
    return [row(names), "|---" * len(names) + "|", *(row(cells) for cells in rows)]


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def size(number: int) -> str:
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if number >= 1 << shift and number % (1 << shift) == 0:
            return f"{number >> shift} {unit}"
    return f"{number} B"


def microseconds(time: float) -> str:
    return f"{time:.3g} us" if time < 1e4 else f"{time / 1e3:.3g} ms"


def model_time(time: float, doc: Doc) -> str:
    """Nanoseconds, or a plain number where the profile was given in a unit of the reader's own (--logp)."""
    if not doc["profile"]["file"]:
        return f"{time:.6g}"
    return f"{time:.3g} ns" if time < 1e3 else microseconds(time / 1e3)


def place(result: Doc) -> str:
    """A call's length and number of ranks, where there are several."""
    ranks = f", {result['np']} ranks" if "np" in result else ""
    return (size(result["bytes"]) + ranks) if result["bytes"] else ranks.removeprefix(", ")


def mpi_of(doc: Doc) -> str:
    return doc["mpi_title"].partition(" (")[0]


def title(doc: Doc) -> str:
    """Beside what, and where."""
    return mpi_of(doc) + (", between hosts" if "cluster" in doc else "")


def shape_of(doc: Doc) -> str:
    """Hosts x ranks of a cluster."""
    made = doc["cluster"]
    return f"{made['leaves'] * made['hosts_per_leaf']} x {made['ranks_per_host']}"


def hosts_of(doc: Doc) -> str:
    """A cluster, and the rate of its links."""
    return f"{shape_of(doc)}, {doc['cluster']['host_rate_bps'] / 1e9:g} Gbit/s"


def overlapped(doc: Doc, result: Doc) -> str:
    """A call of a benchmark of calls that return early, and where it ran."""
    how = [result["map"]] if doc["cluster"]["ranks_per_host"] > 1 else []
    how += [{"alike": "all blocks alike", "rank": "blocks from 0"}.get(result["order"], "")]
    how += ["computing for real" if doc["compute"] == "work" else "", mpi_of(doc)]
    return f"{result['op']} of {size(result['bytes'])}, {shape_of(doc)}: {', '.join(filter(None, how))}"


def mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def machine_of(doc: Doc) -> str:
    machine = doc.get("machine", "none: computed")
    return f"{machine['name']}, modelled" if isinstance(machine, dict) else machine


def origin(docs: list[Doc]) -> Lines:
    """Whence the data are: the last lines of each table."""
    rows = [(doc["taken"]["commit"], doc["taken"]["date"], machine_of(doc), f"`{doc['command']}`") for doc in docs]
    return ["", *table(("commit", "date", "machine", "command"), rows)]
