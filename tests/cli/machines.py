# SPDX-License-Identifier: BSD-3-Clause
"""Machines that tests make up, as /sys/devices/system shows them."""

from __future__ import annotations

from pathlib import Path

from stretto.core import processors
from stretto.core.processors import Topology


def made_up(folder: Path, sockets: int = 2, numa: int = 1, l3s: int = 2, cores: int = 4, threads: int = 1) -> Topology:
    """A machine of sockets with `numa` nodes each, of `l3s` caches each, of `cores` each. As on real
    machines, second threads have numbers behind all first ones."""
    count = sockets * numa * l3s * cores
    for thread in range(threads):
        for core in range(count):
            place = folder / f"cpu/cpu{core + thread * count}"
            l3 = core // cores
            siblings = [core + t * count for t in range(threads)]
            sharing = [c + t * count for t in range(threads) for c in range(l3 * cores, (l3 + 1) * cores)]
            _write(place / "topology/physical_package_id", core // (count // sockets))
            _write(place / "topology/thread_siblings_list", ",".join(map(str, siblings)))
            _write(place / "cache/index3/level", 3)
            _write(place / "cache/index3/type", "Unified")
            _write(place / "cache/index3/size", "32768K")
            _write(place / "cache/index3/shared_cpu_list", ",".join(map(str, sharing)))
    for node in range(sockets * numa):
        first, size = node * l3s * cores, l3s * cores
        ranges = [f"{first + t * count}-{first + t * count + size - 1}" for t in range(threads)]
        _write(folder / f"node/node{node}/cpulist", ",".join(ranges))
    return processors.read(folder, range(count * threads))


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")
