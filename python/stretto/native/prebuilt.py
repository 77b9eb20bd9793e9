# SPDX-License-Identifier: BSD-3-Clause
"""Libraries and programs that come ready to run with the package, in its folder prebuilt/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "prebuilt"


def has(targets: Sequence[str]) -> bool:
    """Whether all these targets of the release build are here."""
    return bool(targets) and all(any((FOLDER / name).exists() for name in (t, f"lib{t}.so")) for t in targets)


def mpi_program(abi: str, name: str) -> Path | None:
    """A program of bench/programs.toml for an MPI's ABI, if it is here."""
    path = FOLDER / abi / name
    return path if path.exists() else None
