# SPDX-License-Identifier: BSD-3-Clause
"""cluster down: takes a cluster away."""

from __future__ import annotations

from typing import Annotated

import typer

from stretto.cluster import registry
from stretto.cluster.prerequisites import why_not
from stretto.commands.cluster.options import NAME, plain_errors
from stretto.core.console import fail, out


def command(
    name: NAME = "default", all_: Annotated[bool, typer.Option("--all", help="All clusters of this machine.")] = False
) -> None:
    """Take a cluster away, with everything that runs on it, whatever state it is in."""
    if reason := why_not():
        fail(reason)
    with plain_errors():
        for each in (found := registry.names() if all_ else [name]):
            registry.take_down(each)
            out.print(f"cluster {each} is gone", markup=False)
    if not found:
        out.print("there is no cluster")
