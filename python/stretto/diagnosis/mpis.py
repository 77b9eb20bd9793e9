# SPDX-License-Identifier: BSD-3-Clause
"""Whether each MPI of this machine runs a program with Stretto."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stretto.bench import pagerank
from stretto.core.console import working
from stretto.core.paths import preloadable
from stretto.diagnosis.verdict import BAD, GOOD, WARN, Verdict
from stretto.mpi import Mpi, finding, launching
from stretto.mpi.abis import ABIS
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.mpi.launching import JobHangs
from stretto.native import build, packages, prebuilt
from stretto.native.build import BuildError


def check_mpi(mpi: Mpi) -> Verdict:
    """Runs a small program on 2 ranks, with and without the library. Results must be equal, and
    Stretto must serve calls."""
    if not mpi.mpicc and not prebuilt.has_mpi_program(mpi, "pagerank"):
        return Verdict(
            WARN,
            mpi.title,
            "has no compiler wrapper: not tried",
            f"Install its headers (for Debian's: {ABIS[mpi.abi].headers['debian']}).",
        )
    try:
        program, library = pagerank.compile_pagerank(mpi), preloadable(build.library(mpi.abi))
    except BuildError:
        if not (lacking := packages.missing("build")):
            raise
        why = "not tried: the program or the library is not built, and there is no compiler"
        return Verdict(WARN, mpi.title, why, packages.advice(lacking))
    arguments = ["--vertices", "3000", "--topics", "1"]
    with tempfile.TemporaryDirectory(prefix="stretto-doctor-") as folder:
        stats = Path(folder, "stats.json")
        try:
            plain = launching.capture(mpi, mpi.command(2, [program, *arguments]))
            ours = launching.capture(
                mpi,
                mpi.command(
                    2,
                    [program, *arguments],
                    {**SERVED_AT_ONCE, "LD_PRELOAD": str(library), "STRETTO_STATS": f"json:{stats}"},
                ),
            )
        except JobHangs as hang:
            return Verdict(BAD, mpi.title, "a 2-rank program hangs", str(hang))
        if plain.returncode:
            return Verdict(
                BAD, mpi.title, f"does not run a 2-rank program (exit status {plain.returncode})", _tail(plain)
            )
        if ours.returncode:
            return Verdict(
                BAD, mpi.title, f"the program fails under Stretto (exit status {ours.returncode})", _tail(ours)
            )
        if pagerank.checksum(plain.stdout) != pagerank.checksum(ours.stdout):
            return Verdict(
                BAD,
                mpi.title,
                "the result differs under Stretto",
                "A bug of ours: please report it. STRETTO=off until it is fixed.",
            )
        served, total = served_calls(stats)
    if not served:
        return Verdict(
            BAD,
            mpi.title,
            "the library is loaded but serves no call" if total else "the library is not active in the ranks",
            _tail(ours),
        )
    return Verdict(GOOD, mpi.title, f"2 ranks: the same result, {served} of {total} collective calls served by Stretto")


def _tail(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("stretto")]
    return "\n".join((ours or lines)[-6:])


def served_calls(stats: Path) -> tuple[int, int]:
    """The number of calls that Stretto served, and of all calls, from a statistics file."""
    try:
        data = json.loads(stats.read_text())
    except (OSError, ValueError):
        return 0, 0
    calls = list(_call_counts(data))
    total = sum(sum(by_path.values()) for by_path in calls)
    return total - sum(by_path.get("host", 0) for by_path in calls), total


def _call_counts(node: Any) -> Iterator[dict[str, int]]:
    """Every {"inline": n, "cico": n, "host": n} below `node`: of ranks, communicators, and freed
    communicators."""
    if isinstance(node, dict):
        if isinstance(node.get("calls"), dict):
            yield node["calls"]
        node = node.values()
    elif not isinstance(node, list):
        return
    for each in node:
        yield from _call_counts(each)


def check_mpis() -> Iterator[Verdict]:
    found = finding.find_abis()
    if not found:
        yield Verdict(
            WARN, "MPI", "none on this machine", "`stretto run` and `stretto demo` fetch the Open MPI wheel from PyPI."
        )
    for mpi in found:
        with working(f"trying {mpi.title}"):
            yield check_mpi(mpi)
