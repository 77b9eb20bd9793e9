# SPDX-License-Identifier: BSD-3-Clause
"""Wrong calls: the ranks that the standard names get the error, and the communicator goes on.

If Stretto refuses a call for its arguments, the other ranks have seen no call. Rank 1, whose call
was wrong, makes it again without the mistake. A mistake that shows only in the middle of a call is
an error on the peers, too, and they do not hang. Most hosts hang there, so the tests do not compare
with them.
"""

from __future__ import annotations

import pytest

TRUNCATED = [
    "bcast",
    "scatter",
    "scatterv",
    "gather",
    "gatherv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
]
REDUCTIONS = ["reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"]


def _seen(run_mpi, build_program, mpi, np, cases):
    """The error class that every rank saw in every case: {case: [error class by rank]}."""
    job = run_mpi(mpi, np, [build_program(mpi, "errors_calls.c"), *cases], timeout=60).ok()
    seen: dict[str, list] = {case: [None] * np for case in cases}
    for r in job.results():
        assert r["goes_on"], f"the communicator is broken after {r['case']}\n{job.describe()}"
        assert r["readable"] and r["path"] != "none", job.describe()
        seen[r["case"]][r["rank"]] = r["seen"]
    return seen


@pytest.mark.few
@pytest.mark.parametrize("bytes_", [40, 50_000], ids=["inline", "cico"])
def test_truncation_is_reported_where_it_happens(mpi, run_mpi, build_program, bytes_):
    cases = [f"truncate:{operation}:{bytes_}" for operation in TRUNCATED]
    seen = _seen(run_mpi, build_program, mpi, 2, cases)
    assert seen == {case: ["SUCCESS", "TRUNCATE"] for case in cases}


@pytest.mark.only(abi="openmpi")
def test_truncation_among_four(mpi, run_mpi, build_program):
    cases = [f"truncate:{operation}:300000" for operation in TRUNCATED]
    seen = _seen(run_mpi, build_program, mpi, 4, cases)
    assert seen == {case: ["SUCCESS", "TRUNCATE", "SUCCESS", "SUCCESS"] for case in cases}


@pytest.mark.few
@pytest.mark.parametrize("which", ["count", "type", "root"])
@pytest.mark.parametrize("first", ["", "!"], ids=["later", "first_call"])
def test_a_mistake_on_one_rank_is_an_error_there_alone(mpi, run_mpi, build_program, which, first):
    operations = ["bcast", "gather", "scatter", *(["allgather"] if which != "root" else [])]
    seen = _seen(run_mpi, build_program, mpi, 2, [f"{first}{which}:{op}:50000" for op in operations])
    for case, (rank0, rank1) in seen.items():
        assert (rank0, rank1) == ("SUCCESS", which.upper()), (case, rank0, rank1)


@pytest.mark.few
@pytest.mark.parametrize("bytes_", [0, 40, 50_000], ids=["empty", "short", "long"])
def test_a_root_that_is_nobody_while_the_others_have_another(mpi, run_mpi, build_program, bytes_):
    """A rank that names a root that does not exist gets an error at once. The real root may be any."""
    seen = _seen(run_mpi, build_program, mpi, 3, [f"last_root:{op}:{bytes_}" for op in ("bcast", "gather", "scatter")])
    for case, (rank0, rank1, rank2) in seen.items():
        assert (rank0, rank1, rank2) == ("SUCCESS", "ROOT", "SUCCESS"), (case, rank0, rank1, rank2)


@pytest.mark.few
@pytest.mark.parametrize("which", ["op", "type", "count", "root"])
@pytest.mark.parametrize("bytes_", [40, 50_000], ids=["short", "long"])
def test_a_mistake_on_one_rank_of_a_reduction(mpi, run_mpi, build_program, which, bytes_):
    operations = ["reduce"] if which == "root" else REDUCTIONS
    seen = _seen(run_mpi, build_program, mpi, 2, [f"{which}:{op}:{bytes_}" for op in operations])
    for case, (rank0, rank1) in seen.items():
        assert (rank0, rank1) == ("SUCCESS", which.upper()), (case, rank0, rank1)


@pytest.mark.few
@pytest.mark.parametrize("np", [2, 3])
@pytest.mark.parametrize("bytes_", [40, 5000, 50_000], ids=["short", "between", "long"])
def test_a_rank_with_another_count_in_a_reduction(mpi, run_mpi, build_program, np, bytes_):
    """Rank 1 gives half the count of the others.

    Each rank that needs rank 1's data, or whose data rank 1 needs, gets an error.
    """
    seen = _seen(run_mpi, build_program, mpi, np, [f"uneven:{op}:{bytes_}" for op in REDUCTIONS])
    for case, classes in seen.items():
        assert set(classes) <= {"SUCCESS", "TRUNCATE"}, (case, classes)
        if "allreduce" in case or "reduce_scatter" in case:
            assert set(classes) == {"TRUNCATE"}, (case, classes)
        elif "scan" in case:
            assert set(classes[1 if np == 2 else 2 :]) == {"TRUNCATE"}, (case, classes)
        else:
            assert classes[0] == "TRUNCATE", (case, classes)


@pytest.mark.parametrize("np", [2, 3])
def test_empty_ignored_and_over_declared_arguments_are_right(mpi, run_mpi, build_program, np):
    """These calls are right, and no rank gets an error.

    They have zero counts with NULL buffers, or nonsense in arguments that only the root may read,
    or longer receive counts than send counts.
    """
    cases = ["empty", "ignored", "over", "!empty", "!ignored", "!over"]
    seen = _seen(run_mpi, build_program, mpi, np, cases)
    assert seen == {case: ["SUCCESS"] * np for case in cases}
