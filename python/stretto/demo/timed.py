# SPDX-License-Identifier: BSD-3-Clause
"""Runs an example on this machine, with and without Stretto, within a time limit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from stretto.core.console import fail, working
from stretto.core.turns import in_turn
from stretto.demo.part import Clock
from stretto.mpi import Mpi, environments, launching
from stretto.mpi.launching import JobHangs
from stretto.native import programs
from stretto.native.build import library_for

LEAST_PAIRS = 2
ALONE_S = 20  # that a run with Stretto may take before it counts as hanging
WAYS = ("without", "with")


def compiled(mpi: Mpi, name: str) -> Path:
    with working(f"compiling {name}"):
        return programs.compiled(mpi, name)


def line_of(mpi: Mpi, ranks: int, argv: Sequence[str | Path], way: str) -> list[str]:
    env = environments.rank_environment(library_for(mpi.abi), {}) if way == "with" else {}
    return mpi.command(ranks, argv, env)


def seconds_in(text: str) -> float | None:
    """The time that an example says, if it says that its result is right."""
    found = re.search(r": right, ([\d.]+) s", text)
    return float(found[1]) if found else None


def seconds(mpi: Mpi, line: Sequence[str], limit: float, attempts: int = 1) -> float | None:
    """The time of a run, as the program says. None: it was ended after `limit` seconds."""
    with suppress(JobHangs):
        done = launching.capture(mpi, line, timeout=limit, attempts=attempts)
        took = seconds_in(done.stdout)
        if done.returncode or took is None:
            fail(str(launching.failure(line, done.returncode, done.stdout + done.stderr)), 1)
        return took
    return None


def pairs(mpi: Mpi, ranks: int, argv: Sequence[str | Path], repeat: int, clock: Clock, text: str) -> list[list[float]]:
    """Times without and with Stretto, by turns. The first pair only warms up."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    lines = {way: line_of(mpi, ranks, argv, way) for way in WAYS}
    with working(text):
        for turn in range(repeat + 1):
            if turn > LEAST_PAIRS and clock.left < 0:
                break
            for way in in_turn(WAYS, turn + 1):
                took = seconds(mpi, lines[way], ALONE_S, attempts=3)
                if took is None:
                    fail(f"not done within {ALONE_S} s: {' '.join(lines[way])}", 1)
                if turn:
                    times[way].append(took)
    return list(times.values())
