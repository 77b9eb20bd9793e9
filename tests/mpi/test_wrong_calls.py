# SPDX-License-Identifier: BSD-3-Clause
"""Thirty-one kinds of wrong calls on three ranks, in which rank 2 differs from the others.

Stretto names each mistake in words that tell the user what to do, with MPI's own error class. No
rank hangs. These mistakes need no watchdog. test_watchdog.py has those that do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from oracle import SMALL_RING, seed

ROOT = "all ranks must name the same root"
OP = "all ranks must name the same operation"
TYPE = "all ranks must give the same datatype"
COUNT = "all ranks must give the same count"
ORDER = "all ranks must call the same collectives in the same order"
SIGNATURE = "the sequence of basic datatypes sent is not the one received"


@dataclass(frozen=True)
class Kind:
    """What a mistake must cause: an error on these ranks ({rank: class}), and a message.

    The error may come in the call or in the Barrier after it. More ranks may get one.
    """

    sees: dict[int, str]
    text: str = ""
    strict: str | None = None  # the class that all ranks see in the call itself with STRETTO_CHECK=2


def contrast(odd: str, others: str, rule: str) -> str:
    """The rank that finds the difference first reports it: rank 2 or another one."""
    a, b = re.escape(odd), re.escape(others)
    return rf"(rank 2 calls {a}, but rank [01] calls {b}|rank [01] calls {b}, but rank 2 calls {a}): {rule}"


def refused(call: str, what: str) -> str:
    """Rank 2 goes on to its Barrier. The others are still in the call, and get this reason."""
    return f"rank 2's call before that, MPI_{call}, was refused there: invalid {what}"


KINDS = {
    "collective": Kind(
        {0: "OTHER", 1: "OTHER", 2: "OTHER"}, contrast("MPI_Bcast (root 0, 11 bytes)", "MPI_Barrier", ORDER), "OTHER"
    ),
    "bcast_root": Kind(
        {0: "ROOT", 1: "ROOT", 2: "ROOT"},
        contrast("MPI_Bcast (root 2, 12 bytes)", "MPI_Bcast (root 0, 12 bytes)", ROOT),
        "ROOT",
    ),
    "reduce_root": Kind(
        {0: "ROOT"},
        contrast(
            "MPI_Reduce (root 1, MPI_SUM, 13 integers of 4 bytes)",
            "MPI_Reduce (root 0, MPI_SUM, 13 integers of 4 bytes)",
            ROOT,
        ),
        "ROOT",
    ),
    "gather_root": Kind(
        {0: "ROOT", 2: "ROOT"}, contrast("MPI_Gather (root 2, 14 bytes)", "MPI_Gather (root 0, 14 bytes)", ROOT), "ROOT"
    ),
    "scatter_root": Kind(
        {}, contrast("MPI_Scatter (root 2, 15 bytes)", "MPI_Scatter (root 0, 15 bytes)", ROOT), "ROOT"
    ),
    "long_bcast_root": Kind(
        {0: "ROOT", 2: "ROOT"},
        contrast("MPI_Bcast (root 2, 600000 bytes)", "MPI_Bcast (root 0, 600000 bytes)", ROOT),
        "ROOT",
    ),
    "allreduce_op": Kind(
        {0: "OP", 1: "OP", 2: "OP"},
        contrast("MPI_Allreduce (MPI_MAX, 16 reals of 8 bytes)", "MPI_Allreduce (MPI_SUM, 16 reals of 8 bytes)", OP),
        "OP",
    ),
    "scan_op": Kind(
        {2: "OP"},
        contrast("MPI_Scan (MPI_PROD, 17 integers of 8 bytes)", "MPI_Scan (MPI_SUM, 17 integers of 8 bytes)", OP),
        "OP",
    ),
    "user_op": Kind(
        {0: "OP"},
        contrast(
            "MPI_Allreduce (an operation of the user's, 18 integers of 4 bytes)",
            "MPI_Allreduce (MPI_SUM, 18 integers of 4 bytes)",
            OP,
        ),
        "OP",
    ),
    "allreduce_type": Kind(
        {0: "TYPE", 1: "TYPE", 2: "TYPE"},
        contrast(
            "MPI_Allreduce (MPI_SUM, 38 integers of 4 bytes)", "MPI_Allreduce (MPI_SUM, 19 reals of 8 bytes)", TYPE
        ),
        "TYPE",
    ),
    "allreduce_count": Kind(
        {0: "TRUNCATE", 1: "TRUNCATE", 2: "TRUNCATE"},
        contrast(
            "MPI_Allreduce (MPI_SUM, 20 integers of 4 bytes)", "MPI_Allreduce (MPI_SUM, 21 integers of 4 bytes)", COUNT
        ),
        "TRUNCATE",
    ),
    "long_allreduce_count": Kind(
        {0: "TRUNCATE"},
        contrast(
            "MPI_Allreduce (MPI_SUM, 22 reals of 8 bytes)", "MPI_Allreduce (MPI_SUM, 22000 reals of 8 bytes)", COUNT
        ),
        "TRUNCATE",
    ),
    "reduce_scatter_counts": Kind(
        {0: "TRUNCATE", 1: "TRUNCATE"},
        r"MPI_Reduce_scatter: rank 2 sends (1|23) integers? of 4 bytes, but rank [01] expects "
        r"(1|23) integers? of 4 bytes: " + COUNT,
    ),
    "bcast_type": Kind(
        {},
        re.escape(
            "rank 2 calls MPI_Bcast (root 0, 48 integers of 4 bytes), rank 0 calls MPI_Bcast "
            f"(root 0, 24 reals of 8 bytes): {SIGNATURE}"
        ),
    ),
    "gather_type": Kind(
        {},
        re.escape(
            "rank 0 calls MPI_Gather (root 0, 25 integers of 8 bytes), rank 2 calls MPI_Gather "
            f"(root 0, 50 reals of 4 bytes): {SIGNATURE}"
        ),
    ),
    "bytes_for_doubles": Kind({}),
    "same_signature": Kind({}),
    "truncated": Kind({2: "TRUNCATE"}, strict="TRUNCATE"),
    "alltoallv_counts": Kind({2: "TRUNCATE"}),
    "a_call_left_out": Kind(
        {0: "OTHER", 1: "OTHER", 2: "OTHER"},
        contrast("MPI_Allreduce (MPI_SUM, 31 integers of 4 bytes)", "MPI_Bcast (root 0, 30 bytes)", ORDER),
        "OTHER",
    ),
    "order": Kind(
        {0: "OTHER", 1: "OTHER", 2: "OTHER"},
        contrast("MPI_Bcast (root 0, 32 bytes)", "MPI_Allgather (33 bytes)", ORDER),
        "OTHER",
    ),
    "negative_count": Kind({0: "OTHER", 1: "OTHER", 2: "COUNT"}, refused("Allgather", "count")),
    "no_such_root": Kind({0: "OTHER", 2: "ROOT"}, refused("Reduce", "root")),
    "null_type": Kind({0: "OTHER", 1: "OTHER", 2: "TYPE"}, refused("Allgather", "datatype")),
    "freed_type": Kind({0: "OTHER", 1: "OTHER", 2: "TYPE"}, refused("Allgather", "datatype")),
    "uncommitted_type": Kind({0: "OTHER", 1: "OTHER", 2: "TYPE"}, refused("Allgather", "datatype")),
    "uncommitted_operands": Kind({0: "TYPE", 1: "TYPE", 2: "TYPE"}),
    "null_buffer": Kind({0: "OTHER", 1: "OTHER", 2: "BUFFER"}, refused("Allreduce", "buffer")),
    "null_op": Kind({0: "OTHER", 1: "OTHER", 2: "OP"}, refused("Allreduce", "operation")),
    "op_not_for_type": Kind({0: "OTHER", 1: "OTHER", 2: "OP"}),
    "misplaced_in_place": Kind({0: "OTHER", 1: "OTHER", 2: "BUFFER"}, refused("Allgather", "buffer")),
}
SILENT = {"bytes_for_doubles", "same_signature"}


def _play(mpi, run_mpi, build_program, kinds, **options):
    job = run_mpi(mpi, 3, [build_program(mpi, "wrong_calls.c"), *kinds], timeout=90, **options).ok()
    seen: dict[str, dict[int, dict]] = {kind: {} for kind in kinds}
    for r in job.results():
        seen[r["kind"]][r["rank"]] = r
    assert all(len(ranks) == 3 for ranks in seen.values()), job.describe()
    return job, seen


def _class(result: dict) -> str:
    return result["call"] if result["call"] != "SUCCESS" else result["then"]


@pytest.mark.few
def test_by_default(mpi, run_mpi, build_program):
    job, seen = _play(mpi, run_mpi, build_program, list(KINDS))
    text = "\n".join(job.messages())
    for name, kind in KINDS.items():
        for rank, wanted in kind.sees.items():
            assert _class(seen[name][rank]) == wanted, f"{name}: {seen[name]}\n{job.describe()}"
        assert re.search(kind.text, text), f"{name}\n{text}"
        assert all(r["seconds"] < 1 for r in seen[name].values()), seen[name]
    for name in SILENT:
        assert all(_class(r) == "SUCCESS" for r in seen[name].values()), seen[name]
    assert "208 bytes" not in text and "54 integers" not in text, text


@pytest.mark.few
def test_strict_tells_all_ranks_in_the_call(mpi, run_mpi, build_program):
    names = [name for name, kind in KINDS.items() if kind.strict] + sorted(SILENT)
    job, seen = _play(mpi, run_mpi, build_program, names, env={"STRETTO_CHECK": "2"})
    text = "\n".join(job.messages())
    for name in names:
        kind = KINDS[name]
        wanted = kind.strict or "SUCCESS"
        assert [seen[name][r]["call"] for r in range(3)] == [wanted] * 3, f"{name}: {seen[name]}\n{job.describe()}"
        assert re.search(kind.text, text), f"{name}\n{text}"
    assert "rank 2 calls MPI_Bcast (root 0, 208 bytes), rank 0 calls MPI_Bcast (root 0, 26 reals of 8 bytes)" in text, (
        text
    )
    assert "54 integers" not in text, text


@pytest.mark.few
def test_off_nothing_is_looked_for(mpi, run_mpi, build_program):
    kinds = ["allreduce_op", "bcast_type", "bytes_for_doubles"]
    job, seen = _play(mpi, run_mpi, build_program, kinds, env={"STRETTO_CHECK": "0"})
    assert job.messages() == [], job.describe()
    assert all(_class(r) == "SUCCESS" for ranks in seen.values() for r in ranks.values()), seen


@pytest.mark.few
@pytest.mark.parametrize(
    ("source", "check"), [("differential.cpp", "1"), ("reductions.cpp", "1"), ("reductions.cpp", "2")]
)
def test_right_programs_are_left_alone(mpi, run_mpi, build_cxx, source, check):
    """Right calls with random types, lengths, roots, operations and delays cause no message.

    The differential test does not run at level 2: receivers of its Bcast have room for more than
    the root sends, and level 2 refuses that.
    """
    line = [build_cxx(source), "--cases", "200", "--seed", str(seed() + 5)]
    job = run_mpi(mpi, 3, line, env=SMALL_RING | {"STRETTO_CHECK": check}, timeout=90).ok()
    assert job.messages() == [], job.describe()
