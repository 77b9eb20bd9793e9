# SPDX-License-Identifier: BSD-3-Clause
"""Libraries and programs that come ready to run with the package, in its folder prebuilt/."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from stretto.core.paths import build_root, link_to, locked, short_hash
from stretto.mpi import Mpi
from stretto.mpi.abis import ABIS

# In an installation for all users it is a link to the folder of the libraries.
FOLDER = (Path(__file__).resolve().parents[1] / "prebuilt").resolve()
# Where an MPI program of this folder looks for its MPI: `placed` makes the links.
SEARCH_PATH = "$ORIGIN/lib:$ORIGIN"


def has(targets: Sequence[str]) -> bool:
    """Whether all these targets of the release build are here."""
    return bool(targets) and all(any((FOLDER / name).exists() for name in (t, f"lib{t}.so")) for t in targets)


def has_mpi_program(mpi: Mpi, name: str) -> bool:
    """Whether a program of bench/programs.toml for this MPI's ABI is here."""
    return (FOLDER / mpi.abi / name).exists()


def mpi_program(mpi: Mpi, name: str) -> Path | None:
    """Such a program, if it is here: a copy in a folder of the user's, beside links to this MPI.

    The program is for every MPI of the ABI. MPIs name their library differently, and most have it
    where no dynamic linker looks.
    """
    ready = FOLDER / mpi.abi / name
    if not ready.exists():
        return None
    folder = build_root() / "programs" / f"{mpi.tag}-{short_hash(mpi.library)}"
    with locked(folder / f".{name}.lock"):
        link_to(mpi.library.parent, folder / "lib")
        for soname in ABIS[mpi.abi].sonames:
            if not (mpi.library.parent / soname).exists():
                link_to(mpi.library, folder / soname)
        copy, wanted = folder / name, ready.stat()
        if not copy.exists() or (copy.stat().st_size, copy.stat().st_mtime_ns) != (wanted.st_size, wanted.st_mtime_ns):
            shutil.copy2(ready, folder / f".{name}.new")
            (folder / f".{name}.new").replace(copy)
    return copy
