# SPDX-License-Identifier: BSD-3-Clause
"""This machine: what it is, and how busy it is."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import time
from pathlib import Path
from typing import Any

from stretto.core.console import note


def _first(path: str, pattern: str) -> str | None:
    try:
        match = re.search(pattern, Path(path).read_text(), re.MULTILINE)
    except OSError:
        return None
    return match.group(1).strip() if match else None


def describe() -> dict[str, Any]:
    """What identifies this machine. It goes into every JSON report, so that a figure can be judged."""
    memory = _first("/proc/meminfo", r"MemTotal:\s+(\d+)")
    return {
        "cpu": _first("/proc/cpuinfo", r"^model name\s*:\s*(.*)$") or platform.machine(),
        "cpus_online": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "virtual": " hypervisor" in (_first("/proc/cpuinfo", r"^flags\s*:(.*)$") or ""),
        "numa_nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1,
        "memory_gib": round(int(memory) / 2**20, 1) if memory else None,
        "system": _first("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)') or platform.system(),
        "kernel": platform.release(),
    }


def available_bytes() -> int:
    """Memory that programs can take without others losing theirs."""
    return int(_first("/proc/meminfo", r"MemAvailable:\s+(\d+)") or 0) << 10


def one_line() -> str:
    """The machine in one line."""
    m = describe()
    kind = "virtual " if m["virtual"] else ""
    return f"{m['cpus_usable']} {kind}CPUs of {m['cpu']}, {m['memory_gib']} GiB, {m['system']}"


def ptrace_scope() -> str | None:
    """Yama's rule for reading another process's memory: 0 same user, 1 descendants only, 2 root, 3
    nobody."""
    return _first("/proc/sys/kernel/yama/ptrace_scope", r"(\d)")


def needed_by_libraries(library: Path) -> list[str]:
    """What the dynamic linker must load with a library (DT_NEEDED)."""
    try:
        listing = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True).stdout
    except OSError:
        return []
    return re.findall(r"\(NEEDED\).*\[(.*)\]", listing)


def share_in_use(seconds: float) -> float:
    """The share of this process's processors that programs use while this one sleeps."""
    before = _ticks()
    time.sleep(seconds)
    busy, every = (after - old for after, old in zip(_ticks(), before))
    return busy / every if every else 0.0


def _ticks() -> tuple[int, int]:
    """Ticks of the usable processors: those that were in use, and all."""
    usable, busy, every = os.sched_getaffinity(0), 0, 0
    for number, text in re.findall(r"^cpu(\d+) (.*)$", Path("/proc/stat").read_text(), re.MULTILINE):
        if int(number) in usable:
            user, nice, system, idle, waits, *rest = map(int, text.split()[:8])  # further ones count twice
            busy += user + nice + system + sum(rest)
            every += user + nice + system + idle + waits + sum(rest)
    return busy, every


def warn_if_busy() -> float:
    """The load before a measurement. Prints a note when other programs use the processors."""
    load = os.getloadavg()[0]
    if load > 0.5:
        note(f"load average {load:.1f}: other programs are running, figures may be worth little")
    return load
