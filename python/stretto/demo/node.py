# SPDX-License-Identifier: BSD-3-Clause
"""Part 1: on one node, a program that spends most of its time in a collective."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from stretto.demo import timed
from stretto.demo.part import Clock, Outcome, Part, Request, bars, compare_pairs, describe, medians

ABOUT = "on one node: data-parallel SGD, an Allreduce of 256 KiB in each step"
STEPS = "2000"


def prepare(request: Request) -> Path:
    return timed.compiled(request.mpi, "sgd")


def run(request: Request, program: Path, clock: Clock) -> Outcome:
    argv = [program, STEPS]
    without, with_it = timed.pairs(request.mpi, request.ranks, argv, request.repeat, clock, "one node: SGD")
    verdict, colour, ratio = compare_pairs(f"SGD on {request.ranks} ranks", without, with_it)
    return Outcome(
        verdict,
        colour,
        [describe(f"examples/sgd.c, {medians(len(without))}", request.mpi, request.ranks)],
        {"without_s": without, "with_s": with_it, "ratio": ratio},
        [partial(bars, title="One node: data-parallel SGD", columns={"without": without, "with Stretto": with_it})],
    )


PART = Part("node", ABOUT, 12, prepare, run)
