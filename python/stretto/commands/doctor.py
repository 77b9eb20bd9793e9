# SPDX-License-Identifier: BSD-3-Clause
"""doctor: whether Stretto works on this machine, and if not, why and what to do."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table
from rich.text import Text

from stretto.bench import pagerank
from stretto.core.console import out, working
from stretto.core.output_files import check_outputs
from stretto.core.paths import is_checkout
from stretto.core.reports import write_json
from stretto.mpi import Mpi, finding, launching
from stretto.mpi.abis import ABIS
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.mpi.launching import JobHangs
from stretto.native import guarding, packages, portable, prebuilt, probe
from stretto.native.build import BuildError, library_for

GOOD, WARN, BAD = "good", "warn", "bad"
MARKS = {GOOD: "[green]ok[/]", WARN: "[yellow]note[/]", BAD: "[bold red]NO[/]"}


@dataclass
class Verdict:
    """One finding."""

    level: str
    subject: str
    finding: str
    advice: str = ""


# ---- the system ----------------------------------------------------------------------------------


def check_tools() -> Iterator[Verdict]:
    ready = prebuilt.has(portable.LIBRARIES)
    if ready:
        yield Verdict(GOOD, "the libraries", f"prebuilt, in {prebuilt.FOLDER}")
    purposes = [("build", BAD, "building the library")] * (not ready)
    purposes += [("test", WARN, "`stretto test` only")] * is_checkout()
    for needed_by, level, purpose in purposes:
        if lacking := packages.missing(needed_by):
            yield Verdict(
                level,
                f"tools for {purpose}",
                "missing: " + ", ".join(each.name for each in lacking),
                packages.advice(lacking),
            )
        else:
            yield Verdict(GOOD, f"tools for {purpose}", "all there")


MECHANISMS = {
    "memfd": (
        "shared memory files",
        BAD,
        "Without memfd_create Stretto stands aside and every call goes to the MPI. Is a seccomp filter or a "
        "memory limit in the way?",
    ),
    "proc": ("attaching by /proc", WARN, "Peers then pass their memory by socket; fine as long as that works."),
    "mailbox": (
        "attaching by socket",
        WARN,
        "Only needed where /proc does not work, for example with one PID namespace per rank.",
    ),
    "cma": (
        "reading a peer's memory (CMA)",
        WARN,
        "Not used for collectives yet; the MPI's own large messages may be slower without "
        "(ptrace_scope, or a container without CAP_SYS_PTRACE).",
    ),
}


def check_mechanisms() -> Iterator[Verdict]:
    checks = {c["name"]: c for c in probe.ask()["checks"]}
    for name, (subject, level, advice) in MECHANISMS.items():
        check = checks.get(name)
        if not check:
            yield Verdict(BAD, subject, "could not be tried", advice)
        elif check["ok"]:
            yield Verdict(GOOD, subject, "works between two processes")
        else:
            yield Verdict(level, subject, f"refused: {check['error']}", advice)
    if checks.get("memfd", {}).get("ok") and not (checks["proc"]["ok"] or checks["mailbox"]["ok"]):
        yield Verdict(
            BAD,
            "reaching a peer's memory",
            "neither /proc nor sockets work",
            "Stretto will stand aside: let the ranks share a PID or a network namespace.",
        )


def check_guarding() -> Iterator[Verdict]:
    """What guards the buffers of collectives that return early. Without it they wait: nothing is broken."""
    for line in guarding.lines(probe.ask()["overlap"], os.environ.get("STRETTO_OVERLAP_GUARD", "").lower()):
        yield Verdict(GOOD if line.good else WARN, line.subject, line.finding, line.advice)


def check_processors() -> Iterator[Verdict]:
    cpus = probe.ask()["cpus"]
    quota = cpus["quota"]
    if quota is not None and quota < cpus["usable"]:
        yield Verdict(
            WARN,
            "cgroup quota",
            f"{quota:g} CPUs' worth of time on {cpus['usable']} CPUs",
            "Ranks beyond the quota are stopped in mid-call; Stretto then waits by yielding. More ranks than the "
            "quota will not be faster.",
        )
    else:
        yield Verdict(
            GOOD,
            "processors",
            f"{cpus['usable']} usable of {cpus['online']}, " + ("no quota" if quota is None else f"quota {quota:g}"),
        )


def check_options() -> Iterator[Verdict]:
    messages = probe.ask()["option_messages"]
    for message in messages:
        yield Verdict(BAD if message["error"] else WARN, "options", message["text"])
    if not messages:
        changed = [o["name"] for o in probe.ask()["options"] if o["origin"] != "default"]
        yield Verdict(GOOD, "options", "set: " + ", ".join(changed) if changed else "all at their defaults")
    if os.environ.get("STRETTO", "").lower() in ("off", "0", "no", "false"):
        yield Verdict(
            WARN, "options", "STRETTO=off is set", "Every call goes to the MPI: unset STRETTO to use Stretto."
        )


# ---- each MPI ------------------------------------------------------------------------------------


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
    program = pagerank.compile_pagerank(mpi)
    library = library_for(mpi.abi)
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


# ---- the command ---------------------------------------------------------------------------------


def examine() -> Iterator[Verdict]:
    yield from check_tools()
    try:
        with working("building the probe"):
            probe.ask()
    except BuildError as error:
        yield Verdict(BAD, "building", "failed", str(error))
        return
    for check in (check_mechanisms, check_guarding, check_processors, check_options, check_mpis):
        yield from check()


def command(
    json_file: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="Write the verdicts as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
) -> None:
    """Check whether Stretto can work here, MPI by MPI, and say what to do if not.

    Exit status 1 if something is broken.
    """
    check_outputs(json_file)
    verdicts = []
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for verdict in examine():
        verdicts.append(verdict)
        advice = ("\n" + verdict.advice, "dim") if verdict.advice and verdict.level != GOOD else ""
        table.add_row(MARKS[verdict.level], Text(verdict.subject), Text.assemble(verdict.finding, advice))
    if json_file is None or str(json_file) != "-":
        out.print(table)
    write_json(json_file, "doctor", {"verdicts": [asdict(v) for v in verdicts]})
    if any(v.level == BAD for v in verdicts):
        raise typer.Exit(1)
