# SPDX-License-Identifier: BSD-3-Clause
"""Libraries and programs for machines whose glibc is older than this one's: 2.28 or newer.

cmake/StrettoPortable.cmake links them, without glibc's later versions of names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stretto.mpi import Mpi
from stretto.native import build, programs

GLIBC = "2.28"  # STRETTO_GLIBC of CMake


def built(targets: Sequence[str]) -> Path:
    """The folder of these targets of the release build."""
    return build.ensure_built("release", [f"{target}-portable" for target in targets]) / "portable"


def mpi_program(mpi: Mpi, name: str, library_path: str) -> Path:
    """A program of bench/programs.toml for all MPIs of this one's ABI. `library_path` is where it
    looks for the MPI when LD_LIBRARY_PATH does not say."""
    if not mpi.include:
        raise build.BuildError(f"{mpi.title} has no mpi.h")
    stubs = build.ensure_built("release", ["stretto-glibc"]) / f"glibc-{GLIBC}"
    program = programs.programs()[name]
    flags = [
        *program.all_flags(),
        f"-I{mpi.include}",
        f"-L{stubs}",
        *("-s", "-static-libstdc++", "-static-libgcc", "-Wl,--allow-shlib-undefined"),  # names that the MPI needs
        f"-Wl,-rpath,{library_path}",
    ]
    return build.compile_program(
        mpi, [*program.inputs(), mpi.library], f"{name}-portable", program.language, flags, compiler="c++"
    )
