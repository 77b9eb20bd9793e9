# SPDX-License-Identifier: BSD-3-Clause
"""Measurements of candidates (a profile's [[measured]], by `stretto tune`), and how they correct
the model.

The expected time of a candidate is what was measured in this very call. Without that, it is the
prediction times a factor. The factor is measurement by prediction of the same algorithm at the
nearest length, within a factor of two. A candidate with the very same predicted time sends the same
messages, so its measurement counts likewise. Without any of these, the factor is the median of the
other candidates'.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
Call = dict[str, Any]
HOST = "mpi"  # in place of an algorithm: the MPI's own collective
BUILT_IN = "builtin"  # in place of an algorithm: what the library does without a rule
NO_CANDIDATES = (HOST, BUILT_IN)
IN_MEMORY = "shm:"  # begins the names of algorithms over shared memory
NEAR = math.log(2) + 1e-9


def is_modelled(row: Row) -> bool:
    """Whether the model predicts times of what was measured."""
    return row["algorithm"] not in NO_CANDIDATES and not row["algorithm"].startswith(IN_MEMORY)


def beside_candidates(call: Call) -> tuple[str, ...]:
    """What may serve a call, but is unknown to the model: it can only be measured."""
    return (BUILT_IN, HOST, *call.get("shared_memory", ()))


def near(rows: Sequence[Row], op: str, call: Call) -> list[Row]:
    """Measurements with as many ranks, in the same place, with about as many bytes; the nearest
    first."""

    def distance(row: Row) -> float:
        return abs(math.log((row["bytes"] + 1) / (call["bytes"] + 1)))

    found = [
        r
        for r in rows
        if (r["op"], r["ranks"], r["place"]) == (op, call["ranks"], call["place"]) and distance(r) <= NEAR
    ]
    return sorted(found, key=distance)


def is_of(row: Row, candidate: dict[str, Any]) -> bool:
    """Whether a measurement is of this candidate, in any number of segments."""
    return bool(row["algorithm"] == candidate["algorithm"] and row["k"] == candidate["k"])


def is_twin(row: Row, call: Call, candidate: dict[str, Any]) -> bool:
    """Whether a measurement has the same prediction as this candidate."""
    return bool(
        row["bytes"] == call["bytes"] and abs(row["predicted"] - candidate["time"]) <= 0.051
    )  # rows are rounded


def time_of(name: str, rows: Sequence[Row], op: str, call: Call) -> float | None:
    """The measured time of one of beside_candidates() in this very call."""
    return next(
        (r["time"] for r in near(rows, op, call) if r["algorithm"] == name and r["bytes"] == call["bytes"]), None
    )


def corrected(rows: Sequence[Row], op: str, call: Call) -> list[dict[str, Any]]:
    """The candidates with their "measured" (None: not in this call) and "expected" times, the
    fastest expected first."""
    around = [r for r in near(rows, op, call) if is_modelled(r) and r["predicted"] > 0]
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
