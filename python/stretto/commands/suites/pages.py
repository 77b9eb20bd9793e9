# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite pages: what a loop over a buffer of huge pages loses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.bench import overlap_pages
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import PlanError
from stretto.cluster.registry import ClusterError
from stretto.commands.options import MpiName, ResultsFile
from stretto.core import machine
from stretto.core.console import fail
from stretto.core.reports import write_json
from stretto.mpi import choosing
from stretto.mpi.launching import JobFailed, JobHangs
from stretto.native import probe
from stretto.native.build import library_for


Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Which cluster: several may be up.")]
Mib = Annotated[int, typer.Option("--mib", metavar="N", min=2, max=1024, help="The buffer, in MiB.")]
Calls = Annotated[int, typer.Option("--calls", metavar="N", min=1, help="Alltoalls into it.")]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Loops; the least time counts.")]
Beside = Annotated[
    Optional[Path],
    typer.Option("--beside", metavar="FILE", help="Another build of the library, to compare with.", exists=True),
]
Settings = Annotated[
    Optional[list[str]], typer.Option("--set", "-s", metavar="NAME=VALUE", help="A Stretto option. May be repeated.")
]


def command(
    name: Name = "default",
    mib: Mib = 32,
    calls: Calls = 5,
    repeat: Repeat = 15,
    beside: Beside = None,
    mpi: MpiName = None,
    settings: Settings = None,
    json_file: ResultsFile = None,
) -> None:
    """Measure what a loop over a buffer of huge pages loses when calls into it return early, on a cluster.

    The buffer has huge pages of 2 MiB. The loop is timed before and after Alltoalls into the buffer. Ranks touch the \
data when all of them are there, or at once.

    [dim]stretto cluster up --leaves 1 --hosts 2 --host-rate 200M[/]
    [dim]stretto bench --suite pages[/]
    """
    request = overlap_pages.Request(mib, calls, repeat)
    options = probe.checked_settings(settings or [])
    try:
        cluster = Cluster.find(name)
        chosen = choosing.choose(mpi)
        machine.warn_if_busy()
        libraries = {"this": library_for(chosen.abi), **({"other": beside} if beside else {})}
        rows = overlap_pages.measure(request, cluster, chosen, libraries, options)
    except (ClusterError, PlanError) as error:
        fail(str(error))
    except (JobFailed, JobHangs) as error:
        fail(str(error), 1)
    doc = overlap_pages.document(cluster, chosen, request, rows)
    write_json(json_file, "overlap.pages", doc)
    if json_file is None:
        overlap_pages.show(doc)
