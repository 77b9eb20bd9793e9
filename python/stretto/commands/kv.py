# SPDX-License-Identifier: BSD-3-Clause
"""kv: reader-writer schemes in shared memory, as in paper S3, and the library in front of PMIx."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.bench import locks
from stretto.commands.options import ResultsFile
from stretto.core import machine, output_files
from stretto.core.console import err, fail, working
from stretto.core.paths import preloadable
from stretto.core.reports import write_json
from stretto.native import build

app = typer.Typer(help="The node's key-value store and its lock schemes.", no_args_is_help=True)


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


@app.command("bench")
def bench(
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme",
            metavar="LIST",
            help="Schemes, with commas: "
            + ", ".join(locks.SCHEMES)
            + "; or all. Also ds21: 2n-mutex as OpenPMIx has it; swap: no lock, but what a queue costs at least.",
        ),
    ] = "all",
    clients: Annotated[
        str, typer.Option("--clients", metavar="LIST", help="Numbers of readers, with commas.")
    ] = "1,2,4,8",
    mode: Annotated[str, typer.Option("--mode", metavar="LIST", help="read, write, concurrent; or all.")] = "all",
    repetitions: Annotated[
        int,
        typer.Option("--repeat", "--repetitions", metavar="N", min=1, help="Repetitions, the schemes taking turns."),
    ] = 10,
    length_ms: Annotated[
        int,
        typer.Option(
            "--length-ms", metavar="MS", min=1, help="Of one repetition of one scheme, reading or writing only."
        ),
    ] = 30,
    sections: Annotated[
        int,
        typer.Option("--check-sections", metavar="N", min=0, help="Sections of the correctness run before; 0: none."),
    ] = 20_000,
    json_file: ResultsFile = None,
    plot: Annotated[
        Optional[Path],
        typer.Option(
            "--plot", metavar="FILE", help="Draw the four figures (PNG, SVG, PDF).", callback=output_files.drawable
        ),
    ] = None,
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


@app.command("lib")
def lib() -> None:
    """Print the path of the library that answers PMIx_Get from the node, for LD_PRELOAD."""
    with working("building the library"):
        directory = build.ensure_built("release", ["stretto-kv"])
        plan = directory / "build.ninja"  # what comes prebuilt has none
        if plan.exists() and "libstretto-pmix.so" in plan.read_text():
            build.ensure_built("release", ["stretto-pmix"])
    library = directory / "libstretto-pmix.so"
    if not library.exists():
        fail("there is no pmix.h on this machine to build it with: install libpmix-dev")
    typer.echo(preloadable(library))
