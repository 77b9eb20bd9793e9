# SPDX-License-Identifier: BSD-3-Clause
"""Measures what messages and work cost, and makes a profile of it."""

from __future__ import annotations

import datetime
import statistics
from pathlib import Path
from typing import Any

from stretto.cluster import levels
from stretto.cluster.target import Target
from stretto.core import machine
from stretto.core.console import working
from stretto.model import fit, fit_quality, loggp, timer
from stretto.model.profile import Profile
from stretto.mpi import Mpi
from stretto.native import programs


def program(mpi: Mpi) -> Path:
    """The measuring program (bench/schedules.cpp), built if need be."""
    with working("building the measuring program"):
        return programs.compiled(mpi, "schedules")


EXERCISES = ("oneway", "exchange", "roundtrip", "burst", "late", "combine", "local")
NETWORK_EXERCISES = ("oneway", "exchange", "roundtrip", "burst", "late", "sum", "local", "sendrecv")


def numbers_of_bytes(most: int) -> list[int]:
    """8, and from 64 on two lengths to each doubling."""
    return [8, *(n for i in range(40) for n in (64 << i, 96 << i) if n <= most)]


def exercises(
    target: Target, path: Path, level: str, ranks: int, peer: int, trials: int, sizes: list[int]
) -> list[dict[str, Any]]:
    """Medians and spreads of every exercise of rank 0 and its peer, by length. `send` is a sender's
    own time."""
    far = level not in levels.MACHINE_LEVELS
    names = NETWORK_EXERCISES if far else EXERCISES
    jobs = ["nothing:8", *(f"{name}:{bytes_}" for bytes_ in sizes for name in names)]
    options = [
        "--ranks",
        f"0,{peer}",
        *target.processors_of_a_pair(),
        *target.crowd(ranks),
        *(["--far", "1"] if far else []),
    ]
    nothing, *found = target.timed(ranks, path, options, trials, jobs, timeout=600)

    def sample(row: dict[str, Any]) -> list[float]:
        return [row["time"], (row["high"] - row["low"]) / 2]

    rows = []
    for i, bytes_ in enumerate(sizes):
        own = dict(zip(names, found[i * len(names) :]))
        rows.append(
            {
                "bytes": bytes_,
                "nothing": sample(nothing),
                "send": [own["late"]["first"], 0.0],
                **{name: sample(row) for name, row in own.items()},
            }
        )
    return rows


def peers_of(target: Target, ranks: int) -> dict[str, int]:
    """For every level, lowest first: the first rank whose lowest common level with rank 0 it is."""
    domains = target.domains(ranks)
    meets = {
        rank: next(level for level, of_ranks in domains.items() if of_ranks[rank] == of_ranks[0])
        for rank in range(1, ranks)
    }
    return {level: next(rank for rank in meets if meets[rank] == level) for level in domains if level in meets.values()}


def profile_of(target: Target, level: str, rows: list[dict[str, Any]], trials: int) -> Profile:
    """The profile of one level."""
    about = {
        "name": f"{target.name}, {machine.one_line()}",
        "machine": machine.one_line(),
        "mpi": target.mpi.title,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "trials": trials,
    }
    far = level not in levels.MACHINE_LEVELS
    # the port that messages go through; share() gives it to the level below
    port = fit.port(level, rows) if far else None
    pieces = fit.network_path(level, rows, port) if port else fit.path(level, rows)
    about |= {f"{level}_{name}": number for name, number in fit_quality.quality(rows, pieces, port).items()}
    return Profile(about, pieces, fit.work(rows, fit.summing if far else fit.combining), fit.work(rows, fit.copying))


def share(
    target: Target, path: Path, ranks: int, profile: Profile, rows: dict[str, list[dict[str, Any]]], trials: int
) -> None:
    """Adds what the ranks of a cluster share: links of nodes and of leaf switches, and this
    machine's processors."""
    below = {"leaf": "node", "switch2": "leaf" if "leaf" in rows else "node"}
    ports = {below[level]: fit.port(below[level], of_level) for level, of_level in rows.items() if level in below}
    profile.ports = [*(p for p in profile.ports if p["level"] not in ports), *ports.values()]
    profile.processors = target.shares(ranks)
    if target.is_crowded(ranks):
        profile.processors["turn"] = round(turn_of(target, path, ranks, profile, trials), 1)


CHAIN_BYTES = 8


def turn_of(target: Target, path: Path, ranks: int, profile: Profile, trials: int) -> float:
    """How much later a waiting rank sees its message if others wait on its processor.

    It is the time of a hop beyond what the other parameters predict, in chains through all ranks,
    down and up.
    """
    places = target.placement(ranks)
    ops = ("bcast", "reduce")
    predicted = sum(
        timer.ask_json("predict", profile, [*timer.shape(op, ["chain"], [ranks], [CHAIN_BYTES]), *places])[
            "predictions"
        ][0]["time"]
        for op in ops
    )
    jobs = [job_text(op, "chain", CHAIN_BYTES, 0, 1) for op in ops]
    measured = sum(
        row["time"] for row in target.timed(ranks, path, [*places, *target.crowd(ranks)], trials, jobs, timeout=600)
    )
    return max(0.0, (measured - predicted) / (len(ops) * (ranks - 1)))


def merged(old: Profile, new: Profile, level: str) -> Profile:
    """The old profile with one level measured anew. "top" is always last."""
    paths = sorted([p for p in old.paths if p["level"] != level] + new.paths, key=lambda p: p["level"] == "top")
    lowest = new if paths[0]["level"] == level else old  # local work is measured best where messages disturb least
    return Profile(
        {**old.about, **new.about},
        paths,
        lowest.reduce,
        lowest.copy,
        old.ports,
        old.gap,
        processors=old.processors,
        port_rule=old.port_rule,
    )


def job_text(op: str, algorithm: str, bytes_: int, k: int, segments: int) -> str:
    """A collective in the words of bench/schedules.cpp."""
    return f"{op}:{algorithm.replace(':', '/').replace(' ', '+')}:{bytes_}:{k}:{segments}"


ROUND_TRIPS = (8, 4096, 65536)  # bytes; they show whether the machine is as it was


def drift_of(costs: Profile, trips: list[dict[str, Any]]) -> float:
    """The time of round trips within a node, as a part of what the profile says."""
    pieces = costs.paths_of_level(costs.paths[0]["level"])
    return statistics.median(
        row["time"] / (2 * loggp.one_way(loggp.piece_at(pieces, bytes_), bytes_))
        for row, bytes_ in zip(trips, ROUND_TRIPS)
    )
