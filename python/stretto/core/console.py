# SPDX-License-Identifier: BSD-3-Clause
"""The terminal. Results go to stdout; progress, advice and errors go to stderr."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

# A table that goes to a file or a pipe is 160 columns wide, unless COLUMNS says otherwise. A closed
# stream is None, and Rich drops what is written to it.
out = Console(highlight=False, width=None if os.isatty(1) or os.environ.get("COLUMNS", "").isdigit() else 160)
err = Console(stderr=True, highlight=False, soft_wrap=not os.isatty(2))


STDOUT = "stdout"


class _Stdout(io.FileIO):
    """Names its errors, as files do."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STDOUT
            raise


def watch_stdout() -> None:
    """From now on, an error of writing to stdout can be told from other errors."""
    if plain := sys.stdout:
        raw = _Stdout(plain.fileno(), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), plain.encoding, plain.errors, line_buffering=plain.line_buffering
        )


def flush_stdout() -> None:
    if sys.stdout:
        sys.stdout.flush()


def give_up_stdout() -> None:
    """Drops what is still to be written. Python would try to write it again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class Failed(typer.Exit):
    """The end of a command by an error, and what was said."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(status)
        self.message = message

    def __str__(self) -> str:
        return self.message


def fail(message: str, status: int = 2) -> NoReturn:
    """Prints one message and ends the command."""
    complain(message)
    raise Failed(message, status)


def complain(message: str) -> None:
    err.print(Text.assemble(("stretto:", "bold red"), " ", message))


def note(message: str) -> None:
    err.print(Text(message, style="dim"))


@contextmanager
def working(text: str) -> Iterator[None]:
    """Shows that a long step runs, and afterwards how long it took. A quick step prints nothing."""
    begin = time.monotonic()
    if err.is_terminal:
        with err.status(escape(text) + " ..."):
            yield
    else:
        announcement = threading.Timer(1.0, lambda: err.print(f"{text} ...", markup=False))
        announcement.start()
        try:
            yield
        finally:
            announcement.cancel()
    seconds = time.monotonic() - begin
    if seconds >= 2:
        note(f"{text}: {seconds:.0f} s")
