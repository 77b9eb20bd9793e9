# SPDX-License-Identifier: BSD-3-Clause
"""Other PMPI tools in the same process, before and behind Stretto.

They count every call of the program exactly once. The program gets right results by Stretto's path.
"""

from __future__ import annotations

import harness
import pytest

ROUNDS, SIZES = 3, 7  # options_check: rounds, block sizes per round


def _expected():
    calls = ROUNDS * SIZES
    return {
        "barrier": calls,
        "bcast": calls,
        "gatherv": calls,
        "scatterv": calls,
        "allgather": calls,
        "allgatherv": calls,
        "allreduce": calls,
    }


@pytest.mark.few
@pytest.mark.parametrize("style", ["pmpi", "next"])
@pytest.mark.parametrize("order", ["alone", "tool_first", "tool_behind"])
def test_a_counting_tool_sees_every_call_once(mpi, run_mpi, build_program, style, order):
    flags = ["-shared", "-fPIC", *(["-DTOOL_NEXT"] if style == "next" else [])]
    tool = build_program(mpi, "tool_count.c", f"libtool_{style}.so", flags)
    chain = [tool]
    if order != "alone":
        chain.insert(1 if order == "tool_first" else 0, harness.library(mpi.abi))
    program = build_program(mpi, "options_check.c")
    job = run_mpi(mpi, 2, [program, ROUNDS], preload=":".join(map(str, chain))).ok()
    counts = sorted(job.results("TOOL"), key=lambda r: r["rank"])
    assert counts == [{"rank": r} | _expected() for r in range(2)], job.describe()
    if order != "alone":
        # A tool behind Stretto may look for the next PMPI_ name. It finds the host's function, so
        # it counts every call, and Stretto serves none.
        skipped = (style, order) == ("next", "tool_behind")
        assert {r["bcast"] for r in job.results()} == {"host" if skipped else "cico"}, job.describe()


@pytest.mark.few
@pytest.mark.parametrize("style", ["pmpi", "next"])
@pytest.mark.parametrize("order", ["tool_first", "tool_behind"])
def test_a_tool_sees_messages_that_stretto_forwards(mpi, run_mpi, build_program, style, order):
    flags = ["-shared", "-fPIC", "-DTOOL", *(["-DTOOL_NEXT"] if style == "next" else [])]
    chain = [build_program(mpi, "tool_send.c", f"libtool_send_{style}.so", flags)]
    chain.insert(1 if order == "tool_first" else 0, harness.library(mpi.abi))
    job = run_mpi(mpi, 1, [build_program(mpi, "tool_send.c")], preload=":".join(map(str, chain))).ok()
    assert job.results() == [{"seen": 5}], job.describe()
