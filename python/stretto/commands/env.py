# SPDX-License-Identifier: BSD-3-Clause
"""env: the variables to set by hand."""

from __future__ import annotations

import shlex
from typing import Annotated, Optional

import typer

from stretto.mpi import choosing, environments, linkage
from stretto.mpi.choosing import MPI_HELP
from stretto.native.build import library_for


def command(
    program: Annotated[
        Optional[list[str]],
        typer.Argument(
            metavar="[-- PROGRAM [ARGS]...]", help="For this program: its MPI, its sanitizer.", show_default=False
        ),
    ] = None,
    mpi: Annotated[
        Optional[str],
        typer.Option("--mpi", metavar="MPI", help="Default: the program's, or the MPI in PATH. " + MPI_HELP),
    ] = None,
) -> None:
    """Print the variables to set by hand, for job scripts.

    [dim]eval "$(stretto env)"[/]  then  [dim]mpiexec -n 8 ./app[/]  or  [dim]srun --mpi=pmix ./app[/]

    All ranks of a job must get the library, on every node. \
The lines printed as comments see to it, and preload the ranks only.
    It is the MPI of the job that counts: load its module first.

    For a program that gcc has built with a sanitizer, name it: [dim]stretto env -- ./app[/]
    """
    runtimes: list[str] = []
    if program:
        named = choosing.find_program(program[0])
        chosen = choosing.choose_for(named, program[1:], mpi, fetch=False)
        runtimes = linkage.sanitizer_runtimes(named)
    else:
        chosen = choosing.choose(mpi, fetch=False)
    preload = environments.preload_value(library_for(chosen.abi), runtimes)
    value, line = shlex.quote(preload), shlex.join(program or ["./app"])
    if runtimes:
        typer.echo(
            f"# Stretto for {chosen.title}. The program's sanitizer must be loaded first, and in the ranks alone:"
        )
        typer.echo("# exported, it would also look at mpiexec and its helpers.")
    else:
        typer.echo(f"# Stretto for {chosen.title}. It stands aside in programs without MPI, so exporting is safe.")
        typer.echo(f"export LD_PRELOAD={value}")
        if chosen.kind == "openmpi":  # Open MPI forwards no other variable to other nodes
            typer.echo(
                "# On one node, and by srun, that is all. mpiexec needs -x LD_PRELOAD to preload ranks on other "
                "nodes, in each part of a job with colons."
            )
        typer.echo("# Or for the ranks alone:")
    typer.echo(f"#   mpiexec {shlex.join(chosen.forward('LD_PRELOAD', preload))} -n 8 {line}")
    typer.echo(f"#   srun {chosen.srun_option} --export=ALL,LD_PRELOAD={value} -n 8 {line}")
    if not program:
        typer.echo("# For a program built with gcc -fsanitize=address, whose runtime must come first:")
        typer.echo("#   stretto env -- ./app")
    typer.echo("# To switch it off again without touching the rest:  export STRETTO=off")
