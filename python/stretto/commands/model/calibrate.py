# SPDX-License-Identifier: BSD-3-Clause
"""model node --calibrate: the constants of a machine's file beside those of the machine at hand, and
calls of two ranks beside the model's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from stretto.core import machine as this_machine
from stretto.core import processors
from stretto.core.console import fail, out, working
from stretto.core.processes import child
from stretto.core.processors import Cpu
from stretto.core.reports import write_json
from stretto.core.units import format_size
from stretto.model import machine as machines
from stretto.model import node
from stretto.model.machine import NodeMachine

# By what two processors share at the least.
KINDS = {"l3": "same_l3", "numa": "same_numa", "socket": "same_socket", "machine": "other_socket"}


def command(name: str | None, json_file: Path | None) -> None:
    pairs = pairs_of(processors.read().cpus)
    if not pairs:
        fail("--calibrate: two processors are needed")
    this_machine.warn_if_busy()
    own = this_machine.describe()["cpu"]
    played = machines.load(name or ("epyc-2x64" if "AMD" in own else "xeon-wide-l3"))
    measured = {kind: measure(pair) for kind, pair in pairs.items()}
    nearest = next(iter(pairs))
    adjusted = with_lines(played, {kind: each["exchange_ns"] for kind, each in measured.items()})
    calls = compared(adjusted, nearest, measured[nearest]["calls"])
    report = {
        "machine": played.document,
        "processor": own,
        "processors": pairs,
        "measured": {kind: {key: each[key] for key in ("exchange_ns", "flag_ns")} for kind, each in measured.items()},
        "calls": calls,
        "worst_ratio": max(max(each["ratio"], 1 / each["ratio"]) for each in calls),
    }
    write_json(json_file, "model.node.calibrate", report)
    if json_file and str(json_file) == "-":
        return
    out.print(f"this machine: {own}; the file: {played.name}", markup=False, style="dim")
    out.print(constants_table(played, report["measured"], pairs))
    out.print(calls_table(calls, nearest))


def pairs_of(cpus: Sequence[Cpu]) -> dict[str, list[int]]:
    """For each kind of distance, the first processor and the first one so far from it. The nearest
    kind comes first."""
    found: dict[str, list[int]] = {}
    for other in cpus[1:]:
        level = processors.common_level(cpus[0], other)
        if level != "core":
            found.setdefault(KINDS[level], [cpus[0].cpu, other.cpu])
    return {kind: found[kind] for kind in KINDS.values() if kind in found}


# ---- measured and modelled -----------------------------------------------------------------------


def measure(pair: list[int]) -> dict[str, Any]:
    line = [str(node.program("stretto-node-bench")), *map(str, pair)]
    with (
        working(f"measuring between processors {pair[0]} and {pair[1]}"),
        child(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as bench,
    ):
        said, complained = bench.communicate()
    if bench.returncode:
        fail(complained.strip() or f"stretto-node-bench ended with status {bench.returncode}")
    return json.loads(said)


def with_lines(played: NodeMachine, lines: dict[str, float]) -> NodeMachine:
    """The machine with these latencies."""
    return replace(played, values={**played.values, **lines})


def core_at(played: NodeMachine, kind: str) -> int:
    """The first core so far from core 0. A nearer one, if the machine has none."""
    l3 = int(played["cores_per_l3"])
    numa = l3 * int(played["l3_per_numa"])
    socket = numa * int(played["numa_per_socket"])
    core = {"same_l3": 1, "same_numa": l3, "same_socket": numa, "other_socket": socket}[kind]
    return core if core < played.cores else 1


def compared(played: NodeMachine, kind: str, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each call as measured and as modelled, both ranks in a loop."""
    line = [str(node.program()), "--machine", played.words(), "--cores", f"0,{core_at(played, kind)}"]
    rows = []
    for call in calls:
        (row,) = node.run([*line, "--op", call["op"], "--bytes", str(call["bytes"])])
        rows.append(
            {
                "op": call["op"],
                "bytes": call["bytes"],
                "measured_us": call["loop_us"],
                "modelled_us": row["loop_us"],
                "ratio": row["loop_us"] / call["loop_us"],
            }
        )
    return rows


# ---- tables --------------------------------------------------------------------------------------


def constants_table(played: NodeMachine, measured: dict[str, Any], pairs: dict[str, list[int]]) -> Table:
    table = Table(title="one line from core to core, ns", title_justify="left", box=None, pad_edge=False)
    table.add_column("where")
    for name in ("file", "measured", "a flag, measured", "processors"):
        table.add_column(name, justify="right")
    for kind in KINDS.values():
        mine = measured.get(kind)
        cells = (f"{mine['exchange_ns']:.1f}", f"{mine['flag_ns']:.1f}") if mine else ("-", "-")
        table.add_row(kind.replace("_", " "), f"{played[kind]:.1f}", *cells, ", ".join(map(str, pairs.get(kind, []))))
    return table


def calls_table(calls: list[dict[str, Any]], kind: str) -> Table:
    title = f"two ranks, {kind.replace('_', ' ')}, in a loop; the model with the measured lines"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("op")
    for name in ("bytes", "measured, us", "modelled, us", "ratio"):
        table.add_column(name, justify="right")
    for each in calls:
        table.add_row(
            each["op"],
            "-" if each["op"] == "barrier" else format_size(each["bytes"]),
            f"{each['measured_us']:.3f}",
            f"{each['modelled_us']:.3f}",
            f"{each['ratio']:.2f}",
        )
    return table
