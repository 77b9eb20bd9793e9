# SPDX-License-Identifier: BSD-3-Clause
"""Part 2: more ranks than processors, on MPICH, whose ranks do not give their processor away."""

from __future__ import annotations

import os
import statistics
from functools import partial
from pathlib import Path

from stretto.core.console import fail, working
from stretto.demo import timed
from stretto.demo.part import Clock, Outcome, Panel, Part, Request, Skip, bars, compare_pairs, describe, medians, shown
from stretto.mpi import Mpi
from stretto.native.build import library_for

ABOUT = "more ranks than processors: conjugate gradients on MPICH"
PER_CPU, MOST_RANKS = 4, 32
GRID = "48"
LIMIT_S = 15  # for a run without Stretto


def ranks_here() -> int:
    return min(PER_CPU * len(os.sched_getaffinity(0)), MOST_RANKS)


def mpich(request: Request) -> Mpi | None:
    """The MPICH that the user chose, or any."""
    return next((each for each in (request.mpi, *request.found) if each.kind == "mpich" and each.mpicc), None)


def prepare(request: Request) -> tuple[Mpi, Path]:
    chosen = mpich(request)
    if not chosen:
        raise Skip("this machine has no MPICH (stretto run --mpi mpich fetches it from PyPI)")
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
        verdict = f"{what}: not done after {LIMIT_S} s without Stretto, {shown(statistics.median(with_it))} with"
        verdict, colour = f"{verdict}: more than {1 / ratio:.0f} times as fast", "green"
    else:
        verdict, colour, ratio = compare_pairs(what, without, with_it)
    return Outcome(
        verdict,
        colour,
        [describe(f"examples/cg.c, {medians(len(with_it))}", mpi, ranks)],
        {"without_s": without, "with_s": with_it, "ratio": ratio, "ended": ended, "mpi": mpi.title, "np": ranks},
        [panel(without, with_it, ranks, ended)],
    )


def panel(without: list[float], with_it: list[float], ranks: int, ended: bool) -> Panel:
    title = f"{ranks} ranks on {len(os.sched_getaffinity(0))} processors: CG"
    endless = ("without",) if ended else ()
    return partial(bars, title=title, columns={"without": without, "with Stretto": with_it}, endless=endless)


PART = Part("crowded", ABOUT, 12, prepare, run)
