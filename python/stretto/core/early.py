# SPDX-License-Identifier: BSD-3-Clause
"""Whether a call may return before its data are there (STRETTO_OVERLAP), and why not."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.core.units import format_size, parse_size

OPS = frozenset(
    "allgather allgatherv allreduce alltoall alltoallv alltoallw bcast exscan gather gatherv reduce reduce_scatter "
    "reduce_scatter_block scan scatter scatterv".split()
)  # as in src/mpi/overlap/overlap_choice.cpp
OF_ONE_VECTOR = frozenset({"allreduce", "bcast", "exscan", "reduce", "scan"})
OF_ALL_LENGTHS = frozenset({"alltoallv", "alltoallw", "gatherv", "scatterv"})  # not all ranks know how long it is
USUAL, LEAST = 256 << 10, 4 << 10  # bytes: of `on` and `auto`, and of any number
WORTH = 0.01  # part of a run that may be hidden; less is next to nothing
MOST_NAMED = 3  # places, in a sentence
ALWAYS = {"STRETTO_OVERLAP": str(USUAL)}  # for measurements of such calls: no trial sends some of them another way


@dataclass
class Early:
    """Whether a call may return early with STRETTO_OVERLAP, and the reason."""

    may: bool
    why: str


def could_hide(part: str, places: str) -> str:
    return f"STRETTO_OVERLAP=auto could hide at most {part} of the run{places}"


def gains_nothing(why: str) -> str:
    return f"STRETTO_OVERLAP=auto gains next to nothing: {why}"


def least_bytes(value: str) -> int:
    """From how many bytes on calls may return early with this value of STRETTO_OVERLAP. `off`: as `on`."""
    try:
        return max(parse_size(value), LEAST)
    except ValueError:
        return USUAL


def judge(op: str, part_bytes: int, ranks: int, nodes: int, value: str) -> Early:
    """Of a call in which one rank's part, or the vector, has so many bytes."""
    if op not in OPS:
        return Early(False, f"{op} never does")
    if nodes < 2:
        return Early(False, "all ranks are on one node, where moving data is work of the processors")
    whole, least = part_bytes * (1 if op in OF_ONE_VECTOR else ranks), least_bytes(value)
    received = part_bytes if op in ("scatter", "scatterv") else whole
    if op not in OF_ALL_LENGTHS and whole < least:
        return Early(False, f"it has {format_size(whole)} bytes, and {format_size(least)} are the least")
    if received < least:
        return Early(False, f"a rank receives {format_size(received)} bytes, and {format_size(least)} are the least")
    return Early(True, f"a rank receives {format_size(received)} bytes, and the ranks are on {nodes} nodes")


def sentence(early: Early, value: str) -> str:
    switched = value.lower() not in ("", "off", "0", "no", "false")
    given = f"STRETTO_OVERLAP={value if switched else 'on'}"
    if not early.may:
        return f"with {given} it would wait for all its data: {early.why}"
    may = "may return before its data are there" if switched else "might return before its data are there"
    auto = ", if the program gets faster by it" if value.lower() == "auto" else ""
    return f"with {given} it {may}{auto}: {early.why}"
