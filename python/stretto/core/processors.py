# SPDX-License-Identifier: BSD-3-Clause
"""The processors of this machine, as /sys tells, and in which order ranks take them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SYS = Path("/sys/devices/system")
# What two processors share at the least: each name is the smallest part that has both.
LEVELS = ("core", "l3", "numa", "socket", "machine")


@dataclass(frozen=True)
class Cpu:
    """A hardware thread. Cores and L3 caches are named by their first processor."""

    cpu: int
    core: int
    l3: int
    numa: int
    socket: int


@dataclass(frozen=True)
class Topology:
    cpus: tuple[Cpu, ...]  # those that this process may use
    caches: tuple[dict[str, Any], ...]  # of the first one

    def cores(self) -> list[Cpu]:
        """One hardware thread of each core, neighbours first: within an L3 cache, a NUMA node, a
        socket."""
        first: dict[int, Cpu] = {}
        for cpu in sorted(self.cpus, key=lambda c: c.cpu):
            first.setdefault(cpu.core, cpu)
        return sorted(first.values(), key=lambda c: (c.socket, c.numa, c.l3, c.core))

    def as_json(self) -> dict[str, Any]:
        cores = self.cores()
        return {
            "sockets": len({c.socket for c in cores}),
            "numa_nodes": len({c.numa for c in cores}),
            "l3_domains": len({c.l3 for c in cores}),
            "cores": len(cores),
            "threads_per_core": len(self.cpus) // len(cores),
            "caches": list(self.caches),
            "order": [c.cpu for c in cores],
            "cpus": [vars(c) for c in self.cpus],
        }


def from_json(data: dict[str, Any]) -> Topology:
    return Topology(tuple(Cpu(**cpu) for cpu in data["cpus"]), tuple(data["caches"]))


def numbers(text: str) -> list[int]:
    """The numbers of a list as the kernel writes it: 0-3,8."""
    found = []
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def read(sys: Path = SYS, usable: Iterable[int] | None = None) -> Topology:
    """The processors that this process may use, or the given ones."""
    chosen = sorted(os.sched_getaffinity(0) if usable is None else usable)
    node_of = {cpu: node for node, cpus in _nodes(sys) for cpu in cpus}
    cpus = []
    for cpu in chosen:
        place = sys / f"cpu/cpu{cpu}"
        socket = int(_text(place / "topology/physical_package_id") or 0)
        siblings = numbers(_text(place / "topology/thread_siblings_list") or str(cpu))
        # Without an L3 cache, or where a virtual machine hides it, the socket stands for it.
        l3 = next((c["cpus"][0] for c in _caches(place) if c["level"] == 3), -1 - socket)
        cpus.append(Cpu(cpu, min(siblings), l3, node_of.get(cpu, socket), max(socket, 0)))
    caches = [
        {"level": c["level"], "type": c["type"], "bytes": c["bytes"], "cpus": len(c["cpus"])}
        for c in _caches(sys / f"cpu/cpu{chosen[0]}")
    ]
    return Topology(tuple(cpus), tuple(caches))


def common_level(a: Cpu, b: Cpu) -> str:
    """The smallest part of the machine that has both processors."""
    return next((level for level in LEVELS[:-1] if getattr(a, level) == getattr(b, level)), "machine")


def spread(cores: list[Cpu]) -> list[Cpu]:
    """The cores in another order: each of the first ones in an L3 cache of its own, sockets in
    turn."""
    sockets: dict[int, dict[int, list[Cpu]]] = {}
    for core in cores:
        sockets.setdefault(core.socket, {}).setdefault(core.l3, []).append(core)
    return list(_in_turn([list(_in_turn(list(caches.values()))) for caches in sockets.values()]))


def _in_turn(groups: list[list[Cpu]]) -> Iterator[Cpu]:
    for position in range(max(map(len, groups), default=0)):
        yield from (group[position] for group in groups if position < len(group))


def _nodes(sys: Path) -> Iterator[tuple[int, list[int]]]:
    for folder in sorted(sys.glob("node/node[0-9]*")):
        yield int(folder.name[4:]), numbers(_text(folder / "cpulist") or "")


def _caches(place: Path) -> list[dict[str, Any]]:
    found = []
    for folder in sorted(place.glob("cache/index[0-9]*")):
        level, size = _text(folder / "level"), _text(folder / "size")
        if level and (match := re.fullmatch(r"(\d+)([KM]?)", size or "")):
            found.append(
                {
                    "level": int(level),
                    "type": (_text(folder / "type") or "").lower(),
                    "bytes": int(match[1]) << {"": 0, "K": 10, "M": 20}[match[2]],
                    "cpus": numbers(_text(folder / "shared_cpu_list") or "") or [-1],
                }
            )
    return found


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None
