# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite: measurements that have options and programs of their own."""

from __future__ import annotations

from typing import Any

import typer

from stretto.commands.suites import calls, kind, locks, overlap, pages, papers, programs
from stretto.core.parts import commands_of

app = typer.Typer(rich_markup_mode="rich")
app.command("paper")(papers.command)
app.command("nonblocking")(calls.nonblocking)
app.command("neighbors")(calls.neighbors)
app.command("kind")(kind.command)
app.command("overlap")(overlap.command)
app.command("pages")(pages.command)
app.command("programs")(programs.command)
app.command("kv")(locks.command)


def parts() -> dict[str, Any]:
    """The suites' commands, by what chooses them."""
    return {f"--suite {name}": command for name, command in commands_of(app).items()}
