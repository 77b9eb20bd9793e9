# SPDX-License-Identifier: BSD-3-Clause
"""env: the variables to set by hand, and the paths of the libraries."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.core.console import fail, working
from stretto.core.paths import preloadable
from stretto.mpi import Mpi, choosing, environments, linkage
from stretto.mpi.abis import IMPLEMENTATIONS
from stretto.mpi.choosing import MPI_HELP
from stretto.native import build
from stretto.native.build import library_for

Program = Annotated[
    Optional[list[str]],
    typer.Argument(
        metavar="[-- PROGRAM [ARGS]...]", help="For this program: its MPI, its sanitizer.", show_default=False
    ),
]
MpiOption = Annotated[
    Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the program's, or the MPI in PATH. " + MPI_HELP)
]
Library = Annotated[
    bool,
    typer.Option("--library", help="Print the path of the library alone; build it if need be. No MPI is installed."),
]
Pmix = Annotated[
    bool, typer.Option("--pmix", help="Print the path of the library that answers PMIx_Get from the node instead.")
]


def command(program: Program = None, mpi: MpiOption = None, library: Library = False, pmix: Pmix = False) -> None:
    """Print the variables to set by hand, for job scripts.

    [dim]eval "$(stretto env)"[/]  then  [dim]mpiexec -n 8 ./app[/]  or  [dim]srun --mpi=pmix ./app[/]

    All ranks of a job must get the library, on every node. \
The lines printed as comments see to it, and preload the ranks only.
    It is the MPI of the job that counts: load its module first.

    For a program that gcc has built with a sanitizer, name it: [dim]stretto env -- ./app[/]

    [dim]LD_PRELOAD=$(stretto env --library) mpiexec -n 8 ./app[/]
    """
    if pmix:
        typer.echo(preloadable(pmix_library()))
    elif library:
        typer.echo(library_of(program or [], mpi))
    else:
        variables(program or [], mpi)


def library_of(program: list[str], mpi: str | None) -> Path:
    """The path of the preload library for an MPI, or for that of a program."""
    if program and not mpi:
        named = choosing.find_program(program[0])
        return library_for(choosing.choose_for(named, program[1:], mpi, fetch=False).abi)
    # With the library or headers of this ABI, no MPI is needed: the library links to none.
    kind = (mpi or "").partition("@")[0]
    named_abi = IMPLEMENTATIONS.get(kind) if mpi == kind else None
    if named_abi and build.obtainable(named_abi.abi):
        return library_for(named_abi.abi)
    return library_for(choosing.choose(mpi, fetch=False).abi)


def pmix_library() -> Path:
    with working("building the library"):
        directory = build.ensure_built("release", ["stretto-kv"])
        plan = directory / "build.ninja"  # what comes prebuilt has none
        if plan.exists() and "libstretto-pmix.so" in plan.read_text():
            build.ensure_built("release", ["stretto-pmix"])
    library = directory / "libstretto-pmix.so"
    if not library.exists():
        fail("there is no pmix.h on this machine to build it with: install libpmix-dev")
    return library


def variables(program: list[str], mpi: str | None) -> None:
    runtimes: list[str] = []
    if program:
        named = choosing.find_program(program[0])
        chosen = choosing.choose_for(named, program[1:], mpi, fetch=False)
        runtimes = linkage.sanitizer_runtimes(named)
    else:
        chosen = choosing.choose(mpi, fetch=False)
    preload = environments.preload_value(library_for(chosen.abi), runtimes)
    for line in exported(chosen, preload, bool(runtimes)):
        typer.echo(line)
    value, line = shlex.quote(preload), shlex.join(program or ["./app"])
    typer.echo(f"#   mpiexec {shlex.join(chosen.forward('LD_PRELOAD', preload))} -n 8 {line}")
    typer.echo(f"#   srun {chosen.srun_option} --export=ALL,LD_PRELOAD={value} -n 8 {line}")
    if not program:
        typer.echo("# For a program built with gcc -fsanitize=address, whose runtime must come first:")
        typer.echo("#   stretto env -- ./app")
    typer.echo("# To switch it off again without touching the rest:  export STRETTO=off")


def exported(chosen: Mpi, preload: str, sanitized: bool) -> list[str]:
    """The line that a shell evaluates, and what it must know of it."""
    if sanitized:
        return [
            f"# Stretto for {chosen.title}. The program's sanitizer must be loaded first, and in the ranks alone:",
            "# exported, it would also look at mpiexec and its helpers.",
        ]
    # Open MPI forwards no other variable to other nodes.
    forwarding = (
        "# On one node, and by srun, that is all. mpiexec needs -x LD_PRELOAD to preload ranks on other "
        "nodes, in each part of a job with colons."
    )
    return [
        f"# Stretto for {chosen.title}. It stands aside in programs without MPI, so exporting is safe.",
        f"export LD_PRELOAD={shlex.quote(preload)}",
        *([forwarding] if chosen.kind == "openmpi" else []),
        "# Or for the ranks alone:",
    ]
