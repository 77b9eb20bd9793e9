# SPDX-License-Identifier: BSD-3-Clause
"""cluster simulate: our schedules on clusters far larger than this machine, beside the algorithms that other MPIs choose.

SimGrid's SMPI runs bench/simulated.cpp, one thread per rank: the builder and executor of the library over simulated messages. SMPI has
selectors that choose its own implementations as Open MPI and MPICH would; each of them runs the same calls.
"""

from __future__ import annotations

import hashlib
import json as json_module
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Annotated, Optional

import typer
from rich.progress import Progress
from rich.table import Table

from stretto import build
from stretto.arguments import checked_ops
from stretto.bench import geomean, parse_sizes, print_size
from stretto.cluster.journal import Found, Journal
from stretto.console import err, fail, note, out, write_json
from stretto.outputs import check_outputs

SELECTORS = ("ompi", "mpich")
OPS = ("bcast", "reduce", "allreduce")
# What may be best, as `CANDIDATE:SEGMENTS:K` of bench/simulated.cpp: compositions over the levels, in one piece and in several; what goes in one piece only.
WHOLE = {
    "bcast": ("binomial:1:0", "knomial:1:4", "knomial:1:16"),
    "reduce": ("binomial:1:0", "knomial:1:4", "knomial:1:16"),
    "allreduce": ("recursive_doubling:1:0", "hierarchy+by=recursive_multiplying:1:0", "hierarchy/rails:1:0"),
}
MPI = "mpi:1:0"
# Where there are other levels than nodes.
NODES = {
    "bcast": ("hierarchy/nodes:1:0",),
    "reduce": ("hierarchy/nodes:1:0",),
    "allreduce": ("hierarchy/nodes:1:0", "hierarchy/nodes+by=recursive_multiplying:1:0"),
}
SEGMENTED = ("hierarchy:4:0", "hierarchy:16:0", "hierarchy:64:0")
LINES = ("hierarchy+by=chain:16:0", "hierarchy+by=chain:64:0")
LONG = {
    "bcast": (*SEGMENTED, *LINES),
    "reduce": (*SEGMENTED, *LINES),
    "allreduce": (*SEGMENTED, "hierarchy/rails+by=ring:1:0"),
}
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
    eager_bytes: int = 0  # shorter messages travel whether a receive is posted or not

    @property
    def ranks(self) -> int:
        return self.nodes * self.per_node

    @property
    def levels(self) -> str:
        return f"node:{self.per_node}" + (f",leaf:{self.per_leaf}" if self.per_leaf else "")

    def platform(self) -> str:
        tree = (
            f' topology="FAT_TREE" topo_parameters="2;{self.per_leaf},{self.nodes // self.per_leaf};1,{self.spines};1,1"'
            if self.per_leaf
            else ""
        )
        return (
            '<?xml version=\'1.0\'?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
            f'  <cluster id="cluster" prefix="n" radical="0-{self.nodes - 1}" suffix="" speed="1Gf" bw="{self.link}GBps" lat="{self.link_us}us" '
            f'loopback_bw="{self.memory}GBps" loopback_lat="{self.memory_us}us"{tree}/>\n</platform>\n'
        )


PRESETS = {
    "switches": Network(64, 36, 16),  # the example of Kurnosov 2023
    "wide": Network(10, 128, 0),
}


class Simulation:
    """smpirun on one network; `seconds` bounds the simulation of one call."""

    def __init__(self, network: Network, folder: Path, seconds: float) -> None:
        self.network, self.folder, self.seconds = network, folder, seconds
        (folder / "platform.xml").write_text(network.platform())
        (folder / "hosts").write_text("".join(f"n{i}:{network.per_node}\n" for i in range(network.nodes)))
        self.program = compile_simulated(folder)
        self.running: set[subprocess.Popen[bytes]] = set()
        self.stopped = False

    def key(self) -> str:
        """All that its times depend on, as a few digits."""
        folder = build.root() / "bench"
        texts = [
            file.read_bytes()
            for file in (
                folder / "simulated.cpp",
                *sorted(folder.glob("*.hpp")),
                core_library(),
                self.folder / "platform.xml",
            )
        ]
        words = [word for word in self.line([], "") if word != str(self.program)]
        version = build.run_tool(["smpirun", "--version"])
        return hashlib.sha256(b"".join(texts) + json_module.dumps([*words, version]).encode()).hexdigest()[:16]

    def stop(self) -> None:
        """From another thread: ends what is being simulated, and each_time with it."""
        self.stopped = True
        for process in list(self.running):
            kill_session(process)

    def times(self, jobs: Sequence[str], selector: str = "ompi") -> list[float] | None:
        """Simulated seconds of several jobs, one after the other; None: one took too long."""
        found = []
        with closing(self.each_time(jobs, selector)) as times:
            for time in times:
                if time is None:
                    return None
                found.append(time)
        return found

    def each_time(self, jobs: Sequence[str], selector: str = "ompi") -> Generator[float | None, None, None]:
        """The same as they come, None for each that took too long, or is SMPI's own and failed (its Bcast of 64 KiB as MPICH's among 2,304 ranks ends in
        a deadlock). Jobs share a process, because SMPI's first call takes minutes to find out who shares a node; after such a one the others begin in a new one."""
        done = 0
        while done < len(jobs) and not self.stopped:
            with tempfile.TemporaryFile() as said, self.simulating(self.line(jobs[done:], selector), said) as process:
                try:
                    for row in rows_of(process, self.seconds):
                        done += 1
                        yield float(json_module.loads(row)["time"])
                    if (process.wait() != 0 or done < len(jobs)) and not self.stopped:
                        said.seek(0)
                        words = said.read().decode(errors="replace").strip()[-400:]
                        if done == len(jobs) or not jobs[done].endswith(MPI):
                            fail(f"smpirun ended with {process.returncode}: {words}")
                        note(f"SMPI's own {jobs[done].removesuffix(f':{MPI}')} as {selector} would do it: {words}")
                except TooLong:
                    pass
            if done < len(jobs) and not self.stopped:
                done += 1
                yield None

    @contextmanager
    def simulating(self, line: list[str], said: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(line, cwd=self.folder, stdout=subprocess.PIPE, stderr=said, start_new_session=True)
        self.running.add(process)
        try:
            if self.stopped:  # before stop() could see it
                kill_session(process)
            yield process
        finally:
            kill_session(process)
            process.communicate()
            self.running.remove(process)

    def line(self, jobs: Sequence[str], selector: str) -> list[str]:
        network = self.network
        costs = (
            [f"--cfg=smpi/{side}:0:{network.overhead_us * 1e-6}:0" for side in ("os", "ois", "or")]
            if network.overhead_us
            else []
        )
        costs += [f"--cfg=smpi/async-small-thresh:{network.eager_bytes}"] if network.eager_bytes else []
        return [
            "smpirun",
            "-np",
            str(network.ranks),
            "-platform",
            "platform.xml",
            "-hostfile",
            "hosts",
            "--cfg=smpi/privatization:no",
            "--cfg=smpi/simulate-computation:no",
            f"--cfg=smpi/coll-selector:{selector}",
            "--log=root.thres:error",
            *costs,
            str(self.program),
            network.levels,
            *jobs,
        ]


class TooLong(Exception):
    pass


def rows_of(process: subprocess.Popen[bytes], seconds: float) -> Iterator[bytes]:
    """Its rows as they come, until it ends; TooLong when none has come for so many seconds."""
    assert process.stdout
    text = b""
    while True:
        if not select.select([process.stdout], [], [], seconds)[0]:
            raise TooLong
        piece = os.read(process.stdout.fileno(), 1 << 16)
        if not piece:
            return
        *rows, text = (text + piece).split(b"\n")
        yield from (row for row in rows if row.startswith(b"{"))


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """smpirun is a script: the simulation is its child."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def core_library() -> Path:
    return build.ensure_built("release", ["stretto_core"]) / "libstretto_core.a"


def compile_simulated(folder: Path) -> Path:
    if not shutil.which("smpicxx") or not shutil.which("smpirun"):
        fail("simulated clusters need SimGrid: apt-get install libsimgrid-dev simgrid")
    program = folder / "simulated"
    build.run_tool(
        [
            "smpicxx",
            "-O2",
            "-std=c++20",
            "-I",
            str(build.root() / "src"),
            str(build.root() / "bench/simulated.cpp"),
            str(core_library()),
            "-o",
            str(program),
        ],
        cwd=folder,
    )
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


def way_of(candidate: str) -> str:
    """`hierarchy/rails+by=ring:4:0` as rules and -a have it."""
    name, segments, k = candidate.rsplit(":", 2)
    return (
        name.replace("/", ":").replace("+", " ")
        + (f" k={k}" if k != "0" else "")
        + (f" segments={segments}" if segments != "1" else "")
    )


def candidates(network: Network, op: str, size: int) -> tuple[str, ...]:
    return (
        "hierarchy:1:0",
        *(NODES[op] if network.per_leaf else ()),
        *WHOLE[op],
        *(LONG[op] if size >= LONG_FROM_BYTES else ()),
    )


def measure(
    simulation: Simulation,
    journal: Journal,
    op: str,
    sizes: Sequence[int],
    pool: Executor,
    advance: Callable[[int], None],
) -> Callable[[], Iterator[Result]]:
    """Begins with one operation; what it returns waits for the end. Simulations are single threads, so as many run as the pool has."""

    def simulate(jobs: Sequence[tuple[int, str]], selector: str) -> dict[tuple[int, str], float]:
        texts = {job: f"{op}:{job[0]}:{job[1]}" for job in jobs}
        missing = [text for text in texts.values() if not journal.answers(selector, text, simulation.seconds)]
        advance(len(texts) - len(missing))
        for text, time in zip(missing, simulation.each_time(missing, selector)):
            journal.keep(selector, text, Found(time, simulation.seconds))
            advance(1)
        return {job: time * 1e6 for job, text in texts.items() if (time := journal.time(selector, text)) is not None}

    theirs = [(size, MPI) for size in sizes]
    ours = [(size, c) for size in sizes for c in candidates(simulation.network, op, size)]
    times = {s: pool.submit(simulate, theirs if i else ours + theirs, s) for i, s in enumerate(SELECTORS)}

    def results() -> Iterator[Result]:
        found = {s: future.result() for s, future in times.items()}
        for size in sizes:
            tried = {c: time for (of, c), time in found[SELECTORS[0]].items() if of == size and c != MPI}
            if tried:
                best = min(tried, key=lambda c: tried[c])
                yield Result(op, size, tried[best], best, *(found[s].get((size, MPI)) for s in SELECTORS))

    return results


def command(
    cluster: Annotated[
        str,
        typer.Argument(
            metavar="CLUSTER",
            help="[b]switches[/]: 64 nodes of 36 ranks, 16 nodes to a leaf switch; [b]wide[/]: 10 nodes "
            "of 128 ranks; or NODESxRANKS\\[xNODES-PER-LEAF].",
        ),
    ] = "switches",
    op: Annotated[
        str, typer.Option("--op", metavar="LIST", help="Of bcast, reduce, allreduce, with commas.")
    ] = ",".join(OPS),
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="A:B", help="Bytes of the vector: the powers of four from A to B.")
    ] = "4:4M",
    seconds: Annotated[
        float,
        typer.Option(
            "--patience",
            metavar="S",
            min=1,
            help="Seconds for the simulation of one call; what takes longer is left out.",
        ),
    ] = 120,
    kept: Annotated[
        Optional[Path],
        typer.Option(
            "--journal",
            metavar="FILE",
            help="Keep every simulated time in FILE as it comes, and simulate only what is "
            "not in it: an interrupted run goes on.",
            dir_okay=False,
        ),
    ] = None,
    json: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="Write the results as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
) -> None:
    """Simulate a large cluster (SimGrid) and compare with what Open MPI and MPICH would choose there."""
    network = network_of(cluster)
    ops = checked_ops([op], OPS)
    try:
        least, most = parse_sizes(sizes)
    except ValueError as error:
        fail(f"--sizes: {error}")
    check_outputs(json, kept)
    chosen = [least * 4**i for i in range(32) if least * 4**i <= most]
    calls = sum(len(candidates(network, o, size)) + len(SELECTORS) for o in ops for size in chosen)
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
                measure(simulation, journal, one, chosen, pool, lambda calls: progress.advance(task, calls))
                for one in ops
            ]
            results = [result for wait in waiting for result in wait()]
        except BaseException:  # one has failed, or somebody has had enough: nobody waits for the others
            simulation.stop()
            raise
    means = {s: {o: mean(results, o, s) for o in ops} for s in SELECTORS}
    write_json(
        json,
        "cluster.simulate",
        {"network": asdict(network), "ranks": network.ranks, "results": [asdict(r) for r in results], "geomean": means},
    )
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
    shown = Table(
        title=f"{network.nodes} nodes of {network.per_node} ranks, simulated: our time / what the selector of that MPI chooses"
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
            print_size(r.bytes),
            f"{r.ours_us:.1f}",
            way_of(r.candidate),
            *(print_ratio(r.ratio(s)) for s in SELECTORS),
        )
    for one in means[SELECTORS[0]]:
        shown.add_row(f"[b]{one}[/]", "all", "", "", *(print_ratio(means[s][one]) for s in SELECTORS))
    return shown
