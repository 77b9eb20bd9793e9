# SPDX-License-Identifier: BSD-3-Clause
"""What `stretto bench` is asked to measure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from stretto.core.units import sizes_between

OPS = (
    "barrier",
    "bcast",
    "scatter",
    "scatterv",
    "gather",
    "gatherv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
)
V_OPS = ("scatterv", "gatherv", "allgatherv", "alltoallv", "alltoallw")
CHAINS = {"bcast": "8-byte Bcast", "barrier": "Barrier", "allreduce": "8-byte Allreduce"}  # bench/latency.hpp
# Long calls beside the same work on private data (bench/collectives.cpp): that work, and the
# largest ratio that is good.
LONG = {"bcast": ("memcpy by one rank", 1 / 0.9), "allreduce": ("c = a + b by every rank", 1.3)}


class Method(str, Enum):
    imb = "imb"
    warm = "warm"
    used = "used"
    live = "live"
    osu = "osu"


@dataclass(frozen=True)
class Request:
    """What to measure: all that a run of the program depends on, beside the MPI and the number of
    ranks."""

    ops: tuple[str, ...]
    min_bytes: int
    max_bytes: int
    method: str = "imb"
    root_shift: int = 1
    spread: float = 0.0
    repeat: int = 0
    budget_s: float = 0.4
    latency: bool = False
    off: bool = False
    factor: int = 2  # from a size to the next
    with_bound: bool = True
    pool_bytes: int = 0  # of each of a rank's two pools of buffers; 0: the program decides

    def arguments(self) -> list[str]:
        line = [
            "--min",
            str(self.min_bytes),
            "--max",
            str(self.max_bytes),
            "--root-shift",
            str(self.root_shift),
            "--spread",
            str(self.spread),
            "--calls",
            str(self.repeat),
            "--budget",
            str(self.budget_s),
        ]
        line += ["--ops", ",".join(self.ops)] if self.ops else []
        line += ["--method", self.method, "--factor", str(self.factor)]
        line += [] if self.with_bound else ["--no-bound"]
        line += ["--pool", str(self.pool_bytes)] if self.pool_bytes else []
        return line + (["--latency"] if self.latency else [])

    def sizes(self, op: str) -> list[int]:
        return [0] if op == "barrier" else sizes_between(self.min_bytes, self.max_bytes, self.factor)

    def rows(self) -> int:
        return sum(len(self.sizes(op)) for op in self.ops) + self.latency * (1 + len(CHAINS) + len(LONG))


def parse_ops(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(n.strip().lower() for n in text.split(",") if n.strip()))
    if names == ("all",):
        return OPS
    for name in names:
        if name not in OPS:
            raise ValueError(f"--op: unknown operation '{name}': one of {', '.join(OPS)}, or all")
    if not names:
        raise ValueError(f"--op: an operation is missing: one of {', '.join(OPS)}, or all")
    return names


def parse_ranks(text: str) -> tuple[int, ...]:
    numbers = tuple(int(n) for n in text.split(",") if n.strip().isdigit())
    if not numbers or len(numbers) != len(text.split(",")) or min(numbers) < 2:
        raise ValueError(f"-n '{text}': numbers of ranks are 2 or more, for example 2 or 4,8,16")
    return numbers
