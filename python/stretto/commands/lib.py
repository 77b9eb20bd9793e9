# SPDX-License-Identifier: BSD-3-Clause
"""lib: the path of the preload library."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from stretto.mpi import choosing
from stretto.mpi.abis import IMPLEMENTATIONS
from stretto.mpi.choosing import MPI_HELP
from stretto.native import build
from stretto.native.build import library_for


def command(
    program: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="[-- PROGRAM [ARGS]...]", help="For the MPI of this program.", show_default=False),
    ] = None,
    mpi: Annotated[
        Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + MPI_HELP)
    ] = None,
) -> None:
    """Print the path of the preload library for an MPI; build it if need be. No MPI is installed for it."""
    if program and not mpi:
        named = choosing.find_program(program[0])
        return typer.echo(library_for(choosing.choose_for(named, program[1:], mpi, fetch=False).abi))
    # With the library or headers of this ABI, no MPI is needed: the library links to none.
    kind = (mpi or "").partition("@")[0]
    named = IMPLEMENTATIONS.get(kind) if mpi == kind else None
    abi = named.abi if named and build.obtainable(named.abi) else choosing.choose(mpi, fetch=False).abi
    typer.echo(library_for(abi))
