# SPDX-License-Identifier: BSD-3-Clause
"""Libraries and programs for machines whose glibc is older than this one's: 2.28 or newer.

cmake/StrettoPortable.cmake links them, without glibc's later versions of names.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from stretto.mpi import Mpi
from stretto.mpi.abis import ABIS
from stretto.native import build, prebuilt, programs

GLIBC = "2.28"  # STRETTO_GLIBC of CMake
LIBRARIES = tuple(f"stretto-{abi}" for abi in ABIS)
OWN = "release"  # the preset of this machine's compiler; others have the name of a machine


def _tool(name: str, preset: str) -> str:
    return name if preset == OWN else f"{preset}-linux-gnu-{name}"


def _compiler(is_cpp: bool, preset: str) -> str:
    if preset == OWN:
        return "c++" if is_cpp else "cc"
    return _tool("g++" if is_cpp else "gcc", preset)


def collect(folder: Path, targets: Sequence[str], preset: str = OWN) -> None:
    """Fills the folder prebuilt/ of a package with targets of the build."""
    for abi in ABIS:
        if f"stretto-{abi}" in targets and not build.headers(abi):
            raise build.BuildError(f"no mpi.h for the {abi} ABI on this machine")
    made = build.ensure_built(preset, [f"{target}-portable" for target in targets]) / "portable"
    folder.mkdir(parents=True)
    for target in targets:
        name = next(name for name in (f"lib{target}.so", target) if (made / name).exists())
        build.run_tool([_tool("strip", preset), "--strip-unneeded", "-o", str(folder / name), str(made / name)])


def collect_programs(
    folder: Path, mpis: Iterable[Mpi], names: Sequence[str], path: str = "", preset: str = OWN
) -> None:
    """Adds MPI programs, for the ABIs of these MPIs. `path`: where else they look for their MPI."""
    for mpi in mpis:
        (folder / mpi.abi).mkdir()
        for name in names:
            shutil.copy(mpi_program(mpi, name, path, preset), folder / mpi.abi / name)


def mpi_program(mpi: Mpi, name: str, path: str = "", preset: str = OWN) -> Path:
    """A program of bench/programs.toml for all MPIs of this one's ABI. For another machine the MPI
    has that machine's library."""
    if not mpi.include:
        raise build.BuildError(f"{mpi.title} has no mpi.h")
    stubs = build.ensure_built(preset, ["stretto-glibc"]) / f"glibc-{GLIBC}"
    program = programs.programs()[name]
    is_cpp = program.language == "c++"
    flags = [
        *program.all_flags(),
        f"-I{mpi.include}",
        *(f"-D{macro}" for macro in ABIS[mpi.abi].definitions if not is_cpp),
        f"-L{stubs}",
        *(["-static-libstdc++"] if is_cpp else []),
        *("-s", "-static-libgcc", "-Wl,--allow-shlib-undefined"),  # names that the MPI needs
        f"-Wl,-rpath,{':'.join(filter(None, (prebuilt.SEARCH_PATH, path)))}",
    ]
    return build.compile_program(
        mpi,
        [*program.inputs(preset), mpi.library],
        f"{name}-portable" if preset == OWN else f"{name}-{preset}",
        program.language,
        flags,
        compiler=_compiler(is_cpp, preset),
    )


def needed_versions(file: Path) -> set[tuple[int, ...]]:
    """The versions of glibc whose names an ELF file needs."""
    said = build.run_tool(["readelf", "-W", "-V", str(file)])
    needs = said.partition(".gnu.version_r")[2]
    return {tuple(map(int, found.split("."))) for found in re.findall(r"Name: GLIBC_(\d[\d.]*)", needs)}
