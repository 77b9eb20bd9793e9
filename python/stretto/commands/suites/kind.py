# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite kind: what kind waiting gains, and what it costs."""

from __future__ import annotations

from typing import Annotated

import typer

from stretto.bench import kind
from stretto.bench.request import parse_ranks
from stretto.commands.options import MpiName, ResultsFile, checked
from stretto.core import machine
from stretto.core.reports import write_json
from stretto.mpi import choosing


Np = Annotated[str, typer.Option("-n", "--ranks", "--np", metavar="LIST", help="Number of ranks; several with commas.")]
Runs = Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Figures are medians over the runs.")]
Budget = Annotated[float, typer.Option("--budget", metavar="S", min=0.001, help="Seconds for one pattern in one run.")]
Most = Annotated[int, typer.Option("--repeat", metavar="N", min=2, help="At most so many steps of a pattern.")]


def command(
    np: Np = "2,4,8",
    runs: Runs = 3,
    budget: Budget = 0.5,
    most: Most = 1_000_000,
    mpi: MpiName = None,
    json_file: ResultsFile = None,
) -> None:
    """Measure messages between ranks that share processors: the MPI's own waits beside kind waiting.

    Jobs without the library, with STRETTO_KIND=off and with STRETTO_KIND=auto take turns. With a processor for each \
rank, the ratios say what the wrappers cost.

    [dim]stretto bench --suite kind -n 4,8 --mpi mpich[/]
    """
    request = kind.Request(tuple(checked(parse_ranks, np)), runs, budget, most)
    chosen = choosing.choose(mpi)
    machine.warn_if_busy()
    doc = kind.document(chosen, request, kind.measure(request, chosen))
    write_json(json_file, "kind", doc)
    if json_file is None:
        kind.show(doc)
