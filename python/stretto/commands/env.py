# SPDX-License-Identifier: BSD-3-Clause
"""env: the variables to set by hand."""

from __future__ import annotations

import shlex
from typing import Annotated, Optional

import typer

from stretto.mpi import choosing, environments
from stretto.mpi.choosing import MPI_HELP
from stretto.native.build import library_for


def command(
    mpi: Annotated[
        Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + MPI_HELP)
    ] = None,
) -> None:
    """Print the variables to set by hand, for job scripts.

    [dim]eval "$(stretto env)"[/]  then  [dim]mpiexec -n 8 ./app[/]  or  [dim]srun --mpi=pmix ./app[/]

    All ranks of a job must get the library, on every node. \
The lines printed as comments see to it, and preload the ranks only.
    It is the MPI of the job that counts: load its module first.
    """
    chosen = choosing.choose(mpi, fetch=False)
    path = library_for(chosen.abi)
    value = shlex.quote(environments.preload_value(path))
    typer.echo(f"# Stretto for {chosen.title}. The library stands aside in programs without MPI, so exporting is safe.")
    typer.echo(f"export LD_PRELOAD={value}")
    if chosen.kind == "openmpi":  # Open MPI forwards no other variable to other nodes
        typer.echo(
            "# On one node, and by srun, that is all. mpiexec needs -x LD_PRELOAD to preload ranks on other "
            "nodes, in each part of a job with colons."
        )
    typer.echo("# Or for the ranks alone:")
    typer.echo(f"#   mpiexec {shlex.join(chosen.forward('LD_PRELOAD', environments.preload_value(path)))} -n 8 ./app")
    typer.echo(f"#   srun {chosen.srun_option} --export=ALL,LD_PRELOAD={value} -n 8 ./app")
    typer.echo("# Before a program built with gcc -fsanitize=address, whose runtime must come first:")
    typer.echo(f"#   export LD_PRELOAD=$(ldd ./app | awk '/lib[a-z]*san[.]so/ {{ printf \"%s:\", $3 }}'){value}")
    typer.echo("# To switch it off again without touching the rest:  export STRETTO=off")
