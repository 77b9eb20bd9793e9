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


def mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def origin(doc: Doc) -> Lines:
    """Whence the data are: the last lines of each table."""
    taken = doc["taken"]
    machine = doc.get("machine", "none: computed")
    if isinstance(machine, dict):
        machine = f"{machine['name']}, modelled"
    return [
        "",
        *table(
            ("commit", "date", "machine", "command"), [(taken["commit"], taken["date"], machine, f"`{doc['command']}`")]
        ),
    ]
