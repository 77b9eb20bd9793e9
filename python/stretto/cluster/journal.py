# SPDX-License-Identifier: BSD-3-Clause
"""Times of long simulations, kept in a file as they come, so that an interrupted run goes on where
it stopped.

Each line is a JSON object: `of` identifies the network and the build of the program, `selector`,
`job`, and `time` in simulated seconds. `time` is null if the simulation was given up after
`patience` seconds. A last line that is incomplete is dropped.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.core.console import fail

BEGIN = '{"of": "'  # each line begins with it


@dataclass(frozen=True)
class Found:
    """What is known of one job. `time` None: it takes longer than `patience`."""

    time: float | None
    patience: float


class Journal:
    """Times of the jobs of one network and build."""

    def __init__(self, path: Path | None, of: str) -> None:
        """Reads the lines of `of`. Without a path, times are kept in memory only."""
        self.path, self.of, self.lock = path, of, threading.Lock()
        self.found: dict[tuple[str, str], Found] = {}
        self.elsewhere = 0  # number of lines of other networks and builds
        if path is None:
            return
        try:
            path.touch()
            *whole, rest = path.read_text().split("\n")
            for number, line in enumerate(whole, 1):
                self.take(line, f"{path}:{number}:1")
            if not (rest.startswith(BEGIN) or BEGIN.startswith(rest)):
                fail(f"{path}:{len(whole) + 1}:1: not a simulated time")
            os.truncate(path, path.stat().st_size - len(rest.encode()))
        except (OSError, UnicodeDecodeError) as error:
            fail(f"cannot use {path}: {error}")

    def take(self, line: str, place: str) -> None:
        try:
            of, key, found = parsed(line)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            fail(f"{place}: not a simulated time")
        if of == self.of:
            self.found[key] = found
        else:
            self.elsewhere += 1

    def answers(self, selector: str, job: str, patience: float) -> bool:
        found = self.found.get((selector, job))
        return found is not None and (found.time is not None or patience <= found.patience)

    def time(self, selector: str, job: str) -> float | None:
        found = self.found.get((selector, job))
        return found.time if found else None

    def keep(self, selector: str, job: str, found: Found) -> None:
        with self.lock:
            self.found[selector, job] = found
            if self.path:
                row = {"of": self.of, "selector": selector, "job": job, "time": found.time, "patience": found.patience}
                with self.path.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def parsed(line: str) -> tuple[str, tuple[str, str], Found]:
    """The entry in a line. Raises ValueError, KeyError or TypeError if there is none."""
    row: dict[str, Any] = json.loads(line)
    of, selector, job = row["of"], row["selector"], row["job"]
    time, patience = row["time"], float(row["patience"])
    if not all(isinstance(text, str) for text in (of, selector, job)):
        raise TypeError("a name is not text")
    if time is not None and not 0 <= float(time) < float("inf"):
        raise ValueError("not a time")
    return of, (selector, job), Found(None if time is None else float(time), patience)
