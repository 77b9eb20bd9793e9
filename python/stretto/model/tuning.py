# SPDX-License-Identifier: BSD-3-Clause
"""tune: measures where the model cannot tell which algorithm is fastest, and writes what it finds into the profile and as rules for the library.

Of each call are measured: the candidate that the model likes best, what the library does without rules, and the MPI's own collective; then the next
candidate, as long as it could be faster than the fastest of all these if the model were off by its usual error. What is measured corrects what is
expected of the rest (measured.py), so nothing is tried that cannot win. All go through the library, which a rule makes do it: what is measured is
what will run. All state is in the profile, which is whole after every measurement: to go on after a stop is to begin again.
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
from stretto.core.units import format_size, format_time
from stretto.model import exercises, timer
from stretto.model.profile import Profile
from stretto.mpi import environments
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.native.build import library_for
from stretto.rules import measurements, stretto_rules

OPS = ("bcast", "reduce", "allreduce", "allgather")
USUAL_ERROR = 0.3  # of a prediction, until it is known better
ENOUGH = 16  # measurements to know it by
LEAST_ERROR, MOST_ERROR = 0.1, 1.0
NEW = ".new"  # behind the name of a profile that is being written
CLOSE, RIVALS = 1.3, 4  # times the fastest; of so close ones so many at most are measured again
ROUNDS = 4

Candidate = dict[str, Any]
Call = dict[str, Any]  # as stretto-model's explain reports it, and "op"
Job = tuple[Call, Candidate]
Measurer = Callable[[int, Sequence[Job]], Iterator[dict[str, float]]]  # ranks, jobs -> "time", "low" and "high" of each


WORDS = {measurements.BUILT_IN: "built in", measurements.HOST: "the MPI's own"}


def usual_error(rows: Sequence[dict[str, Any]]) -> float:
    """By how much predictions are off, a factor that all share apart: the 90th percentile."""
    ratios = [r["time"] / r["predicted"] for r in rows if r["predicted"] > 0]
    if len(ratios) < ENOUGH:
        return USUAL_ERROR
    middle = statistics.median(ratios)
    off = sorted(max(r / middle, middle / r) - 1 for r in ratios)
    return min(max(off[int(0.9 * (len(off) - 1))], LEAST_ERROR), MOST_ERROR)


def contenders(rows: Sequence[dict[str, Any]], call: Call, error: float, most: int) -> list[Candidate]:
    """What has not been measured and may be the fastest, the likeliest first. Candidates that the model gives the very same time are the
    same messages."""
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
            for name in measurements.NO_CANDIDATES
            if (t := measurements.time_of(name, rows, call["op"], call)) is not None
        ),
    ]
    best = min(known, default=expected[0]["expected"] * (1 + error) if expected else 0.0)
    return [c for c in distinct if c["expected"] / (1 + error) < best][: max(0, most - len(tried))]


def next_candidate(rows: Sequence[dict[str, Any]], call: Call, error: float, most: int) -> Candidate | None:
    """What to measure next in this call; None: it is decided."""
    waiting = contenders(rows, call, error, most)
    if waiting and not any(r["bytes"] == call["bytes"] for r in measurements.near(rows, call["op"], call)):
        return waiting[0]
    for name in (measurements.BUILT_IN, measurements.HOST) if call["op"] in OPS else ():
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
    """Decides all calls, in rounds of one candidate of each. `keep` is called with every measurement, `said` with the numbers of
    calls decided and of measurements."""
    made = 0
    while True:
        off = error if error is not None else usual_error(profile.measured)
        jobs = [(call, candidate) for call in calls if (candidate := next_candidate(profile.measured, call, off, most))]
        said(len(calls) - len(jobs), made)
        if not jobs:
            return
        for ranks in sorted({call["ranks"] for call, _ in jobs}):
            of_size = [j for j in jobs if j[0]["ranks"] == ranks]
            for row, (call, candidate) in zip(measure(ranks, of_size), of_size, strict=True):
                profile.measured.append(entry(call, candidate, row))
                keep(profile)
                made += 1
                said(len(calls) - len(jobs), made)


def confirm(profile: Profile, calls: Sequence[Call], measure: Measurer, keep: Callable[[Profile], None]) -> None:
    """What may be the fastest is measured again, several times in turn: the machine's speed drifts between the rounds of tune(), and of many candidates the
    luckiest one looks best. Who turns out to be slower makes room for others."""
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
    """What the rows of each call take, by id(): TURNS times each, one row of every call in a run."""
    times: dict[int, list[float]] = {}
    for run in [*itertools.zip_longest(*calls)] * TURNS:
        asked = [row for row in run if row is not None]
        for row, found in zip(asked, measure(ranks, [(row, row) for row in asked]), strict=True):
            times.setdefault(id(row), []).append(found["time"])
    return times


def contested(rows: Sequence[dict[str, Any]], call: Call) -> list[dict[str, Any]]:
    """What was measured in this call and is close to the fastest, and what is built in; nothing, if that has been settled."""
    of_call = sorted(
        (r for r in measurements.near(rows, call["op"], call) if r["bytes"] == call["bytes"]), key=lambda r: r["time"]
    )
    close = [r for r in of_call if r["time"] <= CLOSE * of_call[0]["time"]][:RIVALS]
    close += [r for r in of_call if r["algorithm"] == measurements.BUILT_IN and r not in close]
    return close if len(close) > 1 and any(r["turns"] < TURNS for r in close) else []


def settle(rows: Sequence[dict[str, Any]], times: dict[int, list[float]]) -> None:
    """Times become medians over the turns, those of what is built in times what the two differ by. What was not faster than that in all turns but one, is not faster."""
    built_in = next((times[id(r)] for r in rows if r["algorithm"] == measurements.BUILT_IN), None)
    for row in rows:
        own = times[id(row)]
        others = built_in or own
        ratios = sorted(time / other for time, other in zip(own, others, strict=True))
        middle = statistics.median(ratios)
        row["time"] = round(statistics.median(others) * (middle if ratios[-2] < 1 else max(1.0, middle)), 1)
        row["turns"] = TURNS


def entry(call: Call, candidate: Candidate, row: dict[str, float]) -> dict[str, Any]:
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


def told(row: dict[str, Any]) -> str:
    """A measurement in words, for those who see no bar."""
    parameters = [f"{name}={row[name]}" for name, usual in (("k", 0), ("segments", 1)) if row[name] > usual]
    algorithm = " ".join([WORDS.get(row["algorithm"], row["algorithm"]), *parameters])
    return (
        f"{row['op']}, {row['ranks']} ranks, {format_size(row['bytes'])} bytes, {algorithm}: {format_time(row['time'])}"
    )


def save(profile: Profile, path: Path) -> None:
    """All or nothing: a reader never sees half a file, nor does the next run after a stop."""
    temporary = path.with_name(path.name + NEW)
    temporary.write_text(profile.toml())
    os.replace(temporary, path)


# ---- by an MPI ---------------------------------------------------------------------------------------------------------------


def measurer(target: Target, program: Path, repeat: int) -> Measurer:
    """Runs bench/schedules.cpp, whose results are taken as they come; the MPI's collectives that it calls are the library's, by rules."""
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
    def explained(op: str, number: int) -> list[Call]:
        return timer.ask_json("explain", profile, [*timer.shape(op, [], [number], sizes), *target.placement(number)])[
            "calls"
        ]

    return [
        {**call, "op": op, "place": target.place(number)}
        for op in ops
        for number in ranks
        for call in explained(op, number)
    ]


def summary(profile: Profile, calls: Sequence[Call]) -> dict[str, Any]:
    """Per call the choice, and what it takes against what is built in, the MPI's, and the model's own choice of a schedule."""
    rows = []
    for call in calls:
        tried = [c for c in measurements.corrected(profile.measured, call["op"], call) if c["measured"] is not None]
        known = {
            name: measurements.time_of(name, profile.measured, call["op"], call) for name in measurements.NO_CANDIDATES
        }
        if not tried:
            continue
        found = {
            **{c["name"]: c["measured"] for c in reversed(tried)},
            **{WORDS[name]: time for name, time in known.items() if time is not None},
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
                **known,
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


# ---- judging -----------------------------------------------------------------------------------------------------------------


def verdict(rows: Sequence[dict[str, Any]], place: Callable[[int], str], measure: Measurer) -> list[dict[str, Any]]:
    """What the choices take by other measurements than those that they were made by, against the best and the MPI's own by these: medians of several
    runs of each, in turn."""
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
