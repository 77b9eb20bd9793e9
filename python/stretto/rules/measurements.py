# SPDX-License-Identifier: BSD-3-Clause
"""What has been measured of candidates (a profile's [[measured]], written by `stretto tune`), and how it corrects what the model says.

A candidate's expected time is what was measured of it in this very call. Else it is the prediction, times what measurement and
prediction of the same algorithm differed by at the nearest length within a factor of two, or of one that the model gives the very
same time in this call, which is the same messages; and where there is none, times what the others' predictions were off by in the median.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
Call = dict[str, Any]
HOST = "mpi"  # in the place of an algorithm: the MPI's own collective
BUILT_IN = "builtin"  # and what the library does where no rule says otherwise
NO_CANDIDATES = (HOST, BUILT_IN)
NEAR = math.log(2) + 1e-9


def near(rows: Sequence[Row], op: str, call: Call) -> list[Row]:
    """Measured on as many ranks in the same place with about as many bytes, the nearest first."""

    def distance(row: Row) -> float:
        return abs(math.log((row["bytes"] + 1) / (call["bytes"] + 1)))

    found = [
        r
        for r in rows
        if (r["op"], r["ranks"], r["place"]) == (op, call["ranks"], call["place"]) and distance(r) <= NEAR
    ]
    return sorted(found, key=distance)


def is_of(row: Row, candidate: dict[str, Any]) -> bool:
    return bool(row["algorithm"] == candidate["algorithm"] and row["k"] == candidate["k"])


def is_twin(row: Row, call: Call, candidate: dict[str, Any]) -> bool:
    return bool(
        row["bytes"] == call["bytes"] and abs(row["predicted"] - candidate["time"]) <= 0.051
    )  # rows are rounded


def time_of(name: str, rows: Sequence[Row], op: str, call: Call) -> float | None:
    """Of HOST or BUILT_IN in this very call."""
    return next(
        (r["time"] for r in near(rows, op, call) if r["algorithm"] == name and r["bytes"] == call["bytes"]), None
    )


def corrected(rows: Sequence[Row], op: str, call: Call) -> list[dict[str, Any]]:
    """The candidates with "measured" (None: not in this call) and "expected" times, the fastest expected first."""
    around = [r for r in near(rows, op, call) if r["algorithm"] not in NO_CANDIDATES and r["predicted"] > 0]
    bias = statistics.median_low([r["time"] / r["predicted"] for r in around]) if around else 1.0
    result = []
    for candidate in call["candidates"]:
        own = [r for r in around if is_of(r, candidate)]
        same = [r for r in own if r["segments"] == candidate["segments"]]
        measured = next((r["time"] for r in same if r["bytes"] == call["bytes"]), None)
        twins = [r for r in around if is_twin(r, call, candidate)]
        factor = next((r["time"] / r["predicted"] for r in [*same, *own, *twins]), bias)
        result.append(
            {
                **candidate,
                "measured": measured,
                "expected": measured if measured is not None else candidate["time"] * factor,
            }
        )
    return sorted(result, key=lambda c: c["expected"])
