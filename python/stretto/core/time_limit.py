# SPDX-License-Identifier: BSD-3-Clause
"""Ends work that takes too long, as Ctrl-C would."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class TimeUp(BaseException):
    """The time is over. Like KeyboardInterrupt, it passes handlers of errors."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeUp in the block after so many seconds. Only for the main thread."""

    def ring(_number: int, _frame: object) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
