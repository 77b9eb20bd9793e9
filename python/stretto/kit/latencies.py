# SPDX-License-Identifier: BSD-3-Clause
"""How long a cache line takes between processors, measured by bench/core_to_core.cpp."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from stretto.core.processes import child
from stretto.core.processors import LEVELS, Cpu, Topology, common_level
from stretto.native import build

MOST_PAIRS = 5000  # up to some 100 cores all pairs are measured
OF_A_LEVEL = 600  # pairs, if not all

Pair = tuple[Cpu, Cpu]


def pairs_of(topology: Topology, most: int = MOST_PAIRS, of_a_level: int = OF_A_LEVEL) -> tuple[list[Pair], bool]:
    """Pairs to measure, and whether these are all pairs of cores. Where there are too many, each
    level of the machine has some, always the same. Threads of one core are a level, too."""
    cores = topology.cores()
    by_level: dict[str, list[Pair]] = {level: [] for level in LEVELS}
    for a, b in combinations(cores, 2):
        by_level[common_level(a, b)].append((a, b))
    complete = len(cores) * (len(cores) - 1) // 2 <= most
    if not complete:
        chooser = random.Random(1)
        for level, found in by_level.items():
            by_level[level] = chooser.sample(found, min(len(found), of_a_level))
    threads = {core.core: core for core in cores}
    siblings = [(threads[cpu.core], cpu) for cpu in topology.cpus if cpu != threads[cpu.core]]
    by_level["core"] = siblings[:of_a_level]
    return [pair for level in LEVELS for pair in by_level[level]], complete


def measure(pairs: Sequence[Pair], on_pair: Callable[[], None]) -> list[dict[str, Any]]:
    """One row a pair: `a`, `b`, `level`, `flag_ns` and `exchange_ns`. A pair whose processor may not be
    used has no row."""
    program = build.ensure_built("release", ["stretto-core-to-core"]) / "stretto-core-to-core"
    rows = []
    with child([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for a, b in pairs:
            # One at a time: it begins the next one when we have read the last.
            process.stdin.write(f"{a.cpu} {b.cpu}\n")
            process.stdin.flush()
            row = json.loads(process.stdout.readline())
            if row["flag_ns"] is not None:
                rows.append({**row, "level": common_level(a, b)})
            on_pair()
        process.stdin.close()
    return rows


def by_level(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """The times of each level of the machine, over its pairs."""
    found = {}
    for level in LEVELS:
        if chosen := [row for row in rows if row["level"] == level]:
            found[level] = {"pairs": len(chosen)}
            for name in ("flag", "exchange"):
                times = [row[f"{name}_ns"] for row in chosen]
                found[level][f"{name}_ns"] = statistics.median(times)
                found[level][f"{name}_ns_least"], found[level][f"{name}_ns_most"] = min(times), max(times)
    return found
