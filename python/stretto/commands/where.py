# SPDX-License-Identifier: BSD-3-Clause
"""where: the line of source of a call that a message names by its address."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.core import source_lines
from stretto.core.console import fail, note


def command(
    places: Annotated[
        Optional[list[str]],
        typer.Argument(
            metavar="[PLACE|LOG]...",
            help="A place ([b]./app+0x1234[/]), or a file with messages. Default: messages from standard input.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say from which line of source a call comes.

    Stretto's messages name a call by its file and an address there. [b]stretto run[/] turns that into a line by \
itself. For jobs started in another way, this command does: of a place, or of all messages in a log.

    [dim]stretto where ./app+0x1234[/]
    [dim]stretto where job.err[/]
    """
    if source_lines.tool() is None:
        fail("no tool that reads debug information: install elfutils, binutils or LLVM")
    resolver = source_lines.Resolver()
    for place in places or ["-"]:
        if place == "-":
            _lines(sys.stdin.buffer.raw.fileno(), resolver)
        elif Path(place).is_file():
            with open(place, "rb") as log:
                _lines(log.fileno(), resolver)
        elif parts := source_lines.split_place(place):
            if not Path(parts[0]).is_file():
                fail(f"{place}: there is no file {parts[0]}")
            typer.echo(resolver.place(*parts))
        else:
            fail(f"{place}: neither a file nor a place as app+0x1234")
    if any("+0x" in text for text in resolver.known.values()):
        note("lines need debug information: compile with -g, and do not strip")


def _lines(descriptor: int, resolver: source_lines.Resolver) -> None:
    """Copies a log, with lines in place of addresses."""
    with open(descriptor, "rb", closefd=False, buffering=0) as log:
        while data := log.readline():
            sys.stdout.buffer.write(source_lines.Stream(resolver).line(data))
            sys.stdout.buffer.flush()
