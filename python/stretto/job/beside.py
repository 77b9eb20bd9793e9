# SPDX-License-Identifier: BSD-3-Clause
"""Runs a job with a file of rules and without, by turns.

Times are those of recordings: from MPI_Init to MPI_Finalize.
"""

from __future__ import annotations

import os
import shlex
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stretto.core.console import fail, note
from stretto.core.turns import in_turn
from stretto.job import recordings


@dataclass(frozen=True)
class Measured:
    with_rules: list[float]  # seconds of each run
    without: list[float]

    @property
    def seconds(self) -> float:
        return statistics.median(self.with_rules)

    @property
    def seconds_without(self) -> float:
        return statistics.median(self.without)


def measure(command: Sequence[str], rules: Path, runs: int) -> Measured:
    """The command launches the job, with Stretto."""
    found: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(runs):
        note(f"measuring: run {turn + 1} of {runs} with the rules, and without")
        for ruled in in_turn((False, True), turn):
            found[ruled].append(_seconds(command, {"STRETTO_RULES": str(rules.absolute())} if ruled else {}))
    return Measured(found[True], found[False])


def _seconds(command: Sequence[str], options: dict[str, str]) -> float:
    with tempfile.TemporaryDirectory(prefix="stretto-tune-") as folder:
        job = Path(folder) / "job"
        env = {**os.environ, "STRETTO_RECORD": str(job), **options}
        try:
            done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        except OSError as error:
            fail(f"{command[0]}: {error.strerror}")
        if done.returncode:
            fail(f"{shlex.join(command)} ends with status {done.returncode}:\n{done.stdout[-2000:]}", 1)
        if not any(Path(folder).iterdir()):
            fail(f"{shlex.join(command)} leaves no recording: it is to run its ranks with Stretto, on this machine")
        return float(recordings.summary(recordings.files_of(job))["seconds"])
