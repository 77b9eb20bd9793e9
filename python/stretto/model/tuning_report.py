# SPDX-License-Identifier: BSD-3-Clause
"""Results of tuning: one measurement in words, a summary, and a verdict by new measurements."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from stretto.core.units import format_size, format_time
from stretto.model.profile import Profile
from stretto.model.tuning import OPS, Call, Measurer, in_turn, usual_error
from stretto.rules import measurements, stretto_rules

WORDS = {measurements.BUILT_IN: "built in", measurements.HOST: "the MPI's own"}


def told(row: dict[str, Any]) -> str:
    """A measurement in words, for logs."""
    parameters = [f"{name}={row[name]}" for name, usual in (("k", 0), ("segments", 1)) if row[name] > usual]
    algorithm = " ".join([WORDS.get(row["algorithm"], row["algorithm"]), *parameters])
    return (
        f"{row['op']}, {row['ranks']} ranks, {format_size(row['bytes'])} bytes, {algorithm}: {format_time(row['time'])}"
    )


def summary(profile: Profile, calls: Sequence[Call]) -> dict[str, Any]:
    """The choice of each call, and its time beside those of the built-in choice, the MPI and the
    model's own choice of a schedule."""
    rows = []
    for call in calls:
        tried = [c for c in measurements.corrected(profile.measured, call["op"], call) if c["measured"] is not None]
        known = {
            name: measurements.time_of(name, profile.measured, call["op"], call)
            for name in measurements.beside_candidates(call)
        }
        if not tried:
            continue
        found = {
            **{c["name"]: c["measured"] for c in reversed(tried)},
            **{WORDS.get(name, name): time for name, time in known.items() if time is not None},
        }
        by_model = min(tried, key=lambda c: c["time"])
        choice = min(found, key=lambda name: found[name])
        rows.append(
            {
                "op": call["op"],
                "ranks": call["ranks"],
                "bytes": call["bytes"],
                "choice": choice,
                "measured": found[choice],
                "schedule": tried[0]["name"],
                "schedule_measured": tried[0]["measured"],
                "by_model": by_model["name"],
                "by_model_measured": by_model["measured"],
                "tried": len(tried),
                "candidates": len(call["candidates"]),
                **{name: known[name] for name in measurements.NO_CANDIDATES},
            }
        )
    losses = [r["by_model_measured"] / r["schedule_measured"] for r in rows]
    return {
        "calls": len(calls),
        "error": usual_error(profile.measured),
        "rows": rows,
        "model_mean": sum(losses) / len(losses) if losses else None,
        "model_worst": max(losses, default=None),
    }


def verdict(rows: Sequence[dict[str, Any]], place: Callable[[int], str], measure: Measurer) -> list[dict[str, Any]]:
    """Times of the choices by new measurements, beside the best time and the MPI's own. Times are
    medians of several runs, in turn."""
    calls: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["op"] in OPS and row["place"] == place(row["ranks"]):
            calls.setdefault((row["ranks"], row["op"], row["bytes"]), []).append(row)
    calls = {
        key: of_call
        for key, of_call in sorted(calls.items())
        if set(measurements.NO_CANDIDATES) <= {r["algorithm"] for r in of_call}
    }
    anew: dict[int, float] = {}
    for ranks in sorted({key[0] for key in calls}):
        times = in_turn(measure, ranks, [of_call for key, of_call in calls.items() if key[0] == ranks])
        anew |= {row: statistics.median(of_row) for row, of_row in times.items()}
    result = []
    for (ranks, op, bytes_), of_call in calls.items():
        choice = stretto_rules.best(of_call)
        host = next(r for r in of_call if r["algorithm"] == measurements.HOST)
        result.append(
            {
                "op": op,
                "ranks": ranks,
                "bytes": bytes_,
                "choice": stretto_rules.server(choice, stretto_rules.whole_bytes(op, ranks, bytes_)),
                "measured": anew[id(choice)],
                "of_best": anew[id(choice)] / min(anew[id(r)] for r in of_call),
                "of_mpi": anew[id(choice)] / anew[id(host)],
                "candidates": len(of_call),
            }
        )
    return result
