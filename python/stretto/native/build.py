# SPDX-License-Identifier: BSD-3-Clause
"""Builds the library, its tests and small MPI programs on demand. An up-to-date build costs one
`ninja` call."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

from stretto.core.console import fail, working
from stretto.core.paths import build_root, locked, preloadable, root
from stretto.mpi import Mpi
from stretto.mpi.abis import ABIS
from stretto.native import configuring, packages, prebuilt, ready
from stretto.native.tools import BuildError, run_tool


def ensure_built(
    preset: str = "release", targets: Sequence[str] = (), quiet: bool = True, prefix: Sequence[str] = ()
) -> Path:
    """Configures if the configuration has changed, builds what is stale, and returns the directory.
    What comes prebuilt is not built, nor what is there already where building is no choice.

    Without `targets` it builds everything. `quiet` shows the tools' output only if they fail.
    `prefix` goes before ninja.
    """
    if preset == "release":
        if prebuilt.has(targets):
            return prebuilt.FOLDER
        if folder := ready.instead_of_building(targets):
            return folder
    if lacking := packages.missing("build"):
        names = ", ".join(each.name for each in lacking)
        raise BuildError(
            f"Stretto builds its programs at first use, and this machine lacks {names} (Debian: "
            f"{packages.advice(lacking)})"
        )
    directory = build_root() / preset
    ready.announce(tuple(targets))
    with locked(build_root() / f"{preset}.lock"):
        configuring.configure(preset, directory, quiet)
        begin = time.time()
        run_tool([*prefix, "ninja", "-C", str(directory), *_parallel(), *targets], quiet=quiet)
        ready.note_built(directory, targets, begin)
    return directory


def library(abi: str, faulty: bool = False) -> Path:
    """The preload library for an ABI, built if need be. `faulty` is the twin whose system calls can
    be made to fail."""
    if abi not in ABIS:
        raise BuildError(f"unknown MPI ABI '{abi}': one of {', '.join(ABIS)}")
    target = f"stretto-{abi}" + ("-faulty" if faulty else "")
    if not headers(abi):
        if folder := ready.found([target]):
            return folder / f"lib{target}.so"
        raise BuildError(
            f"no mpi.h for the {abi} ABI on this machine: install the MPI's headers "
            f"(Debian: {ABIS[abi].headers['debian']}), or its wheel (pip install {ABIS[abi].headers['pypi']})"
        )
    return ensure_built("release", [target]) / f"lib{target}.so"


def headers(abi: str) -> bool:
    """Whether this machine has mpi.h of this ABI, so that its library can be built, or has the
    library prebuilt."""
    return prebuilt.has([f"stretto-{abi}"]) or abi in configuring.includes(build_root() / "release")


def obtainable(abi: str) -> bool:
    """Whether the library of this ABI is here, or can be built."""
    return headers(abi) or ready.found([f"stretto-{abi}"]) is not None


def compile_program(
    mpi: Mpi,
    sources: Sequence[str | Path] | str | Path,
    name: str,
    language: str = "c",
    flags: Sequence[str] = (),
    compiler: str | None = None,
) -> Path:
    """Compiles an MPI program with that MPI's wrapper, or with another compiler. A program that is
    newer than its sources, made by the same command, is used again."""
    listed = [sources] if isinstance(sources, (str, Path)) else list(sources)
    paths = [(root() / s).resolve() for s in listed]
    wrapper = compiler or {"c": mpi.mpicc, "c++": mpi.mpicxx, "fortran": mpi.mpifort}[language]
    if not wrapper:
        raise BuildError(f"{mpi.title} has no wrapper compiler for {language}")
    directory = build_root() / "programs" / mpi.tag
    program, stamp = directory / name, directory / f".{name}.stamp"
    own = [f"-D{macro}" for macro in ABIS[mpi.abi].definitions] if language == "c++" else []
    own += _module_dir(language, directory, name)
    line = [str(wrapper), *([] if compiler else mpi.wrapper_words), "-O2", "-g", *own, *flags, *map(str, paths)]
    # Flags such as -lm must follow the sources.
    line += [f for f in flags if f.startswith("-l")]
    key = hashlib.sha256(json.dumps(line).encode()).hexdigest()
    with locked(directory / f".{name}.lock"):
        if not _fresh(program, stamp, key, paths):
            temporary = directory / f".{name}.new"
            run_tool([*line, "-o", str(temporary)], env=mpi.environment(), cwd=directory)
            os.replace(temporary, program)
            stamp.write_text(key)
    return program


def _fresh(program: Path, stamp: Path, key: str, sources: list[Path]) -> bool:
    if not program.exists() or not stamp.exists() or stamp.read_text() != key:
        return False
    if packages.missing("build"):  # then an older one is better than none
        return True
    made = program.stat().st_mtime
    # All headers beside a source count as its inputs; there are few.
    inputs = [*sources, *(h for s in sources for h in s.parent.glob("*.h*"))]
    return all(path.stat().st_mtime < made for path in inputs)


def _module_dir(language: str, directory: Path, name: str) -> list[str]:
    if language != "fortran":
        return []
    modules = directory / f".{name}.mod"
    modules.mkdir(parents=True, exist_ok=True)
    return ["-J", str(modules)]


def _parallel() -> list[str]:
    return ["-j", str(len(os.sched_getaffinity(0)))]


def library_for(mpi_abi: str) -> Path:
    """The library for an ABI, built if need be, at a path that LD_PRELOAD can name."""
    try:
        with working("building the library"):
            return preloadable(library(mpi_abi))
    except BuildError as error:
        fail(f"the library cannot be built\n{error}")
