# SPDX-License-Identifier: BSD-3-Clause
"""cluster simulate: our schedules on clusters far larger than this machine, beside the algorithms that other MPIs choose.

SimGrid's SMPI runs bench/simulated.cpp, one thread per rank: the builder and executor of the library over simulated messages. SMPI has
selectors that choose its own implementations as Open MPI and MPICH would; each of them runs the same calls.
"""
from __future__ import annotations

import json as json_module
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.progress import Progress
from rich.table import Table

from stretto import build
from stretto.bench import geomean, parse_sizes, print_size
from stretto.console import err, fail, out, write_json

SELECTORS = ("ompi", "mpich")
OPS = ("bcast", "reduce", "allreduce")
# What may be best, as `CANDIDATE:SEGMENTS:K` of bench/simulated.cpp: compositions over the levels, in one piece and in several; flat trees.
FLAT = {"bcast": "binomial:1:0", "reduce": "binomial:1:0", "allreduce": "recursive_doubling:1:0"}
LONG = ("hierarchy:4:0", "hierarchy:16:0", "hierarchy:64:0")
LONG_FROM_BYTES = 8 << 10


@dataclass(frozen=True)
class Network:
    """Nodes on leaf switches, these on spine switches; rates in GB/s, latencies in microseconds."""
    nodes: int
    per_node: int
    per_leaf: int  # 0: all nodes on one switch
    spines: int = 2
    link: float = 12.5
    link_us: float = 1.0
    memory: float = 8.0
    memory_us: float = 0.3
    overhead_us: float = 0.0  # of a processor, for each message, at either end
    eager_bytes: int = 0      # shorter messages travel whether a receive is posted or not

    @property
    def ranks(self) -> int:
        return self.nodes * self.per_node

    @property
    def levels(self) -> str:
        return f"node:{self.per_node}" + (f",leaf:{self.per_leaf}" if self.per_leaf else "")

    def platform(self) -> str:
        tree = f' topology="FAT_TREE" topo_parameters="2;{self.per_leaf},{self.nodes // self.per_leaf};1,{self.spines};1,1"' if self.per_leaf else ""
        return ("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n"
                f'  <cluster id="cluster" prefix="n" radical="0-{self.nodes - 1}" suffix="" speed="1Gf" bw="{self.link}GBps" lat="{self.link_us}us" '
                f'loopback_bw="{self.memory}GBps" loopback_lat="{self.memory_us}us"{tree}/>\n</platform>\n')


PRESETS = {
    "switches": Network(64, 36, 16),  # the example of Kurnosov 2023
    "wide": Network(10, 128, 0),
}


class Simulation:
    """smpirun on one network; `seconds` bounds one call's simulation."""

    def __init__(self, network: Network, folder: Path, seconds: float) -> None:
        self.network, self.folder, self.seconds = network, folder, seconds
        (folder / "platform.xml").write_text(network.platform())
        (folder / "hosts").write_text("".join(f"n{i}:{network.per_node}\n" for i in range(network.nodes)))
        self.program = compile_simulated(folder)

    def time(self, job: str, selector: str = "ompi") -> float | None:
        """Simulated seconds; None: the simulation took too long."""
        times = self.times([job], selector)
        return times[0] if times else None

    def times(self, jobs: Sequence[str], selector: str = "ompi") -> list[float] | None:
        """The same of several jobs, one after the other."""
        network = self.network
        costs = [f"--cfg=smpi/{side}:0:{network.overhead_us * 1e-6}:0" for side in ("os", "ois", "or")] if network.overhead_us else []
        costs += [f"--cfg=smpi/async-small-thresh:{network.eager_bytes}"] if network.eager_bytes else []
        line = ["smpirun", "-np", str(network.ranks), "-platform", "platform.xml", "-hostfile", "hosts", "--cfg=smpi/privatization:no",
                "--cfg=smpi/simulate-computation:no", f"--cfg=smpi/coll-selector:{selector}", "--log=root.thres:error", *costs,
                str(self.program), network.levels, *jobs]
        process = subprocess.Popen(line, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            printed, said = process.communicate(timeout=self.seconds)
        except subprocess.TimeoutExpired:
            end_session(process)
            return None
        results = [row for row in printed.splitlines() if row.startswith("{")]
        if process.returncode != 0 or len(results) != len(jobs):
            fail(f"smpirun ended with {process.returncode}: {(said or printed).strip()[-400:]}")
        return [float(json_module.loads(row)["time"]) for row in results]


def end_session(process: subprocess.Popen[str]) -> None:
    """smpirun is a script: the simulation is its child."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def compile_simulated(folder: Path) -> Path:
    if not shutil.which("smpicxx") or not shutil.which("smpirun"):
        fail("simulated clusters need SimGrid: apt-get install libsimgrid-dev simgrid")
    core = build.ensure_built("release", ["stretto_core"]) / "libstretto_core.a"
    program = folder / "simulated"
    build.run_tool(["smpicxx", "-O2", "-std=c++20", "-I", str(build.root() / "src"), str(build.root() / "bench/simulated.cpp"), str(core), "-o", str(program)],
                   cwd=folder)
    return program


@dataclass
class Result:
    op: str
    bytes: int
    ours_us: float
    candidate: str
    ompi_us: float | None
    mpich_us: float | None

    def ratio(self, selector: str) -> float | None:
        theirs = getattr(self, f"{selector}_us")
        return self.ours_us / theirs if theirs else None


def candidates(op: str, size: int) -> tuple[str, ...]:
    return ("hierarchy:1:0", FLAT[op], *(LONG if size >= LONG_FROM_BYTES else ()))


def measure(simulation: Simulation, op: str, size: int) -> Result | None:
    """Each simulation is one thread, so as many run as there are processors."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        tried = {c: pool.submit(simulation.time, f"{op}:{size}:{c}") for c in candidates(op, size)}
        theirs = {s: pool.submit(simulation.time, f"{op}:{size}:mpi:1:0", s) for s in SELECTORS}
    finished = {c: t for c, f in tried.items() if (t := f.result()) is not None}
    if not finished:
        return None
    best = min(finished, key=lambda c: finished[c])
    in_us = {s: t * 1e6 if (t := f.result()) is not None else None for s, f in theirs.items()}
    return Result(op, size, finished[best] * 1e6, best, in_us["ompi"], in_us["mpich"])


def command(
    cluster: Annotated[str, typer.Argument(metavar="CLUSTER", help="[b]switches[/]: 64 nodes of 36 ranks, 16 nodes to a leaf switch; [b]wide[/]: 10 nodes "
                                           "of 128 ranks; or NODESxRANKS[xNODES-PER-LEAF].")] = "switches",
    op: Annotated[str, typer.Option("--op", metavar="LIST", help="Of bcast, reduce, allreduce, with commas.")] = ",".join(OPS),
    sizes: Annotated[str, typer.Option("--sizes", metavar="A:B", help="Bytes of the vector: the powers of four from A to B.")] = "4:4M",
    seconds: Annotated[float, typer.Option("--patience", metavar="S", help="Seconds for one simulation; what takes longer is left out.")] = 120,
    json: Annotated[Optional[Path], typer.Option("--json", metavar="FILE", help="Write the results as JSON into FILE ([b]-[/]: stdout).")] = None,
) -> None:
    """Simulate a large cluster (SimGrid) and compare with what Open MPI and MPICH would choose there."""
    network = network_of(cluster)
    ops = op.split(",")
    for one in ops:
        if one not in OPS:
            fail(f"--op: {one} is not simulated, only {', '.join(OPS)}")
    try:
        least, most = parse_sizes(sizes)
    except ValueError as error:
        fail(f"--sizes: {error}")
    wanted = [(o, least * 4 ** i) for o in ops for i in range(32) if least * 4 ** i <= most]
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="stretto-simulated-") as folder, Progress(console=err, transient=True) as progress:
        simulation = Simulation(network, Path(folder), seconds)
        task = progress.add_task("simulating", total=len(wanted))
        for one, size in wanted:
            progress.update(task, description=f"{one} {print_size(size)} on {network.ranks} ranks")
            result = measure(simulation, one, size)
            if result:
                results.append(result)
            progress.advance(task)
    means = {s: {o: mean(results, o, s) for o in ops} for s in SELECTORS}
    write_json(json, {"network": asdict(network), "ranks": network.ranks, "results": [asdict(r) for r in results], "geomean": means})
    if not (json and str(json) == "-"):
        out.print(table(network, results, means))


def mean(results: list[Result], op: str, selector: str) -> float | None:
    ratios = [r.ratio(selector) for r in results if r.op == op]
    known = [r for r in ratios if r is not None]
    return geomean(known) if known else None


def network_of(text: str) -> Network:
    if text in PRESETS:
        return PRESETS[text]
    parts = text.split("x")
    if len(parts) not in (2, 3) or not all(p.isdigit() and int(p) > 0 for p in parts):
        fail(f"{text}: {', '.join(PRESETS)} or NODESxRANKS[xNODES-PER-LEAF]")
    nodes, per_node, *per_leaf = map(int, parts)
    if per_leaf and nodes % per_leaf[0] != 0:
        fail(f"{text}: {nodes} nodes do not fill leaf switches of {per_leaf[0]}")
    return Network(nodes, per_node, per_leaf[0] if per_leaf and per_leaf[0] < nodes else 0)


def table(network: Network, results: list[Result], means: dict[str, dict[str, float | None]]) -> Table:
    shown = Table(title=f"{network.nodes} nodes of {network.per_node} ranks, simulated: our time / what the selector of that MPI chooses")
    for name in ("", "bytes", "ours, us", "as"):
        shown.add_column(name, justify="left" if name in ("", "as") else "right")
    for name in ("Open MPI's", "MPICH's"):
        shown.add_column(name, justify="right")

    def print_ratio(ratio: float | None) -> str:
        return "-" if ratio is None else f"{ratio:.2f}"

    for r in results:
        shown.add_row(r.op, print_size(r.bytes), f"{r.ours_us:.1f}", r.candidate, *(print_ratio(r.ratio(s)) for s in SELECTORS))
    for one in means[SELECTORS[0]]:
        shown.add_row(f"[b]{one}[/]", "all", "", "", *(print_ratio(means[s][one]) for s in SELECTORS))
    return shown
