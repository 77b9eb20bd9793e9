# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite programs: whole programs with calls that may return early, and without."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from stretto.bench import overlap_programs
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import PlanError
from stretto.cluster.registry import ClusterError
from stretto.commands.options import MpiName, ResultsFile, checked
from stretto.core import machine
from stretto.core.console import fail
from stretto.core.reports import write_json
from stretto.mpi import choosing
from stretto.mpi.launching import JobFailed, JobHangs
from stretto.native import probe
from stretto.native.build import library_for

USUAL = [
    "fft3d --size 64 --repeat 40",
    "fft3d --size 64 --fields 4 --repeat 20",
    "fft3d --size 128 --repeat 20",
    "sample_sort --keys 400000 --repeat 40",
    "summa --size 1024 --panel 256 --repeat 40",
    "mlp --width 512 --layers 6 --batch 64 --steps 40",
    "sgd 1000 32768",
]

Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Which cluster: several may be up.")]
Programs = Annotated[
    Optional[list[str]],
    typer.Option(
        "--program",
        metavar="'NAME ARGS'",
        help="One of examples/, or any executable, with its arguments. May be repeated.",
    ),
]
Values = Annotated[
    str, typer.Option("--values", metavar="LIST", help="Of STRETTO_OVERLAP, with commas. off is always measured.")
]
Runs = Annotated[int, typer.Option("--runs", metavar="N", min=1, help="Jobs of each value, by turns; medians count.")]
Where = Annotated[str, typer.Option("--map", metavar="MAP", help="Where ranks go, as of [b]stretto cluster run[/].")]
Settings = Annotated[
    Optional[list[str]], typer.Option("--set", "-s", metavar="NAME=VALUE", help="A Stretto option. May be repeated.")
]


def command(
    name: Name = "default",
    programs: Programs = None,
    values: Values = "off,on,auto",
    runs: Runs = 5,
    where: Where = "slot",
    mpi: MpiName = None,
    settings: Settings = None,
    json_file: ResultsFile = None,
) -> None:
    """Measure whole programs with each value of STRETTO_OVERLAP, by turns, on a cluster.

    Programs of examples/ time themselves: a transform, a sort, a product or a step. So does LAMMPS. Of other programs \
the whole job is timed. "At best" is of a run that hides all its collectives, or all its computing, whichever is less. \
Beside the times stand what one call cost, on the median of the ranks.

    [dim]stretto cluster up --leaves 1 --hosts 2 --per-host 1 --host-rate 200M[/]
    [dim]stretto bench --suite programs --program 'fft3d --size 64 --repeat 5'[/]
    """
    chosen_programs = checked(overlap_programs.parse_programs, programs or USUAL, "--program")
    request = overlap_programs.Request(chosen_programs, overlap_programs.parse_values(values), runs, where)
    options = probe.checked_settings(settings or [])
    try:
        cluster = Cluster.find(name)
        chosen = choosing.choose(mpi)
        machine.warn_if_busy()
        run = overlap_programs.runner(request, cluster, chosen, library_for(chosen.abi), options)
        rows = overlap_programs.measure(request, run)
    except (ClusterError, PlanError) as error:
        fail(str(error))
    except (JobFailed, JobHangs) as error:
        fail(str(error), 1)
    doc = overlap_programs.document(cluster, chosen, request, rows)
    write_json(json_file, "overlap.programs", doc)
    if json_file is None:
        overlap_programs.show(doc)
