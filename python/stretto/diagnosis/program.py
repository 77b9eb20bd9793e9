# SPDX-License-Identifier: BSD-3-Clause
"""Whether Stretto can serve a program: its form, its MPI, and the library that is preloaded."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from stretto.diagnosis import preload
from stretto.diagnosis.verdict import BAD, GOOD, WARN, Verdict
from stretto.mpi import finding, linkage
from stretto.mpi.abis import ABIS
from stretto.mpi.mpi import MpiNotFound

MPI_WORD = re.compile(rb"\bP?MPI_(Init|Allreduce|Bcast|Comm_rank)\b|\bmpi_init_?\b", re.IGNORECASE)
OTHER_MPI = re.compile(r"^\s*(lib\w*mpi\w*\.so\S*|libmpitrampoline\S*|libmpiwrapper\S*) =>", re.MULTILINE)


def listed(program: Path) -> str:
    """What the dynamic linker would load, or why it loads nothing."""
    done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, errors="replace", check=False)
    return done.stdout + done.stderr


def gets_privileges(program: Path) -> bool:
    """Whether the system drops LD_PRELOAD when it starts the program."""
    mode = program.stat().st_mode
    if mode & stat.S_ISUID or mode & stat.S_ISGID and mode & stat.S_IXGRP:
        return True
    try:
        return "security.capability" in os.listxattr(program)
    except OSError:  # the file system keeps no attributes
        return False


def without_mpi(subject: str, program: Path) -> Verdict:
    """The finding about a program that is linked to no MPI that Stretto knows."""
    libraries = listed(program)
    is_elf = program.open("rb").read(4) == b"\x7fELF"
    has_mpi = is_elf and MPI_WORD.search(program.read_bytes()) is not None
    if other := OTHER_MPI.search(libraries):
        advice = "Stretto serves " + ", ".join(abi.family for abi in ABIS.values()) + "."
        return Verdict(BAD, subject, f"is linked to {other[1]}, an MPI that Stretto does not know", advice)
    if "not a dynamic executable" in libraries or "statically linked" in libraries:
        advice = "LD_PRELOAD has no effect on it. Link it without -static, and with the shared library of the MPI."
        kind = "is a static MPI program" if has_mpi else "is statically linked"
        return Verdict(BAD, subject, kind, advice) if is_elf else Verdict(WARN, subject, "is not known", "")
    if has_mpi:
        advice = "Stretto then sees no call. Link it with the shared library of the MPI (-lmpi, no libmpi.a)."
        return Verdict(BAD, subject, "has MPI, but no shared library of an MPI: it is linked into the program", advice)
    advice = "Name the program that calls MPI, not a script around it. If it loads its MPI later (dlopen), all is well."
    return Verdict(WARN, subject, "is not linked to an MPI", advice)


def check_launcher(found: linkage.Linked) -> Iterator[Verdict]:
    """The mpiexec in PATH may belong to another MPI."""
    try:
        mpi = finding.find(None)
    except MpiNotFound:
        return
    if mpi.implementation.abi != found.abi and not ABIS[found.abi].standard:
        yield Verdict(
            WARN,
            "mpiexec in PATH",
            f"is {mpi.title}'s; {found.program.name} is linked to {ABIS[found.abi].family}",
            "It would start every rank as a job of its own. Load the module of the program's MPI, or start it by "
            "`stretto run`, which takes the right one.",
        )


def check_program(program: Path, arguments: Sequence[str]) -> Iterator[Verdict]:
    found, subject = linkage.find(program, arguments), str(program)
    if gets_privileges(program):
        yield Verdict(
            BAD,
            subject,
            "is set-user-ID, set-group-ID or has file capabilities",
            "The system drops LD_PRELOAD for such programs: chmod ug-s, setcap -r, or run a copy.",
        )
    if found is None:
        yield without_mpi(subject, linkage.interpreter(program))
        return
    family = ABIS[found.abi].family
    if found.library is None:
        yield Verdict(
            BAD,
            subject,
            f"needs {found.soname}, which the dynamic linker does not find",
            f"Load the module of the MPI with which it was built ({family}), or set LD_LIBRARY_PATH.",
        )
    else:
        yield Verdict(GOOD, subject, f"is linked to {found.library}: {family}")
    for library in preload.named():
        if (abi := preload.abi_of(library)) and abi != found.abi:
            yield Verdict(
                BAD,
                preload.SUBJECT,
                f"has the library for {ABIS[abi].family}; the program is linked to {family}",
                f'Every call goes to the MPI. Load the MPI, and set it anew: eval "$(stretto env --mpi {found.abi})"',
            )
    yield from check_launcher(found)
