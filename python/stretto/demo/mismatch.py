# SPDX-License-Identifier: BSD-3-Clause
"""Part 3: a program whose ranks call different collectives."""

from __future__ import annotations

import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

from stretto.core.console import working
from stretto.core.source_lines import Resolver
from stretto.demo import timed
from stretto.demo.part import Clock, Outcome, Part, Request, describe, shown
from stretto.demo.pictures import words
from stretto.mpi import launching
from stretto.mpi.launching import JobHangs

ABOUT = "A mistake: ranks leave a loop at different times"
RANKS, PATIENCE_S = 3, 4


def prepare(request: Request) -> Path:
    return timed.compiled(request.mpi, "diverging")


def ended(request: Request, line: list[str], limit: float) -> tuple[subprocess.CompletedProcess[str] | None, float]:
    """What the program's run said, and how long it took. None: it was ended after `limit` seconds."""
    begin = time.monotonic()
    try:
        done = launching.capture(request.mpi, line, timeout=limit, attempts=1)
    except JobHangs:
        done = None
    return done, time.monotonic() - begin


def message_in(text: str) -> str | None:
    """The first complaint of Stretto, with lines of source."""
    found = next((line for line in text.splitlines() if "stretto: " in line and "all ranks must" in line), None)
    return Resolver().text(found[found.index("stretto: ") :]) if found else None


def says(done: subprocess.CompletedProcess[str] | None, took: float) -> str:
    if done is None:
        return f"hangs (ended after {took:.0f} s)"
    return f"ends with status {done.returncode} after {shown(took)}"


def run(request: Request, program: Path, clock: Clock) -> Outcome:
    lines = [timed.line_of(request.mpi, RANKS, [program], way) for way in timed.WAYS]
    with working("a mistake in a program"):
        without, waited = ended(request, lines[0], PATIENCE_S)
        with_it, took = ended(request, lines[1], timed.ALONE_S)
    message = message_in(with_it.stderr) if with_it else None
    verdict = f"a wrong program: without Stretto it {says(without, waited)}, with Stretto it {says(with_it, took)}"
    verdict += " and names the mistake" if message else ", unnamed"
    return Outcome(
        verdict,
        "green" if message and without is None else "yellow",
        [*([message] if message else []), describe("examples/diverging.c", request.mpi, RANKS)],
        {"without_hangs": without is None, "with_s": took, "message": message},
        [partial(panel, verdict=verdict, message=message or "")],
    )


def panel(axis: Any, verdict: str, message: str) -> None:
    text = message.replace(" (rank", "\n(rank").replace("; rank", ";\nrank")
    words(axis, ABOUT, f"{verdict}.\n\n{text}")


PART = Part("mismatch", ABOUT, 8, prepare, run)
