# SPDX-License-Identifier: BSD-3-Clause
"""The parts of an entry's time that its jobs get."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

Job = TypeVar("Job")
LEAST = 0.25


def in_turn(jobs: Sequence[Job], seconds: float) -> Iterator[tuple[Job, float]]:
    """Each job with an equal part of the time that is left: at least with LEAST of what it would
    have if no job took longer than its part."""
    end = time.monotonic() + seconds
    for done, job in enumerate(jobs):
        left = (end - time.monotonic()) / (len(jobs) - done)
        yield job, max(left, LEAST * seconds / len(jobs))


class Cut(Exception):
    """A job has had its part of the time."""


class Turn:
    """A job's part of the time. The job is ended at its first result afterwards, so that the others
    get theirs."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def check(self) -> None:
        if time.monotonic() > self._end:
            raise Cut
