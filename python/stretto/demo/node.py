# SPDX-License-Identifier: BSD-3-Clause
"""Part 1: on one node, a program that spends most of its time in a collective."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from stretto.demo import timed
from stretto.demo.part import Clock, Outcome, Part, Request, compare_pairs, describe, medians
from stretto.demo.pictures import COLUMNS, bars

ABOUT = "One node: data-parallel SGD"
STEPS = "2000"


def prepare(request: Request) -> Path:
    return timed.compiled(request.mpi, "sgd")


def run(request: Request, program: Path, clock: Clock) -> Outcome:
    argv = [program, STEPS]
    without, with_it = timed.pairs(request.mpi, request.ranks, argv, request.repeat, clock, "one node: SGD")
    what = f"SGD on {request.ranks} ranks"
    seen, gain, colour, ratio = compare_pairs(what, without, with_it)
    return Outcome(
        seen,
        colour,
        [
            describe(
                f"examples/sgd.c, an Allreduce of 256 KiB in each step, {medians(len(without))}",
                request.mpi,
                request.ranks,
            )
        ],
        {"without_s": without, "with_s": with_it, "ratio": ratio},
        [partial(bars, title=ABOUT, columns=dict(zip(COLUMNS, (without, with_it))))],
        gain,
    )


PART = Part("node", ABOUT, 12, prepare, run)
