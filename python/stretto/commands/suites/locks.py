# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite kv: reader-writer schemes in shared memory, as in paper S3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.bench import locks
from stretto.commands.options import ResultsFile
from stretto.core import machine, output_files
from stretto.core.console import err, fail
from stretto.core.reports import write_json


def chosen(text: str, known: Sequence[str], what: str) -> list[str]:
    """The names in a list option; fails for unknown ones."""
    names = list(known) if text == "all" else text.split(",")
    for name in names:
        if name not in known:
            fail(f"--{what} {name or text}: one of {', '.join(known)}; or all")
    return names


def check_schemes(schemes: list[str], clients: str, sections: int) -> list[locks.Row]:
    """Checks that schemes are correct. Ends the command if one is not."""
    status, report = locks.run_program(
        ["check", "--schemes", ",".join(schemes), "--clients", clients, "--sections", str(sections)], "checking schemes"
    )
    for failure in (c for c in report["checks"] if c["failure"]):
        err.print(f"{failure['scheme']} with {failure['clients']} clients: {failure['failure']}", markup=False)
    if status:
        raise typer.Exit(1)
    return report["checks"]


Scheme = Annotated[
    str,
    typer.Option(
        "--scheme",
        metavar="LIST",
        help="Schemes, with commas: "
        + ", ".join(locks.SCHEMES)
        + "; or all. Also ds21: 2n-mutex as OpenPMIx has it; swap: no lock, but what a queue costs at least.",
    ),
]
Clients = Annotated[str, typer.Option("--clients", metavar="LIST", help="Numbers of readers, with commas.")]
Mode = Annotated[str, typer.Option("--mode", metavar="LIST", help="read, write, concurrent; or all.")]
Repetitions = Annotated[
    int, typer.Option("--repeat", "--repetitions", metavar="N", min=1, help="Repetitions, the schemes taking turns.")
]
LengthMs = Annotated[
    int,
    typer.Option("--length-ms", metavar="MS", min=1, help="Of one repetition of one scheme, reading or writing only."),
]
Sections = Annotated[
    int, typer.Option("--check-sections", metavar="N", min=0, help="Sections of the correctness run before; 0: none.")
]
Plot = Annotated[
    Optional[Path],
    typer.Option(
        "--plot", metavar="FILE", help="Draw the four figures (PNG, SVG, PDF).", callback=output_files.drawable
    ),
]


def command(
    scheme: Scheme = "all",
    clients: Clients = "1,2,4,8",
    mode: Mode = "all",
    repetitions: Repetitions = 10,
    length_ms: LengthMs = 30,
    sections: Sections = 20_000,
    json_file: ResultsFile = None,
    plot: Plot = None,
) -> None:
    """Compare reader-writer locks for one writer and many readers in shared memory.

    First each scheme is checked: readers meet inside, the writer is alone, counters are exact. \
Then it is measured in three modes:
    only readers, only the writer, and 100 writes 10 us apart while the readers hammer. \
Ratios are to 2n-mutex (OpenPMIx's) in
    the same run, the schemes taking turns.
    """
    schemes = list(locks.SCHEMES) if scheme == "all" else chosen(scheme, locks.SCHEMES + locks.REFERENCES, "scheme")
    modes = chosen(mode, locks.MODES, "mode")
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", clients):
        fail(f"--clients {clients}: numbers with commas, as 1,2,4")
    if max(map(int, clients.split(","))) > locks.MOST_CLIENTS:
        fail(f"--clients {clients}: at most {locks.MOST_CLIENTS}")
    checks = check_schemes([name for name in schemes if name != locks.NO_LOCK], clients, sections) if sections else []
    _, report = locks.run_program(
        [
            "measure",
            "--schemes",
            ",".join(schemes),
            "--modes",
            ",".join(modes),
            "--clients",
            clients,
            "--repetitions",
            str(repetitions),
            "--length-ms",
            str(length_ms),
        ],
        "measuring",
    )
    doc = {
        "machine": machine.one_line(),
        "machine_details": machine.describe(),
        "checks": checks,
        "results": locks.summarize(report["samples"]),
    }
    write_json(json_file, "kv.bench", doc)
    if json_file is None:
        locks.show(doc["results"])
    if plot:
        locks.plot_figures(doc, plot)
