# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables of launchers and of ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from stretto.core.console import fail
from stretto.mpi.mpi import Mpi

# For programs that measure or test the library: it serves from the first call on, on any
# communicator.
SERVED_AT_ONCE = {"STRETTO_AGREE": "first"}

# No options of the library, as in src/base/options.cpp.
NAMES_OF_OTHERS = ("STRETTO_MPI_VENVS", "STRETTO_PYTHON", "STRETTO_ROOT")


def preload_value(library: Path, first: Sequence[str] = ()) -> str:
    """LD_PRELOAD with `first`, then what is preloaded already, then `library`. So other tools see
    every call before Stretto serves it."""
    others = [p for p in os.environ.get("LD_PRELOAD", "").replace(" ", ":").split(":") if p and p != str(library)]
    return ":".join(dict.fromkeys([*first, *others, str(library)]))


def rank_environment(library: Path, settings: dict[str, str], first: Sequence[str] = ()) -> dict[str, str]:
    """Variables for the ranks, also on other nodes: our options, `settings`, and LD_PRELOAD."""
    options = {k: v for k, v in os.environ.items() if k.startswith("STRETTO_") and k not in NAMES_OF_OTHERS}
    if "STRETTO" in os.environ:
        options["STRETTO"] = os.environ["STRETTO"]
    return {**options, **settings, "LD_PRELOAD": preload_value(library, first)}


def parse_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Options from slots=16 or STRETTO_SLOTS=16."""
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip().upper().replace("-", "_")
        if not equals or not name:
            fail(f"--set {pair}: expected NAME=VALUE, for example --set wait=yield")
        settings[name if name.startswith("STRETTO") else f"STRETTO_{name}"] = value
    return settings


def clean_environment(mpi: Mpi) -> dict[str, str]:
    """Our environment without a preloaded library and without Stretto's options, plus what the MPI
    needs."""
    own = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not re.match(r"STRETTO(_|$)", k)}
    return {**own, **mpi.environment()}


def launching_environment(mpi: Mpi) -> dict[str, str]:
    """Our environment without a preloaded library, plus what the MPI needs."""
    return {**{k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}, **mpi.environment()}
