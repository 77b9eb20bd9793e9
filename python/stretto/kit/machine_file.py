# SPDX-License-Identifier: BSD-3-Clause
"""A machine of the model of a node (`stretto model node --machine`), made from a measurement."""

from __future__ import annotations

import copy
from typing import Any

from stretto.core import processors
from stretto.core.processors import Topology
from stretto.model import machine as machines
from stretto.model.machine import NodeMachine

# The model's times of a line by the levels at which they are measured. Where the machine lacks a
# level, the next smaller one stands for it.
LINES = {"same_l3": "l3", "same_numa": "numa", "same_socket": "socket", "other_socket": "machine"}


def document(data: dict[str, Any], like: NodeMachine) -> dict[str, Any]:
    """The measured shape, caches and times between cores. All else is taken from another machine."""
    here = processors.from_json(data["topology"])
    made = copy.deepcopy(like.document)
    measured = {name: times["exchange_ns"] for name, times in data["latencies"]["levels"].items()}
    found: dict[str, float] = {}
    for name, level in LINES.items():
        found[name] = measured.get(level) or next(reversed(found.values()), like[name])
    made |= {
        "name": "measured",
        "about": f"{data['machine']['cpu']}, measured by the kit; what it does not measure is of {like.name}",
        "vendor": "amd" if "AMD" in data["machine"]["cpu"] else "intel",
        "shape": shape(here),
        "caches": _caches(here, like),
    }
    made["line_ns"] |= found
    made["sources"] = {
        "measured": [name for name, level in LINES.items() if level in measured],
        "assumed": ["core", "core_ns", "gap_ns", "memory", "memory_far", "queue_ns"],
    }
    return made


def shape(here: Topology) -> dict[str, int]:
    """How many of each part the next larger one has; the most, if they differ."""
    cores = here.cores()

    def most(part: str, whole: str) -> int:
        members: dict[int, set[int]] = {}
        for cpu in cores:
            members.setdefault(getattr(cpu, whole), set()).add(getattr(cpu, part))
        return max(map(len, members.values()))

    # A cache that spans several NUMA nodes counts as one of each.
    return {
        "sockets": len({cpu.socket for cpu in cores}),
        "numa_per_socket": most("numa", "socket"),
        "l3_per_numa": most("l3", "numa"),
        "cores_per_l3": max(1, -(-len(cores) // len({(cpu.numa, cpu.l3) for cpu in cores}))),
    }


def _caches(here: Topology, like: NodeMachine) -> dict[str, int]:
    size = {cache["level"]: cache["bytes"] for cache in here.caches}
    return {
        "l2_kib": max(1, size[2] >> 10) if 2 in size else int(like["l2_kib"]),
        "l3_mib": max(1, size[3] >> 20) if 3 in size else int(like["l3_mib"]),
    }


def nearest(data: dict[str, Any]) -> str:
    """The shipped machine that gives what is not measured."""
    return "epyc-2x64" if "AMD" in data["machine"]["cpu"] else "xeon-wide-l3"


def machine(data: dict[str, Any], like: str | None = None) -> NodeMachine:
    return machines.from_document(document(data, machines.load(like or nearest(data))), "the measurement")
