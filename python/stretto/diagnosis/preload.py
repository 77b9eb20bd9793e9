# SPDX-License-Identifier: BSD-3-Clause
"""Whether what LD_PRELOAD names can be loaded, and is one library of Stretto."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from stretto import __version__
from stretto.diagnosis.verdict import BAD, GOOD, WARN, Verdict
from stretto.mpi.abis import ABIS

SUBJECT = "LD_PRELOAD"
NAME = re.compile(r"libstretto-(\w+)\.so")
ON_EVERY_HOST = "Keep the library where all hosts find it at the same path."


def named(value: str | None = None) -> list[Path]:
    """The libraries of Stretto that LD_PRELOAD names."""
    value = os.environ.get("LD_PRELOAD", "") if value is None else value
    return [Path(word) for word in re.split("[: ]+", value) if NAME.fullmatch(os.path.basename(word))]


def abi_of(library: Path) -> str | None:
    """The ABI that a library of Stretto serves, by its name."""
    abi = NAME.fullmatch(library.name)[1]
    return abi if abi in ABIS else None


def refusal(library: Path) -> str:
    """What the dynamic linker says if it cannot load the library."""
    done = subprocess.run(
        ["/bin/true"], env={"LD_PRELOAD": str(library), "LC_ALL": "C"}, capture_output=True, text=True, check=False
    )
    found = re.search(r"cannot be preloaded \(([^)]*)\)|error while loading.*: (.*)", done.stderr)
    return (found[1] or found[2]) if found else ""


def version_of(library: Path) -> str | None:
    found = re.search(rb"\0(\d+\.\d+\.\d+[\w.+-]*)\0", library.read_bytes())
    return found[1].decode() if found else None


def judge(library: Path) -> Verdict:
    if not library.exists():
        advice = f"The program then runs without Stretto. `stretto env --library` prints the path. {ON_EVERY_HOST}"
        return Verdict(BAD, SUBJECT, f"names {library}, which does not exist", advice)
    if why := refusal(library):
        advice = "The program then runs without Stretto. "
        if "failed to map" in why:
            advice += "The file system is mounted noexec, or the file is cut short: copy the library elsewhere. "
        return Verdict(BAD, SUBJECT, f"{library} cannot be loaded: {why}", advice + ON_EVERY_HOST)
    if (version := version_of(library)) and version != __version__:
        advice = f'This command is {__version__}. Set LD_PRELOAD anew: eval "$(stretto env)"'
        return Verdict(WARN, SUBJECT, f"{library} is Stretto {version}", advice)
    return Verdict(GOOD, SUBJECT, str(library))


def check_preload() -> Iterator[Verdict]:
    libraries = named()
    if len(libraries) > 1:
        yield Verdict(
            BAD, SUBJECT, f"names {len(libraries)} libraries of Stretto", "Keep the one for the MPI of the program."
        )
    for library in libraries:
        yield judge(library)
