# SPDX-License-Identifier: BSD-3-Clause
"""What else of this machine decides on times, and what of it is bad for a measurement."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stretto.core import machine
from stretto.core.units import format_size
from stretto.core.processors import Topology
from stretto.native import probe

SHM_OF_A_RANK = 16 << 20  # what an MPI may want of /dev/shm
BUSY = 0.5  # load average


def facts() -> dict[str, Any]:
    """Of the machine and its system. No name of a host or a user is in it."""
    library = probe.ask()
    return {
        **machine.describe(),
        "glibc": os.confstr("CS_GNU_LIBC_VERSION"),
        "python": platform.python_version(),
        "cgroup_cpus": library["cpus"]["quota"],
        "refused": {c["name"]: c["error"] for c in library["checks"] if not c["ok"]},
        "ptrace_scope": machine.ptrace_scope(),
        "shm_bytes": _free_shm(),
        "available_bytes": available_memory(),
        "smt": _setting("/sys/devices/system/cpu/smt/active"),
        "governor": _setting("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge_pages": _setting("/sys/kernel/mm/transparent_hugepage/enabled"),
        "numa_balancing": _setting("/proc/sys/kernel/numa_balancing"),
        "load_before": os.getloadavg()[0],
    }


def notes(found: dict[str, Any], topology: Topology) -> Iterator[str]:
    """What a reader of the results must know. Each is a whole sentence."""
    cores = len(topology.cores())
    if found["cgroup_cpus"] is not None and found["cgroup_cpus"] < cores:
        yield f"A cgroup grants {found['cgroup_cpus']:g} processors' time to {cores} cores: ranks will be stopped."
    if found["cpus_usable"] < found["cpus_online"]:
        yield f"Only {found['cpus_usable']} of {found['cpus_online']} processors may be used."
    if found["shm_bytes"] is not None and found["shm_bytes"] < cores * SHM_OF_A_RANK:
        yield (
            f"/dev/shm has {format_size(found['shm_bytes'] >> 20 << 20)} left: MPIs may not start with many ranks, "
            "or take a slower way."
        )
    if "cma" in found["refused"]:
        yield (
            f"Ranks may not read each other's memory ({found['refused']['cma']}; ptrace_scope "
            f"{found['ptrace_scope']}): long messages are copied twice."
        )
    for name in sorted(found["refused"].keys() - {"cma"}):
        yield f"The system refuses what Stretto needs ({name}: {found['refused'][name]}): the MPI serves all calls."
    if found["smt"] == "1" and len(topology.cpus) > cores:
        yield "Cores have several hardware threads: ranks get one of each core, the others stay idle."
    if found["load_before"] > BUSY:
        yield f"The load average was {found['load_before']:.1f} before: other programs were running."
    if found["governor"] not in (None, "performance"):
        yield f"The frequency governor is {found['governor']}: the first calls may be slow."
    if found["virtual"]:
        yield "The machine is virtual: its topology may not be that of the hardware."
    if all(cache["level"] != 3 for cache in topology.caches):
        yield "The system shows no L3 cache: each socket counts as one."


def available_memory() -> int:
    """Bytes that a measurement may take: half of what is free, also by the cgroup's limit."""
    return min(machine.available_bytes(), _cgroup_memory()) // 2


def _cgroup_memory() -> int:
    limits = [Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")]
    try:
        own = [line.rstrip("\n").split(":", 2)[2] for line in open("/proc/self/cgroup") if line.startswith("0:")]
    except OSError:
        own = []
    # The limits of all groups above hold, too.
    for group in own:
        limits += [
            Path("/sys/fs/cgroup", str(p).lstrip("/"), "memory.max") for p in (Path(group), *Path(group).parents)
        ]
    values = [int(text) for path in limits if (text := _setting(str(path)) or "").isdigit()]
    return min(values, default=1 << 62)


def _free_shm() -> int | None:
    try:
        found = os.statvfs("/dev/shm")
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def _setting(path: str) -> str | None:
    """The text of a file of the kernel; of a choice, as `always [madvise] never`, what is chosen."""
    try:
        text = Path(path).read_text().strip()
    except OSError:
        return None
    return text.partition("[")[2].partition("]")[0] or text
