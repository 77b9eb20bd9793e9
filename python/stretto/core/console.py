# SPDX-License-Identifier: BSD-3-Clause
"""One place that talks to the terminal. Results go to stdout; progress, advice and errors to stderr."""

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

# Tables that go to a file or a pipe need not be folded to 80 columns, unless somebody says how many there are.
# A stream that is closed is None, and Rich's writes to it are lost.
out = Console(highlight=False, width=None if os.isatty(1) or os.environ.get("COLUMNS", "").isdigit() else 160)
err = Console(stderr=True, highlight=False, soft_wrap=not os.isatty(2))


STDOUT = "stdout"


class _Stdout(io.FileIO):
    """What goes wrong has its name, as with files."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STDOUT
            raise


def watch_stdout() -> None:
    """Errors of writing to stdout can be told from others from now on."""
    if plain := sys.stdout:
        raw = _Stdout(plain.fileno(), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), plain.encoding, plain.errors, line_buffering=plain.line_buffering
        )


def flush_stdout() -> None:
    if sys.stdout:
        sys.stdout.flush()


def give_up_stdout() -> None:
    """What waits to be written is dropped: Python would try it again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def fail(message: str, status: int = 2) -> NoReturn:
    """One clear message, and out."""
    complain(message)
    raise typer.Exit(status)


def complain(message: str) -> None:
    err.print(Text.assemble(("stretto:", "bold red"), " ", message))


def note(message: str) -> None:
    err.print(Text(message, style="dim"))


@contextmanager
def working(text: str) -> Iterator[None]:
    """Shows that something long is under way, and afterwards how long it took. What is quick leaves no trace."""
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
