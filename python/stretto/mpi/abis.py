# SPDX-License-Identifier: BSD-3-Clause
"""The MPI ABIs that Stretto has a library for, and the implementations with these ABIs.

src/mpi/vendor/abis.toml has them, says what each key means, and is what CMake and C++ know, too.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.core.paths import root

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_OURS = "@SOURCE@/"


@dataclass(frozen=True)
class Abi:
    name: str
    family: str
    sonames: list[str]
    standard: bool
    large_count: bool
    extensions: list[str]
    handle_symbol: str
    srun_option: str
    definitions: list[str]
    includes: list[str]
    headers: Mapping[str, str]  # by debian, pypi

    @property
    def own_include(self) -> Path | None:
        """The directory of mpi.h if Stretto has one of its own for this ABI."""
        return next((root() / p.removeprefix(_OURS) for p in self.includes if p.startswith(_OURS)), None)


@dataclass(frozen=True)
class Implementation:
    name: str
    abi: str
    title: str
    version: str  # a regular expression
    wheels: list[str]
    environments: list[str]
    module: str
    packages: list[str]
    forward: list[str]
    launching: Mapping[str, str]
    library_path: bool
    yielding: Mapping[str, str]
    unbound: list[str]
    standard: list[str]


_TABLES: dict[str, dict[str, Any]] = tomllib.loads((root() / "src/mpi/vendor/abis.toml").read_text(encoding="utf-8"))
ABIS = {name: Abi(name=name, **table) for name, table in _TABLES["abi"].items()}
IMPLEMENTATIONS = {name: Implementation(name=name, **table) for name, table in _TABLES["implementation"].items()}
STANDARD = next(abi for abi in ABIS.values() if abi.standard)
# What `--mpi` names.
KINDS = tuple(IMPLEMENTATIONS)
ABI_OF_SONAME = {soname: abi.name for abi in ABIS.values() for soname in abi.sonames}
