# SPDX-License-Identifier: BSD-3-Clause
"""Wrong calls: the error goes to whom the standard says, peers get an error instead of hanging, and the communicator
goes on. Most hosts hang in the mistaken cases, so there is no comparison with them."""

from __future__ import annotations

import pytest

SIZES = {"inline": 40, "cico": 50_000}


def _seen(run_mpi, build_program, mpi, np, *argv):
    job = run_mpi(mpi, np, [build_program(mpi, "errors_calls.c"), *argv], timeout=30).ok()
    results = sorted(job.results(), key=lambda r: r["rank"])
    assert len(results) == np, job.describe()
    assert all(r["goes_on"] and r["readable"] for r in results), job.describe()
    assert all(r["path"] != "none" for r in results), job.describe()
    return [r["seen"] for r in results]


@pytest.mark.parametrize("operation", ["bcast", "scatter", "scatterv", "gather", "gatherv", "allgather", "allgatherv"])
@pytest.mark.parametrize("size", SIZES)
def test_truncation_is_reported_where_it_happens(mpi, run_mpi, build_program, operation, size):
    seen = _seen(run_mpi, build_program, mpi, 2, "truncate", operation, SIZES[size])
    assert seen == ["SUCCESS", "TRUNCATE"]


@pytest.mark.only(abi="openmpi")
@pytest.mark.parametrize("operation", ["bcast", "scatterv", "gatherv", "allgatherv"])
def test_truncation_among_four(mpi, run_mpi, build_program, operation):
    seen = _seen(run_mpi, build_program, mpi, 4, "truncate", operation, 300_000)
    assert seen == ["SUCCESS", "TRUNCATE", "SUCCESS", "SUCCESS"]


@pytest.mark.parametrize(("which", "wanted"), [("count", "COUNT"), ("type", "TYPE"), ("root", "ROOT")])
@pytest.mark.parametrize("operation", ["bcast", "gather", "scatter", "allgather"])
def test_a_mistake_on_one_rank_is_an_error_for_those_who_need_it(mpi, run_mpi, build_program, which, operation, wanted):
    if which == "root" and operation == "allgather":
        pytest.skip("has no root")
    rank0, rank1 = _seen(run_mpi, build_program, mpi, 2, which, operation)
    assert rank1 == wanted
    # Rank 1 should have sent to the root or to everybody: who waits for it must hear that nothing comes.
    if operation in ("gather", "allgather"):
        assert rank0 != "SUCCESS"


def test_a_mistake_in_the_first_call_on_a_communicator(mpi, run_mpi, build_program):
    assert _seen(run_mpi, build_program, mpi, 2, "count", "gather", 1000, "fresh")[1] == "COUNT"


@pytest.mark.parametrize("np", [2, 3])
def test_zero_counts_with_null_buffers(mpi, run_mpi, build_program, np):
    assert _seen(run_mpi, build_program, mpi, np, "empty") == ["SUCCESS"] * np


def test_arguments_significant_at_the_root_only(mpi, run_mpi, build_program):
    assert _seen(run_mpi, build_program, mpi, 2, "ignored") == ["SUCCESS"] * 2


def test_over_declared_receive_counts(mpi, run_mpi, build_program):
    assert _seen(run_mpi, build_program, mpi, 2, "over") == ["SUCCESS"] * 2
