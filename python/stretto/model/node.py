# SPDX-License-Identifier: BSD-3-Clause
"""Asks stretto-node-model (tools/node), which runs the shared-memory engine on a played machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.core.console import fail, working
from stretto.core.processes import child
from stretto.model.machine import NodeMachine
from stretto.native import build

COLLECTIVES = (
    "barrier",
    "bcast",
    "reduce",
    "allreduce",
    "scan",
    "reduce_scatter_block",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
)
BY_FLAGS = ("barrier", "bcast", "reduce", "allreduce")  # that bare flags have
OURS = "ours"


def is_ours(way: str) -> bool:
    return way == OURS or way.startswith("shm:")


def program(name: str = "stretto-node-model") -> Path:
    with working("building the model of a node"):
        return build.ensure_built("release", [name]) / name


def ask(
    machine: NodeMachine, ops: Sequence[str], ranks: int, sizes: Sequence[int], ways: Sequence[str], by: str = "core"
) -> list[dict[str, Any]]:
    """A row for each operation, size and way. Errors end this command."""
    line = [str(program()), "--machine", machine.words(), "--cores", ",".join(map(str, machine.cores_of(ranks, by)))]
    rows: list[dict[str, Any]] = []
    for op in ops:
        of_op = [way for way in ways if is_ours(way) or op in BY_FLAGS]
        for size in sizes[:1] if op == "barrier" else sizes:
            with working(f"{op}, {size} bytes, {ranks} ranks on {machine.name}"):
                rows += run(
                    [*line, "--op", op, "--bytes", str(size), *(part for way in of_op for part in ("--way", way))]
                )
    return rows


def run(line: Sequence[str]) -> list[dict[str, Any]]:
    with child(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as model:
        said, complained = model.communicate()
    if model.returncode:
        fail(complained.strip() or f"{Path(line[0]).name} ended with status {model.returncode}")
    return [tidy(json.loads(row)) for row in said.splitlines()]


def tidy(row: dict[str, Any]) -> dict[str, Any]:
    """Times to the nanosecond: what is beyond has no meaning."""
    return {key: round(value, 3) if key.endswith("_us") else value for key, value in row.items()}
