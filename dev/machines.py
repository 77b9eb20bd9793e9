#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the machines of `stretto model node` (python/stretto/model/machines) from measured matrices.

    dev/machines.py FOLDER

FOLDER has matrices of latencies between cores, as core-to-core-latency writes them: one row a
processor, nanoseconds one way, below the diagonal. Those used here are in its repository, under
results/ (https://github.com/nviennot/core-to-core-latency, MIT licence). What no matrix says is
assumed, and each file names it.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TO = Path(__file__).resolve().parents[1] / "python/stretto/model/machines"


@dataclass(frozen=True)
class Measured:
    """A matrix, and where its processors are. Second hardware threads come last and are left out."""

    file: str
    sockets: int
    numa_per_socket: int
    l3_per_numa: int
    cores_per_l3: int

    def place(self, core: int) -> tuple[int, int, int]:
        l3 = core // self.cores_per_l3
        numa = l3 // self.l3_per_numa
        return l3, numa, numa // self.numa_per_socket

    def cores(self) -> int:
        return self.sockets * self.numa_per_socket * self.l3_per_numa * self.cores_per_l3

    def medians(self, folder: Path) -> dict[str, float]:
        """The median latency between cores whose nearest common domain is this one. Within a
        socket the first one counts: the measured line has its home there, and cores of another
        socket ask that home before they get it from each other."""
        with open(folder / self.file, newline="") as text:
            rows = [[float(cell) if cell else 0.0 for cell in row] for row in csv.reader(text)]
        found: dict[str, list[float]] = {}
        for a in range(self.cores()):
            for b in range(a):
                alike = [x == y for x, y in zip(self.place(a), self.place(b))]
                if alike[2] and self.place(a)[2] != 0:
                    continue
                kind = ("same_l3", "same_numa", "same_socket")[alike.index(True)] if any(alike) else "other_socket"
                found.setdefault(kind, []).append(rows[a][b])
        return {kind: round(statistics.median(values), 1) for kind, values in found.items()}


MILAN = Measured("AMD_EPYC_7R13_48_Core_Processor.csv", 2, 3, 2, 8)
CASCADE_LAKE = Measured("Dual_Intel_R__Xeon_Gold_6242___2_8GHz.csv", 2, 1, 1, 16)
ICE_LAKE = Measured("Intel_R__Xeon_R__Platinum_8375C_CPU___2_90GHz.csv", 2, 1, 1, 32)
KUNPENG = Measured("HiSilicon_Kunpeng_920_6426___2_6GHz.csv", 1, 2, 1, 32)

CORE_NS = {"hit": 1, "own_access": 0.35, "look_again": 2, "pause": 20}
MISSES = {"misses_under_way": 8, "misses_of_copy": 12}
MEMORY = {"memory": 100, "memory_far": 190}
# Chiplets have one narrow way out for each L3. A mesh has many.
CHIPLETS = {
    "queue_ns": {"further_reader_l3": 5, "further_reader": 15, "further_owner": 4},
    "gap_ns": {"gap_into_l3": 1.4, "gap_out_of_l3": 2.6, "gap_between_sockets": 0.9},
}
MESH = {
    "queue_ns": {"further_reader_l3": 8, "further_reader": 15, "further_owner": 4},
    "gap_ns": {"gap_into_l3": 0.2, "gap_out_of_l3": 0.2, "gap_between_sockets": 0.9},
}


def shape(sockets: int, numa_per_socket: int, l3_per_numa: int, cores_per_l3: int) -> dict[str, int]:
    return {
        "sockets": sockets,
        "numa_per_socket": numa_per_socket,
        "l3_per_numa": l3_per_numa,
        "cores_per_l3": cores_per_l3,
    }


MACHINES: dict[str, dict[str, Any]] = {
    "epyc-2x64": {
        "about": "two sockets of 64 cores, an L3 cache for each 8 cores, four NUMA nodes a socket",
        "matrix": MILAN,
        "vendor": "amd",
        "shape": shape(2, 4, 2, 8),
        "caches": {"l2_kib": 512, "l3_mib": 32},
        **CHIPLETS,
    },
    "epyc-2x96": {
        "about": "two sockets of 96 cores, an L3 cache for each 8 cores, four NUMA nodes a socket",
        "matrix": MILAN,
        "vendor": "amd",
        "shape": shape(2, 4, 3, 8),
        "caches": {"l2_kib": 1024, "l3_mib": 32},
        **CHIPLETS,
    },
    "xeon-2x16": {
        "about": "two sockets of 16 cores, one L3 cache each",
        "matrix": CASCADE_LAKE,
        "vendor": "intel",
        "shape": shape(2, 1, 1, 16),
        "caches": {"l2_kib": 1024, "l3_mib": 22},
        **MESH,
    },
    "xeon-wide-l3": {
        "about": "two sockets of 64 cores, one L3 cache each, latencies of one with 32 cores",
        "matrix": ICE_LAKE,
        "vendor": "intel",
        "shape": shape(2, 1, 1, 64),
        "caches": {"l2_kib": 1280, "l3_mib": 108},
        **MESH,
    },
    "arm-2x64": {
        "about": "two sockets of 64 cores, two NUMA nodes each with an L3 cache for 32 cores",
        "matrix": KUNPENG,
        "vendor": "arm",
        "shape": shape(2, 2, 1, 32),
        "caches": {"l2_kib": 512, "l3_mib": 32},
        "assumed_ns": {"other_socket": 160},
        **MESH,
    },
}


def machine(name: str, folder: Path) -> dict[str, Any]:
    given = MACHINES[name]
    matrix: Measured = given["matrix"]
    measured = matrix.medians(folder)
    assumed = given.get("assumed_ns", {})
    line = {**measured, **assumed}
    # Where a NUMA node has one L3, or a socket one NUMA node, no pair of cores is of this kind.
    line.setdefault("same_numa", line["same_l3"])
    line.setdefault("same_socket", line["same_numa"])
    order = ("same_l3", "same_numa", "same_socket", "other_socket")
    return {
        "schema": "stretto.machine/1",
        "name": name,
        "about": given["about"],
        "vendor": given["vendor"],
        "shape": given["shape"],
        "line_ns": {**{kind: line[kind] for kind in order}, **MEMORY},
        "queue_ns": given["queue_ns"],
        "gap_ns": given["gap_ns"],
        "core_ns": CORE_NS,
        "core": MISSES,
        "caches": given["caches"],
        "sources": {
            "measured": sorted(measured, key=order.index),
            "matrix": f"core-to-core-latency (MIT licence), results/{matrix.file}",
            "assumed": sorted({*assumed, *MEMORY, "queue_ns", "gap_ns", "core_ns", "core"}),
        },
    }


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name in MACHINES:
        text = json.dumps(machine(name, Path(sys.argv[1])), indent=2) + "\n"
        (TO / f"{name}.json").write_text(text)


if __name__ == "__main__":
    main()
