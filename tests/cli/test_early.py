# SPDX-License-Identifier: BSD-3-Clause
"""Which calls may return early, what guards them, and when they took their time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from stretto.bench import overlap_timeline
from stretto.core import early
from stretto.native import guarding

M = 1 << 20
CHOICE = Path(__file__).parents[2] / "src/mpi/overlap/overlap_choice.cpp"


@pytest.mark.parametrize(
    ("op", "part", "ranks", "nodes", "value", "may", "why"),
    [
        ("alltoall", M, 8, 2, "on", True, "a rank receives 8M bytes, and the ranks are on 2 nodes"),
        ("alltoall", M, 8, 1, "on", False, "all ranks are on one node, where moving data is work of the processors"),
        ("alltoall", 1024, 8, 2, "on", False, "it has 8K bytes, and 256K are the least"),
        ("alltoall", 1024, 8, 2, "8192", True, "a rank receives 8K bytes, and the ranks are on 2 nodes"),
        ("bcast", 256 << 10, 8, 2, "", True, "a rank receives 256K bytes, and the ranks are on 2 nodes"),
        ("scatter", 128 << 10, 8, 2, "auto", False, "a rank receives 128K bytes, and 256K are the least"),
        ("scan", 128 << 10, 8, 2, "on", False, "it has 128K bytes, and 256K are the least"),
        ("reduce_scatter", 128 << 10, 8, 2, "on", True, "a rank receives 1M bytes, and the ranks are on 2 nodes"),
        ("barrier", 0, 8, 2, "on", False, "barrier never does"),
    ],
)
def test_which_calls(op: str, part: int, ranks: int, nodes: int, value: str, may: bool, why: str) -> None:
    assert early.judge(op, part, ranks, nodes, value) == early.Early(may, why)


def test_the_library_knows_the_same_calls() -> None:
    lists = re.findall(r"(k\w+) =\s+bits\(\{(.*?)\}\)", CHOICE.read_text(), re.DOTALL)
    found = {name: frozenset(re.findall(r"Collective::(\w+)", text)) for name, text in lists}
    assert found == {"kServed": early.OPS, "kOfUnknownLength": early.OF_ALL_LENGTHS}


def test_a_sentence_says_what_is_switched_on() -> None:
    may = early.Early(True, "so")
    assert early.sentence(may, "off") == "with STRETTO_OVERLAP=on it might return before its data are there: so"
    assert "STRETTO_OVERLAP=auto it may return" in early.sentence(may, "auto")
    assert "it would wait for all its data: no" in early.sentence(early.Early(False, "no"), "65536")


@pytest.mark.parametrize(
    ("changes", "asked", "good", "finding"),
    [
        ({}, "", True, "kernel faults guard buffers"),
        ({}, "user", True, "are caught, as STRETTO_OVERLAP_GUARD=user asks"),
        ({"guard": "user"}, "", True, "user mode guards buffers of programs with one thread"),
        ({"guard": "user", "calls": False}, "", False, "no catching system calls"),
        ({"move": False}, "", False, "no moving pages"),
        ({"guard": "none", "move": False}, "", False, "no guarding pages (userfaultfd), no moving pages"),
        ({"calls": False}, "", True, "kernel faults guard buffers"),
        ({"calls": False}, "user", False, "no catching system calls"),
        ({"guard": "none", "move": False}, "segv", True, "SIGSEGV guards buffers"),
        ({"segv": False}, "segv", False, "no guarding pages by SIGSEGV"),
    ],
)
def test_what_guards(changes: dict[str, Any], asked: str, good: bool, finding: str) -> None:
    found = {"guard": "kernel", "move": True, "calls": True, "segv": True}
    errors = dict.fromkeys(("guard_error", "move_error", "calls_error", "segv_error"), "x")
    line = guarding.lines({**found, **errors, **changes}, asked)[-1]
    assert line.good == good and finding in line.finding


def bins(bin_ns: int, in_call: list[int], late: list[int], waited: list[int]) -> dict[str, Any]:
    return {"bin_ns": bin_ns, "in_call_ns": in_call, "late_ns": late, "waited_ns": waited}


def test_timelines_of_ranks_add_up_in_the_longer_bins() -> None:
    short, long = bins(10, [10, 0, 0], [0, 10, 6], [0, 0, 6]), bins(20, [0, 20], [20, 0], [10, 0])
    merged = overlap_timeline.merged([short, None, long])
    assert merged == bins(20, [10, 20], [30, 6], [10, 6])
    shares = overlap_timeline.shares(merged, 2)
    assert shares is not None and shares["in_call"] == [0.25, 0.5]
    assert shares["hidden"] == [0.5, 0.0] and shares["waited"] == [0.25, 0.15]
    assert overlap_timeline.merged([None]) is None


def test_a_line_shows_what_there_was_most_of() -> None:
    row = {"bin_ms": 1.0, "in_call": [1.0, 0, 0, 0], "hidden": [0, 0.9, 0.2, 0], "waited": [0, 0.1, 0.7, 0.05]}
    legend, line = overlap_timeline.lines([{"timeline": row}], ["Alltoall, 1M"], 80)
    assert str(line) == "Alltoall, 1M  ▓═w·" and str(legend).startswith("0.004 s from left to right")
    (_, folded) = overlap_timeline.lines([{"timeline": {**row, "in_call": [0.5] * 40}}], ["A"], 13)
    assert str(folded) == "A  " + "▓" * 10
    assert overlap_timeline.lines([{"timeline": None}], ["A"], 80) == []
