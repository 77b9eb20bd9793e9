# SPDX-License-Identifier: BSD-3-Clause
"""Our schedules on a simulated cluster, beside the algorithms that other MPIs choose.

SimGrid's SMPI runs bench/simulated.cpp with one thread per rank: the builder and executor of the
library over simulated messages. SMPI has selectors that choose its own implementations as Open MPI
and MPICH would. Each selector runs the same calls.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from stretto.cluster.journal import Found, Journal
from stretto.cluster.simulation import OF_SMPI, Network, Simulation

SELECTORS = ("ompi", "mpich")
OPS = ("bcast", "reduce", "allreduce")
PARTS = ("gather", "scatter", "allgather", "alltoall")
# What the library has built in for a call (src/select/across_nodes.cpp).
BUILT_IN = "built-in:1:0"
# Candidates as `CANDIDATE:SEGMENTS:K` of bench/simulated.cpp: first those in one piece, then
# compositions over levels, in one piece and in several.
WHOLE = {
    "bcast": ("binomial:1:0", "knomial:1:4", "knomial:1:16"),
    "reduce": ("binomial:1:0", "knomial:1:4", "knomial:1:16"),
    "allreduce": ("recursive_doubling:1:0", "hierarchy+by=recursive_multiplying:1:0", "hierarchy/rails:1:0"),
}
# For networks with more levels than nodes.
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
    """A candidate as rules and -a write it: `hierarchy/rails+by=ring:4:0` is `hierarchy:rails
    by=ring segments=4`."""
    name, segments, k = candidate.rsplit(":", 2)
    return (
        name.replace("/", ":").replace("+", " ")
        + (f" k={k}" if k != "0" else "")
        + (f" segments={segments}" if segments != "1" else "")
    )


def candidates(network: Network, op: str, size: int) -> tuple[str, ...]:
    if op in PARTS:
        return (BUILT_IN,)
    return (
        BUILT_IN,
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
    built_in: bool = False,
) -> Callable[[], Iterator[Result]]:
    """Starts the simulations of one operation, of what is built in alone or of all candidates. The
    returned function waits for their end. A simulation is one thread, and as many run as the pool
    has threads."""

    def simulate(jobs: Sequence[tuple[int, str]], selector: str) -> dict[tuple[int, str], float]:
        texts = {job: f"{op}:{job[0]}:{job[1]}" for job in jobs}
        missing = [text for text in texts.values() if not journal.answers(selector, text, simulation.seconds)]
        advance(len(texts) - len(missing))
        for text, time in zip(missing, simulation.each_time(missing, selector)):
            journal.keep(selector, text, Found(time, simulation.seconds))
            advance(1)
        return {job: time * 1e6 for job, text in texts.items() if (time := journal.time(selector, text)) is not None}

    theirs = [(size, OF_SMPI) for size in sizes]
    ours = [
        (size, c) for size in sizes for c in ((BUILT_IN,) if built_in else candidates(simulation.network, op, size))
    ]
    times = {s: pool.submit(simulate, theirs if i else ours + theirs, s) for i, s in enumerate(SELECTORS)}

    def results() -> Iterator[Result]:
        found = {s: future.result() for s, future in times.items()}
        for size in sizes:
            tried = {c: time for (of, c), time in found[SELECTORS[0]].items() if of == size and c != OF_SMPI}
            if tried:
                best = min(tried, key=lambda c: tried[c])
                yield Result(op, size, tried[best], best, *(found[s].get((size, OF_SMPI)) for s in SELECTORS))

    return results


def mean(results: list[Result], op: str, selector: str) -> float | None:
    ratios = [r.ratio(selector) for r in results if r.op == op]
    known = [r for r in ratios if r is not None]
    return statistics.geometric_mean(known) if known else None
