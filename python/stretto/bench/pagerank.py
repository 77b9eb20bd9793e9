# SPDX-License-Identifier: BSD-3-Clause
"""PageRank (examples/pagerank.c) with and without Stretto, in turn."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from stretto.core.console import err, fail, note
from stretto.core.turns import in_turn
from stretto.mpi import Mpi, environments, launching
from stretto.mpi.launching import JobHangs
from stretto.native import programs

# Phases in the order of the program, inside collectives and outside.
PHASES = {
    "distribute": "Scatterv of the rows",
    "exchange": "Allgatherv of the vector",
    "norm": "Allgather of the norm",
    "collect": "Gatherv of the result",
    "compute": "computing (no MPI)",
}
COLLECTIVES = ("distribute", "exchange", "norm", "collect")
WAYS = ("mpi", "stretto")
# On a machine that is too slow or too busy for all repetitions, measuring stops early, with a note.
BUDGET_S, LEAST_PAIRS = 120, 3


def compile_pagerank(mpi: Mpi) -> Path:
    return programs.compiled(mpi, "pagerank")


def checksum(text: str) -> str | None:
    match = re.search(r"^checksum (\w+)$", text, re.MULTILINE)
    return match.group(1) if match else None


class Run:
    """One way of running the program: its command line and its results."""

    def __init__(self, mpi: Mpi, np: int, arguments: Sequence[str], library: Path | None, folder: Path) -> None:
        self.result = folder / f"{'stretto' if library else 'mpi'}.json"
        env = environments.rank_environment(library, {}) if library else {}
        self.line = mpi.command(np, [compile_pagerank(mpi), *arguments, "--json", self.result], env)
        self.mpi = mpi
        self.limit = 60.0  # seconds until a run counts as hanging; less after the first run
        self.results: list[dict[str, Any]] = []
        self.stdout = ""

    def once(self, keep: bool = True) -> None:
        self.result.unlink(missing_ok=True)
        begin = time.monotonic()
        try:
            done = launching.capture(self.mpi, self.line, timeout=self.limit)
        except JobHangs as error:
            fail(str(error), 1)
        if done.returncode or not self.result.exists():
            fail(
                f"the program failed (exit status {done.returncode}):\n  {' '.join(self.line)}\n{done.stderr[-3000:]}",
                1,
            )
        self.stdout = done.stdout
        if keep:
            self.limit = max(self.limit if self.results else 0.0, 10 + 10 * (time.monotonic() - begin))
            self.results.append(json.loads(self.result.read_text()))

    def seconds(self, phase: str) -> list[float]:
        """Of each run, on the rank that took longest."""
        return [r["seconds"][phase] for r in self.results]

    def checksums(self) -> set[str]:
        return {r["checksum"] for r in self.results}


def measure(runs: dict[str, Run], repetitions: int, text: str) -> None:
    """Runs both ways in turn, and reverses their order each time, so that a drift of the machine
    favours neither."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    if not err.is_terminal:
        note(f"{text}: {2 * (repetitions + 1)} runs ...")
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(text, total=2 * (repetitions + 1))
        begin = time.monotonic()
        for repetition in range(repetitions + 1):
            if repetition > LEAST_PAIRS and time.monotonic() - begin > BUDGET_S:
                note(f"stopped after {repetition - 1} of {repetitions} repetitions: {BUDGET_S} s are over")
                break
            for way in in_turn(WAYS, repetition + 1):
                runs[way].once(keep=repetition > 0)  # the first run of each way only warms up
                progress.advance(task)


def summarise(runs: dict[str, Run]) -> dict[str, Any]:
    """Milliseconds by phase. The ratio is the median over pairs of neighbouring runs."""
    rows = {}
    for name in (*PHASES, "collectives", "total"):
        plain, ours = (runs[way].seconds(name) for way in WAYS)
        pairs = [b / max(a, 1e-12) for a, b in zip(plain, ours)]
        rows[name] = {
            "mpi_ms": 1e3 * statistics.median(plain),
            "stretto_ms": 1e3 * statistics.median(ours),
            "ratio": statistics.median(pairs),
            "ratios": sorted(pairs),
        }
    return rows
