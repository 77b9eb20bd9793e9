# SPDX-License-Identifier: BSD-3-Clause
"""The MPI programs that commands run: bench/programs.toml says what each is made of."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stretto.core.paths import root
from stretto.mpi import Mpi
from stretto.native import build, prebuilt

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LANGUAGES = {".c": "c", ".cpp": "c++", ".f90": "fortran"}


@dataclass(frozen=True)
class Program:
    name: str
    sources: list[str]
    flags: list[str]
    includes: list[str]
    core: bool

    @property
    def language(self) -> str:
        return LANGUAGES[Path(self.sources[0]).suffix]

    def source_paths(self) -> list[Path]:
        return [root() / source for source in self.sources]

    def inputs(self, preset: str = "release") -> list[Path]:
        """Sources and what is linked with them."""
        return [*self.source_paths(), *([core_library(preset)] if self.core else [])]

    def all_flags(self) -> list[str]:
        return [*self.flags, *(f"-I{root() / folder}" for folder in self.includes)]


@functools.cache
def programs() -> Mapping[str, Program]:
    """All, by name."""
    table = root() / "bench/programs.toml"
    if not table.exists():
        raise build.BuildError(
            f"{root()} has no bench/programs.toml: the sources of Stretto's MPI programs are missing"
        )
    return {name: Program(name, **keys) for name, keys in tomllib.loads(table.read_text(encoding="utf-8")).items()}


def carried() -> list[str]:
    """Those that packages have ready. The others need more than an MPI and a C library."""
    return [name for name, each in programs().items() if name != "simulated" and each.language != "fortran"]


def core_library(preset: str = "release") -> Path:
    """What is below the mpi layer, for programs that run parts of it; built if need be."""
    return build.ensure_built(preset, ["stretto_core"]) / "libstretto_core.a"


def compiled(mpi: Mpi, name: str) -> Path:
    """The program for an MPI; built if need be."""
    if ready := prebuilt.mpi_program(mpi, name):
        return ready
    program = programs()[name]
    return build.compile_program(mpi, program.inputs(), name, program.language, program.all_flags())


def compile_by(compiler: str, name: str, folder: Path) -> Path:
    """The program in a folder, by another compiler than an MPI's wrapper."""
    program, made = programs()[name], folder / name
    inputs = map(str, program.inputs())
    build.run_tool([compiler, "-O2", *program.all_flags(), *inputs, "-o", str(made)], cwd=folder)
    return made
