# SPDX-License-Identifier: BSD-3-Clause
"""Builds the library, its tests and small MPI programs on demand. An up-to-date build costs one
`ninja` call."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stretto.core.console import fail, working
from stretto.core.paths import build_root, is_checkout, locked, preloadable, root
from stretto.core.processes import child
from stretto.mpi import Mpi, finding
from stretto.mpi.abis import ABIS
from stretto.native import packages, prebuilt


class BuildError(RuntimeError):
    """A compiler or CMake failed. The text is what it said."""


def ensure_built(
    preset: str = "release", targets: Sequence[str] = (), quiet: bool = True, prefix: Sequence[str] = ()
) -> Path:
    """Configures if the configuration has changed, builds what is stale, and returns the directory.
    What comes prebuilt is not built.

    Without `targets` it builds everything. `quiet` shows the tools' output only if they fail.
    `prefix` goes before ninja.
    """
    if preset == "release" and prebuilt.has(targets):
        return prebuilt.FOLDER
    if lacking := packages.missing("build"):
        names = ", ".join(each.name for each in lacking)
        raise BuildError(
            f"Stretto builds its programs at first use, and this machine lacks {names} (Debian: "
            f"{packages.advice(lacking)})"
        )
    directory = build_root() / preset
    with locked(build_root() / f"{preset}.lock"):
        _configure(preset, directory, quiet)
        run_tool([*prefix, "ninja", "-C", str(directory), *_parallel(), *targets], quiet=quiet)
    return directory


def library(abi: str, faulty: bool = False) -> Path:
    """The preload library for an ABI, built if need be. `faulty` is the twin whose system calls can
    be made to fail."""
    if abi not in ABIS:
        raise BuildError(f"unknown MPI ABI '{abi}': one of {', '.join(ABIS)}")
    if not headers(abi):
        raise BuildError(
            f"no mpi.h for the {abi} ABI on this machine: install the MPI's headers "
            f"(Debian: {ABIS[abi].headers['debian']}), or its wheel (pip install {ABIS[abi].headers['pypi']})"
        )
    target = f"stretto-{abi}" + ("-faulty" if faulty else "")
    return ensure_built("release", [target]) / f"lib{target}.so"


def headers(abi: str) -> bool:
    """Whether this machine has mpi.h of this ABI, so that its library can be built, or has the
    library prebuilt."""
    return prebuilt.has([f"stretto-{abi}"]) or abi in _includes(build_root() / "release")


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


def run_tool(
    line: Sequence[str], quiet: bool = True, env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Runs a build tool and returns its output. Raises BuildError if it fails."""
    full = {**os.environ, **(env or {})}
    full.pop("LD_PRELOAD", None)
    # ninja passes its job-server variables to nested calls, such as a build started from ctest.
    full.pop("MAKEFLAGS", None)
    try:
        with child(
            line,
            env=full,
            cwd=cwd,
            text=True,
            stdout=subprocess.PIPE if quiet else None,
            stderr=subprocess.STDOUT if quiet else None,
        ) as tool:
            said = tool.communicate()[0] or ""
    except FileNotFoundError:
        raise BuildError(f"{line[0]} is not installed (`stretto doctor` says what is missing)") from None
    if tool.returncode:
        raise BuildError(f"$ {shlex.join(map(str, line))}\n{said.rstrip()}\nexit status {tool.returncode}")
    return said


# ---- configuring ---------------------------------------------------------------------------------


def _configure(preset: str, directory: Path, quiet: bool) -> None:
    definitions = _definitions(preset, directory)
    key = json.dumps({"source": str(root()), "definitions": definitions}, sort_keys=True)
    stamp = directory / "stretto-configured.json"
    if stamp.exists() and stamp.read_text() == key and (directory / "build.ninja").exists():
        return
    if not (directory / "build.ninja").exists():
        shutil.rmtree(directory / "CMakeFiles", ignore_errors=True)
        (directory / "CMakeCache.txt").unlink(missing_ok=True)
    arguments = [f"-D{name}={value}" for name, value in definitions.items()]
    run_tool(["cmake", "--preset", preset, "-B", str(directory), *arguments], quiet=quiet, cwd=root())
    stamp.write_text(key)


def _definitions(preset: str, directory: Path) -> dict[str, str]:
    places = (
        ["/usr/src/googletest/googletest/include"] if preset == "aarch64" else ["/usr/include", "/usr/local/include"]
    )
    tests = is_checkout() and any(Path(place, "gtest/gtest.h").exists() for place in places)
    definitions = {"STRETTO_TESTS": "ON" if tests else "OFF"}
    if preset not in ("asan", "tsan"):  # asan and tsan build no preload libraries
        definitions |= {f"STRETTO_{abi.upper()}_INCLUDE": path for abi, path in _includes(directory).items()}
    return definitions


def _includes(directory: Path) -> dict[str, str]:
    """The directory of mpi.h by ABI: our own where there is one. A build keeps the one that it uses,
    so that installing another MPI rebuilds nothing."""
    kept = _kept_includes(directory / "stretto-configured.json")
    own = {abi: str(facts.own_include) for abi, facts in ABIS.items() if facts.own_include}
    return {abi: path for abi in ABIS if (path := own.get(abi) or kept.get(abi) or _first_include(abi))}


def _kept_includes(stamp: Path) -> dict[str, str]:
    if not stamp.exists():
        return {}
    definitions = json.loads(stamp.read_text())["definitions"]
    kept = {abi: definitions.get(f"STRETTO_{abi.upper()}_INCLUDE", "") for abi in ABIS}
    return {abi: path for abi, path in kept.items() if path and Path(path, "mpi.h").exists()}


@functools.cache
def _first_include(abi: str) -> str | None:
    # The lowest version first: a library built with older headers works with a newer MPI.
    headers = [m for m in finding.find_all() if m.abi == abi and m.include]
    headers.sort(key=lambda m: (m.kind != m.abi, [int(n) for n in m.version.split(".") if n.isdigit()]))
    return str(headers[0].include) if headers else None


def _parallel() -> list[str]:
    return ["-j", str(len(os.sched_getaffinity(0)))]


def library_for(mpi_abi: str) -> Path:
    """The library for an ABI, built if need be, at a path that LD_PRELOAD can name."""
    try:
        with working("building the library"):
            return preloadable(library(mpi_abi))
    except BuildError as error:
        fail(f"the library cannot be built\n{error}")
