# SPDX-License-Identifier: BSD-3-Clause
"""Part 2: more ranks than processors, on MPICH, whose ranks do not give their processor away."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from stretto.core.console import fail, working
from stretto.demo import timed
from stretto.demo.part import Clock, Outcome, Part, Request, Skip, compare_pairs, describe, medians, shown
from stretto.demo.pictures import COLUMNS, Panel, bars
from stretto.mpi import Mpi, MpiNotFound
from stretto.native.build import library_for

ABOUT = "More ranks than processors: conjugate gradients"
PER_CPU, MOST_RANKS = 4, 32
GRID = "48"
LIMIT_S = 15  # for a run without Stretto


def ranks_here() -> int:
    return min(PER_CPU * len(os.sched_getaffinity(0)), MOST_RANKS)


def mpich(mpis: Iterable[Mpi]) -> Mpi | None:
    return next((each for each in mpis if each.kind == "mpich" and each.mpicc), None)


def prepare(request: Request) -> tuple[Mpi, Path]:
    """The MPICH that the user chose, or any, or PyPI's."""
    chosen = mpich((request.mpi, *request.found))
    if not chosen and request.fetched:
        try:
            with working("installing MPICH from PyPI"):
                chosen = request.fetched()
        except MpiNotFound:
            raise Skip("this machine has no MPICH, and PyPI's cannot be installed") from None
    if not chosen:
        raise Skip("this machine has no MPICH")
    library_for(chosen.abi)
    return chosen, timed.compiled(chosen, "cg")


def run(request: Request, prepared: tuple[Mpi, Path], clock: Clock) -> Outcome:
    mpi, program = prepared
    ranks, times, ended = ranks_here(), {way: [] for way in timed.WAYS}, False
    lines = {way: timed.line_of(mpi, ranks, [program, GRID], way) for way in timed.WAYS}
    with working("more ranks than processors: conjugate gradients"):
        while len(times["with"]) < request.repeat and not ended and (clock.left > 0 or not times["with"]):
            took = timed.seconds(mpi, lines["with"], timed.ALONE_S, attempts=3)
            if took is None:
                fail(f"not done within {timed.ALONE_S} s: {' '.join(lines['with'])}", 1)
            times["with"].append(took)
            plain = timed.seconds(mpi, lines["without"], LIMIT_S)
            ended = plain is None
            times["without"].append(LIMIT_S if ended else plain)
    without, with_it = times.values()
    what = f"CG on {ranks} ranks"
    if ended:
        # The ended run counts with the time that it had: all that is known is that it takes longer.
        ratio = statistics.median(with_it) / LIMIT_S
        seen = f"{what}: not done after {LIMIT_S} s without Stretto, {shown(statistics.median(with_it))} with"
        gain, colour = f"more than {1 / ratio:.0f} times as fast", "green"
    else:
        seen, gain, colour, ratio = compare_pairs(what, without, with_it)
    return Outcome(
        seen,
        colour,
        [describe(f"examples/cg.c, {medians(len(with_it))}", mpi, ranks)],
        {"without_s": without, "with_s": with_it, "ratio": ratio, "ended": ended, "mpi": mpi.title, "np": ranks},
        [panel(without, with_it, ended)],
        gain,
    )


def panel(without: list[float], with_it: list[float], ended: bool) -> Panel:
    endless = ("without",) if ended else ()
    return partial(bars, title=ABOUT, columns=dict(zip(COLUMNS, (without, with_it))), endless=endless)


PART = Part("crowded", ABOUT, 12, prepare, run)
