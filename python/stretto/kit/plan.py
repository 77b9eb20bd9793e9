# SPDX-License-Identifier: BSD-3-Clause
"""What the kit measures: numbers of ranks, processors, operations and lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stretto.bench.request import OPS, Request
from stretto.core.units import sizes_between
from stretto.core.processors import Cpu, Topology, common_level, spread

# Operations in which some rank has a block for each rank.
OF_BLOCKS = tuple(op for op in OPS if op.startswith(("scatter", "gather", "allgather", "alltoall", "reduce_scatter")))
MOST_BYTES = 32 << 30  # of memory for the buffers of all ranks
COPIES = 8  # of a buffer: two pools of two pieces, and as many for checking results
LEAST_POOL_BYTES = 8 << 20


@dataclass(frozen=True)
class Settings:
    ops: tuple[str, ...] = OPS
    min_bytes: int = 8
    max_bytes: int = 2 << 20
    factor: int = 8
    budget_s: float = 0.15
    method: str = "imb"
    spread: bool = False  # also ranks that are far from each other

    def request(self) -> Request:
        return Request(
            self.ops,
            self.min_bytes,
            self.max_bytes,
            self.method,
            budget_s=self.budget_s,
            factor=self.factor,
            with_bound=False,
        )


QUICK = Settings(max_bytes=32 << 10, factor=64, budget_s=0.03)


@dataclass(frozen=True)
class Job:
    """What one start of an MPI measures."""

    mpi: str  # a tag of Mpi
    placement: str
    cpus: tuple[int, ...]  # of rank 0, 1, ...
    request: Request

    @property
    def ranks(self) -> int:
        return len(self.cpus)

    def rows(self) -> list[tuple[str, int]]:
        """The operations and lengths that it will report."""
        return [(op, size) for op in self.request.ops for size in self.request.sizes(op)]


def ladder(cores: int) -> list[int]:
    """2, 4, 8, ... and all cores."""
    return sorted({*sizes_between(2, cores), cores}) if cores > 1 else []


def placements(topology: Topology, ranks: int, far: bool) -> dict[str, tuple[int, ...]]:
    """Processors by the name of a placement. `close` fills an L3 cache after the other. Two ranks
    are also put as far from each other as each level of the machine allows."""
    cores = topology.cores()
    found = {"close": cores[:ranks]}
    if ranks == 2:
        found |= {f"across-{level}": pair for level, pair in farthest_pairs(cores)}
    elif far:
        found["spread"] = spread(cores)[:ranks]
    distinct: dict[tuple[int, ...], str] = {}
    for name, chosen in found.items():
        distinct.setdefault(tuple(cpu.cpu for cpu in chosen), name)
    return {name: cpus for cpus, name in distinct.items()}


def farthest_pairs(cores: Sequence[Cpu]) -> Iterator[tuple[str, list[Cpu]]]:
    """The first core with the first one of another L3 cache, NUMA node and socket."""
    crossed = {"numa": "l3", "socket": "numa", "machine": "socket"}
    for level, name in crossed.items():
        for core in cores[1:]:
            if common_level(cores[0], core) == level:
                yield name, [cores[0], core]
                break


def most_bytes(op: str, ranks: int, memory: int) -> int:
    """The longest block of an operation for which the ranks' buffers fit into the memory."""
    blocks = ranks if op in OF_BLOCKS else 1
    return min(memory, MOST_BYTES) // (COPIES * ranks * blocks)


def pool_bytes(topology: Topology, cpus: Sequence[int]) -> int:
    """How long a rank's pools must be so that their next piece is in no cache: those of the ranks
    that share an L3 cache are together eight times as long. What the C library tells of that cache
    may be the sum of several."""
    l3_bytes = max((cache["bytes"] for cache in topology.caches if cache["level"] == 3), default=32 << 20)
    caches = [cpu.l3 for cpu in topology.cpus if cpu.cpu in cpus]
    fewest = min(caches.count(l3) for l3 in caches)
    return max(LEAST_POOL_BYTES, 4 * l3_bytes // fewest)


def jobs(mpis: Sequence[str], topology: Topology, settings: Settings, memory: int) -> list[Job]:
    """In the order in which they run: few ranks first, the MPIs in turn. Each job has the
    operations that go up to the same length."""
    found = []
    for ranks in ladder(len(topology.cores())):
        for placement, cpus in placements(topology, ranks, settings.spread).items():
            for mpi in mpis:
                for request in requests(settings, ranks, memory):
                    found.append(Job(mpi, placement, cpus, replace(request, pool_bytes=pool_bytes(topology, cpus))))
    return found


def requests(settings: Settings, ranks: int, memory: int) -> Iterator[Request]:
    whole = settings.request()
    lengths = sizes_between(settings.min_bytes, settings.max_bytes, settings.factor)
    by_length: dict[int, list[str]] = {}
    for op in settings.ops:
        fitting = [s for s in lengths if op == "barrier" or s <= most_bytes(op, ranks, memory)]
        if fitting:
            by_length.setdefault(fitting[-1], []).append(op)
    for longest, ops in by_length.items():
        yield replace(whole, ops=tuple(ops), max_bytes=longest)
