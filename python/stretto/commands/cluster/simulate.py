# SPDX-License-Identifier: BSD-3-Clause
"""cluster simulate: our schedules on clusters far larger than this machine."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.progress import Progress
from rich.table import Table

from stretto.cluster import simulated_calls
from stretto.cluster.journal import Journal
from stretto.cluster.simulated_calls import SELECTORS
from stretto.cluster.simulation import Network, Simulation, network_of
from stretto.core.arguments import checked_ops
from stretto.core.console import err, fail, note, out
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json
from stretto.core.units import format_size, parse_sizes


Cluster = Annotated[
    str,
    typer.Argument(
        metavar="CLUSTER",
        help="[b]switches[/]: 64 nodes of 36 ranks, 16 nodes to a leaf switch; [b]wide[/]: 10 nodes "
        "of 128 ranks; or NODESxRANKS\\[xNODES-PER-LEAF].",
    ),
]
Op = Annotated[
    str,
    typer.Option(
        "--op", metavar="LIST", help="Of bcast, reduce, allreduce, gather, scatter, allgather, alltoall, with commas."
    ),
]
Sizes = Annotated[
    str,
    typer.Option("--sizes", metavar="A:B", help="Bytes of the vector, or of a part: the powers of four from A to B."),
]
BuiltIn = Annotated[
    bool, typer.Option("--built-in", help="Only what the library takes without rules, no other candidates.")
]
Seconds = Annotated[
    float,
    typer.Option(
        "--patience", metavar="S", min=1, help="Seconds for the simulation of one call; what takes longer is left out."
    ),
]
Kept = Annotated[
    Optional[Path],
    typer.Option(
        "--journal",
        metavar="FILE",
        help="Keep every simulated time in FILE as it comes, and simulate only what is "
        "not in it: an interrupted run goes on.",
        dir_okay=False,
    ),
]
JsonFile = Annotated[
    Optional[Path],
    typer.Option("--json", metavar="FILE", help="Write the results as JSON into FILE ([b]-[/]: stdout)."),
]


def command(
    cluster: Cluster = "switches",
    op: Op = ",".join(simulated_calls.OPS),
    sizes: Sizes = "4:4M",
    built_in: BuiltIn = False,
    seconds: Seconds = 120,
    kept: Kept = None,
    json_file: JsonFile = None,
) -> None:
    """Simulate a large cluster (SimGrid) and compare with what Open MPI and MPICH would choose there."""
    network = network_of(cluster)
    ops = checked_ops([op], (*simulated_calls.OPS, *simulated_calls.PARTS))
    try:
        least, most = parse_sizes(sizes)
    except ValueError as error:
        fail(f"--sizes: {error}")
    check_outputs(json_file, kept)
    chosen = [least * 4**i for i in range(32) if least * 4**i <= most]
    tried = (lambda o, size: 1) if built_in else lambda o, size: len(simulated_calls.candidates(network, o, size))
    calls = sum(tried(o, size) + len(SELECTORS) for o in ops for size in chosen)
    with (
        tempfile.TemporaryDirectory(prefix="stretto-simulated-") as folder,
        Progress(console=err, transient=True) as progress,
        ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool,
    ):
        simulation = Simulation(network, Path(folder), seconds)
        journal = Journal(kept, simulation.key() if kept else "")
        if journal.elsewhere:
            note(f"{kept}: {journal.elsewhere} times are of other networks or another build")
        task = progress.add_task(f"simulating {network.ranks} ranks", total=calls)
        try:
            waiting = [
                simulated_calls.measure(
                    simulation, journal, one, chosen, pool, lambda calls: progress.advance(task, calls), built_in
                )
                for one in ops
            ]
            results = [result for wait in waiting for result in wait()]
        except BaseException:  # one simulation has failed, or the user has pressed Ctrl-C: end the others
            simulation.stop()
            raise
    means = {s: {o: simulated_calls.mean(results, o, s) for o in ops} for s in SELECTORS}
    write_json(
        json_file,
        "cluster.simulate",
        {"network": asdict(network), "ranks": network.ranks, "results": [asdict(r) for r in results], "geomean": means},
    )
    if not (json_file and str(json_file) == "-"):
        out.print(table(network, results, means))


def table(network: Network, results: list[simulated_calls.Result], means: dict[str, dict[str, float | None]]) -> Table:
    shown = Table(
        title=f"{network.nodes} nodes of {network.per_node} ranks, simulated: our time / what the selector of "
        "that MPI chooses"
    )
    for name in ("", "bytes", "ours, us", "as"):
        shown.add_column(name, justify="left" if name in ("", "as") else "right")
    for name in ("Open MPI's", "MPICH's"):
        shown.add_column(name, justify="right")

    def print_ratio(ratio: float | None) -> str:
        return "-" if ratio is None else f"{ratio:.2f}"

    for r in results:
        shown.add_row(
            r.op,
            format_size(r.bytes),
            f"{r.ours_us:.1f}",
            simulated_calls.way_of(r.candidate),
            *(print_ratio(r.ratio(s)) for s in SELECTORS),
        )
    for one in means[SELECTORS[0]]:
        shown.add_row(f"[b]{one}[/]", "all", "", "", *(print_ratio(means[s][one]) for s in SELECTORS))
    return shown
