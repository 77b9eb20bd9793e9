# SPDX-License-Identifier: BSD-3-Clause
"""model node: the command, its machines, and what bare flags cost by arithmetic."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reports import Tool, report
from stretto.model import machine as machines

Inside = Callable[..., "subprocess.CompletedProcess[str]"]


def rows(stretto: Tool, *arguments: str) -> list[dict[str, Any]]:
    return report(stretto, "model", "node", *arguments)["results"]


def test_every_shipped_machine_is_sound() -> None:
    assert {"epyc-2x64", "xeon-2x16", "xeon-wide-l3", "arm-2x64"} <= set(machines.names())
    for name in machines.names():
        machine = machines.load(name)
        near = [machine[kind] for kind in ("same_l3", "same_socket", "other_socket")]
        assert machine.name == name and near == sorted(near)
        assert machine.document["sources"]["matrix"].startswith("core-to-core-latency (MIT licence)")


def test_ranks_are_dealt_to_domains() -> None:
    machine = machines.load("epyc-2x64")
    assert machine.cores_of(4, "core") == [0, 1, 2, 3]
    assert machine.cores_of(4, "l3") == [0, 8, 16, 24]
    assert machine.cores_of(4, "numa") == [0, 16, 32, 48]
    assert machine.cores_of(4, "socket") == [0, 64, 1, 65]


@pytest.mark.parametrize("ranks", [2, 3, 16])
def test_a_flat_barrier_moves_a_line_up_and_down_for_each_rank(stretto: Tool, ranks: int) -> None:
    (row,) = rows(stretto, "--op", "barrier", "-n", str(ranks), "--way", "flat")
    assert row["line_transfers"] == 2 * (ranks - 1) and row["most_readers"] == ranks - 1
    assert row["crowded_lines"] == 0 and row["way"] == "flags:flat"
    assert sum(map(sum, row["between"])) == row["line_transfers"]


def test_only_leaders_cross_sockets(stretto: Tool) -> None:
    line = ("-m", "xeon-2x16", "-n", "8", "--map", "socket", "--op", "allreduce")
    flat, tiers = rows(stretto, *line, "--way", "flat", "--way", "socket")
    assert flat["socket_transfers"] > tiers["socket_transfers"] == 2
    assert flat["l3_transfers"] + flat["socket_transfers"] == flat["line_transfers"]


def test_table_heat_map_and_picture(stretto: Tool, tmp_path: Path) -> None:
    picture = tmp_path / "lines.png"
    shown = stretto("model", "node", "-n", "16", "--op", "bcast", "--sizes", "8,4K", "--plot", picture)
    assert shown.returncode == 0, shown.stderr
    assert "shm:board" in shown.stdout and "4K" in shown.stdout
    assert "L3 domain (row" in shown.stdout and "\n0.1 " in shown.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--machine", "pdp-11"], "No such file or directory: a file is expected, or one of arm-2x64, epyc-2x64"),
        (["-n", "129"], "--ranks 129: epyc-2x64 has 128 cores"),
        (["-n", "1"], "--ranks: '1': 2 or more"),
        (["--op", "telepathy"], "--op: telepathy: one of barrier, bcast"),
        (["--map", "leaf"], "--map: leaf: one of core, l3, numa, socket"),
        (["--op", "reduce", "--sizes", "12"], "--sizes 12: reduce adds doubles, of 8 bytes each"),
    ],
)
def test_errors(inside: Inside, arguments: list[str], says: str) -> None:
    done = inside("model", "node", *arguments)
    assert done.returncode == 2 and says in done.stderr.replace("\n", " ")


def test_an_algorithm_by_name(stretto: Tool) -> None:
    ways = ("--way", "ours", "--way", "shm:slices")
    assert [row["way"] for row in rows(stretto, "-n", "4", "--op", "allreduce", *ways)] == ["shm:flat", "shm:slices"]
    done = stretto("model", "node", "-n", "4", "--op", "bcast", "--way", "shm:slices")
    assert done.returncode == 2
    assert "bcast: shm:slices: an algorithm over shared memory was expected: shm:board or" in done.stderr


def test_a_shape_that_there_is_not(stretto: Tool) -> None:
    done = stretto("model", "node", "-n", "4", "--op", "barrier", "--way", "l4")
    assert done.returncode == 2 and "no shape of bare flags: l4" in done.stderr


def changed(**parts: Any) -> dict[str, Any]:
    return {**machines.load("epyc-2x64").document, **parts}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ('{"schema": ', "1:12: Expecting value"),
        (json.dumps({"schema": "other/1"}), '"schema": "stretto.machine/1" expected'),
        (json.dumps(changed(core={"misses_under_way": 8})), "core has misses_under_way, misses_of_copy"),
        (json.dumps(changed(caches={"l2_kib": 512, "l3_mib": 0.5})), "caches.l3_mib: a whole number from 1 on"),
        (json.dumps(changed(shape=dict.fromkeys(machines.SHAPE, 5))), "625 cores: at most 256"),
    ],
)
def test_files_with_mistakes(inside: Inside, tmp_path: Path, document: str, says: str) -> None:
    file = tmp_path / "machine.json"
    file.write_text(document)
    done = inside("model", "node", "-m", file)
    assert done.returncode == 2 and says in done.stderr.replace("\n", " ")
