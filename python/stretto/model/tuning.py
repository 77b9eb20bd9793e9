# SPDX-License-Identifier: BSD-3-Clause
"""Measures where the model cannot tell which algorithm is the fastest.

Of each call, tuning measures the candidate with the best prediction, the library without rules, the
MPI's own collective, and other algorithms over shared memory. Then it measures the next candidate,
as long as that one could be the fastest if the model had its usual error. Measurements correct the
expected times of other candidates (rules/measurements.py), so tuning measures no candidate that
cannot win.

All candidates go through the library, by rules that force them. So what is measured is what will
run. All state is in the profile, which is complete after every measurement. After an interruption,
the same command goes on.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from stretto.cluster.target import TURNS, Target
from stretto.model import exercises, timer
from stretto.model.profile import Profile
from stretto.mpi import environments
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.native.build import library_for
from stretto.rules import measurements, stretto_rules

OPS = ("bcast", "reduce", "allreduce", "allgather")
USUAL_ERROR = 0.3  # error of a prediction, while there are few measurements
ENOUGH = 16  # number of measurements that show the error
LEAST_ERROR, MOST_ERROR = 0.1, 1.0
NEW = ".new"  # suffix of a profile that is being written
CLOSE, RIVALS = 1.3, 4  # up to 1.3 times the fastest, at most 4 candidates are measured again
ROUNDS = 4

Candidate = dict[str, Any]
Call = dict[str, Any]  # a call of stretto-model's explain, and "op"
Job = tuple[Call, Candidate]
Measurer = Callable[[int, Sequence[Job]], Iterator[dict[str, float]]]  # ranks, jobs -> "time", "low" and "high" of each


def usual_error(rows: Sequence[dict[str, Any]]) -> float:
    """The usual error of predictions: the 90th percentile, without a factor that all have in
    common."""
    ratios = [r["time"] / r["predicted"] for r in rows if r["predicted"] > 0]
    if len(ratios) < ENOUGH:
        return USUAL_ERROR
    middle = statistics.median(ratios)
    off = sorted(max(r / middle, middle / r) - 1 for r in ratios)
    return min(max(off[int(0.9 * (len(off) - 1))], LEAST_ERROR), MOST_ERROR)


def contenders(rows: Sequence[dict[str, Any]], call: Call, error: float, most: int) -> list[Candidate]:
    """Candidates that have not been measured and may be the fastest, the likeliest first.
    Candidates with the very same predicted time send the same messages, and count once."""
    expected = measurements.corrected(rows, call["op"], call)
    tried = [c for c in expected if c["measured"] is not None]
    distinct: list[Candidate] = []
    for each in expected:
        same = (abs(each["time"] - c["time"]) <= 1e-9 * c["time"] for c in [*tried, *distinct])
        if each["measured"] is None and not any(same):
            distinct.append(each)
    known = [
        *(c["measured"] for c in tried),
        *(
            t
            for name in measurements.beside_candidates(call)
            if (t := measurements.time_of(name, rows, call["op"], call)) is not None
        ),
    ]
    best = min(known, default=expected[0]["expected"] * (1 + error) if expected else 0.0)
    return [c for c in distinct if c["expected"] / (1 + error) < best][: max(0, most - len(tried))]


def next_candidate(rows: Sequence[dict[str, Any]], call: Call, error: float, most: int) -> Candidate | None:
    """The candidate to measure next in this call; None: the call is decided."""
    waiting = contenders(rows, call, error, most)
    if waiting and not any(r["bytes"] == call["bytes"] for r in measurements.near(rows, call["op"], call)):
        return waiting[0]
    for name in measurements.beside_candidates(call) if call["op"] in OPS else ():
        if measurements.time_of(name, rows, call["op"], call) is None:
            return {"algorithm": name, "k": 0, "segments": 1, "time": 0.0}
    return waiting[0] if waiting else None


def tune(
    profile: Profile,
    calls: Sequence[Call],
    measure: Measurer,
    keep: Callable[[Profile], None],
    said: Callable[[int, int], None],
    error: float | None = None,
    most: int = 8,
) -> None:
    """Decides all calls, in rounds of one candidate of each. Calls `keep` with every measurement,
    and `said` with the numbers of decided calls and of measurements."""
    made = 0
    while True:
        off = error if error is not None else usual_error(profile.measured)
        jobs = [(call, candidate) for call in calls if (candidate := next_candidate(profile.measured, call, off, most))]
        said(len(calls) - len(jobs), made)
        if not jobs:
            return
        for ranks in sorted({call["ranks"] for call, _ in jobs}):
            of_size = [j for j in jobs if j[0]["ranks"] == ranks]
            for row, (call, candidate) in zip(measure(ranks, of_size), of_size):
                profile.measured.append(entry(call, candidate, row))
                keep(profile)
                made += 1
                said(len(calls) - len(jobs), made)


def confirm(profile: Profile, calls: Sequence[Call], measure: Measurer, keep: Callable[[Profile], None]) -> None:
    """Measures the candidates that may be the fastest again, several times in turn.

    The machine's speed drifts between the rounds of tune(), and of many candidates the luckiest one
    looks best. If a candidate turns out to be slower, others may take its place.
    """
    for _ in range(ROUNDS):
        waiting = [(call, rows) for call in calls if (rows := contested(profile.measured, call))]
        if not waiting:
            return
        for ranks in sorted({call["ranks"] for call, _ in waiting}):
            here = [rows for call, rows in waiting if call["ranks"] == ranks]
            times = in_turn(measure, ranks, here)
            for rows in here:
                settle(rows, times)
        keep(profile)


def in_turn(measure: Measurer, ranks: int, calls: Sequence[Sequence[dict[str, Any]]]) -> dict[int, list[float]]:
    """The times of the rows of each call, by id(): TURNS times each. A run has one row of every
    call."""
    times: dict[int, list[float]] = {}
    for run in [*itertools.zip_longest(*calls)] * TURNS:
        asked = [row for row in run if row is not None]
        for row, found in zip(asked, measure(ranks, [(row, row) for row in asked])):
            times.setdefault(id(row), []).append(found["time"])
    return times


def contested(rows: Sequence[dict[str, Any]], call: Call) -> list[dict[str, Any]]:
    """The measured candidates of this call that are close to the fastest, and the built-in choice.
    Empty, if they have been measured in turn."""
    of_call = sorted(
        (r for r in measurements.near(rows, call["op"], call) if r["bytes"] == call["bytes"]), key=lambda r: r["time"]
    )
    close = [r for r in of_call if r["time"] <= CLOSE * of_call[0]["time"]][:RIVALS]
    close += [r for r in of_call if r["algorithm"] == measurements.BUILT_IN and r not in close]
    return close if len(close) > 1 and any(r["turns"] < TURNS for r in close) else []


def settle(rows: Sequence[dict[str, Any]], times: dict[int, list[float]]) -> None:
    """Sets times to medians over the turns: the time of the built-in choice, times the median ratio
    to it. A candidate that was not faster in all turns but one does not count as faster."""
    built_in = next((times[id(r)] for r in rows if r["algorithm"] == measurements.BUILT_IN), None)
    for row in rows:
        own = times[id(row)]
        others = built_in or own
        ratios = sorted(time / other for time, other in zip(own, others))
        middle = statistics.median(ratios)
        row["time"] = round(statistics.median(others) * (middle if ratios[-2] < 1 else max(1.0, middle)), 1)
        row["turns"] = TURNS


def entry(call: Call, candidate: Candidate, row: dict[str, float]) -> dict[str, Any]:
    """A row of [[measured]]."""
    return {
        "op": call["op"],
        "ranks": call["ranks"],
        "place": call["place"],
        "bytes": call["bytes"],
        "algorithm": candidate["algorithm"],
        "k": candidate["k"],
        "segments": candidate["segments"],
        "turns": 0,
        "time": round(row["time"], 1),
        "spread": round((row["high"] - row["low"]) / 2, 1),
        "predicted": round(candidate["time"], 1),
    }


def save(profile: Profile, path: Path) -> None:
    """Replaces the file at once. So a reader never sees half a file, nor does the next run after an
    interruption."""
    temporary = path.with_name(path.name + NEW)
    temporary.write_text(profile.toml())
    os.replace(temporary, path)


# ---- by an MPI -----------------------------------------------------------------------------------


def measurer(target: Target, program: Path, repeat: int) -> Measurer:
    """Runs bench/schedules.cpp and takes its results as they come. It calls the MPI's collectives,
    which the library serves by rules."""
    library = library_for(target.mpi.abi)

    def measure(ranks: int, jobs: Sequence[Job]) -> Iterator[dict[str, float]]:
        texts = [exercises.job_text(call["op"], measurements.HOST, call["bytes"], 0, 1) for call, _ in jobs]
        rules = target.directory / "tune.rules"
        rules.write_text(stretto_rules.forcing(jobs))
        env = environments.rank_environment(library, {**SERVED_AT_ONCE, "STRETTO_RULES": str(rules)})
        argv = [program, *target.placement(ranks), *target.crowd(ranks), str(repeat), *texts]
        with closing(target.lines(ranks, argv, timeout=600, env=env)) as lines:
            for line in lines:
                if line.startswith("{"):
                    yield json.loads(line)

    return measure


def calls_of(
    profile: Profile, target: Target, ops: Sequence[str], ranks: Sequence[int], sizes: Sequence[int]
) -> list[Call]:
    """All calls with these operations, ranks and sizes, as stretto-model explains them."""

    def explained(op: str, number: int) -> list[Call]:
        return timer.ask_json("explain", profile, [*timer.shape(op, [], [number], sizes), *target.placement(number)])[
            "calls"
        ]

    def located(call: Call, op: str, place: str) -> Call:
        one_node = stretto_rules.nodes_of(place, call["ranks"]) == 1
        return {**call, "op": op, "place": place, "shared_memory": call["shared_memory"] if one_node else []}

    return [located(call, op, target.place(number)) for op in ops for number in ranks for call in explained(op, number)]
