# SPDX-License-Identifier: BSD-3-Clause
"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from stretto.core import output_files
from stretto.core.console import fail
from stretto.mpi.choosing import MPI_HELP

MpiName = Annotated[Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + MPI_HELP)]
Program = Annotated[
    list[str],
    typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The MPI program and its arguments.", show_default=False),
]
LaunchedBy = Annotated[
    Optional[str],
    typer.Option(
        "--mpi",
        metavar="MPI",
        help="Which MPI launches it. Default: the one the program is linked to, else the one in PATH. " + MPI_HELP,
    ),
]
Launcher = Annotated[
    Optional[list[str]],
    typer.Option("--launcher", "-L", metavar="WORDS", help="Words for mpiexec itself. May be repeated."),
]
ClusterName = Annotated[
    Optional[str],
    typer.Option(
        "--cluster",
        metavar="NAME",
        help="On this cluster of namespaces ([b]stretto cluster up[/]) instead of on this machine alone.",
        show_default=False,
    ),
]
RankMap = Annotated[
    str, typer.Option("--map", metavar="MAP", help="Where ranks go on a cluster, as of [b]stretto cluster run[/].")
]

ResultsFile = Annotated[
    Optional[Path],
    typer.Option(
        "--json",
        metavar="FILE",
        help="Results as JSON into FILE ([b]-[/]: stdout), no table.",
        callback=output_files.writable,
    ),
]


def checked(parse: Callable[[str], Any], text: str, option: str = "") -> Any:
    """What `parse` makes of an option's text. Its ValueError becomes a message."""
    try:
        return parse(text)
    except ValueError as error:
        fail(f"{option}: {error}" if option else str(error))
