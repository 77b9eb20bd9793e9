# SPDX-License-Identifier: BSD-3-Clause
"""Collectives by schedule between hosts: right, and across the spine as seldom as can be."""
from __future__ import annotations

import harness
import pytest

BYTES = 8 << 20
COLLECTIVES = ["barrier", "bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
               "alltoallw", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan"]


def schedules(*collectives: str) -> dict[str, str]:
    return {f"STRETTO_{name.upper()}": "schedule" for name in collectives}


# Ranks on one host follow each other, or are as far from each other as can be; a root in the middle, so that both uplinks count.
@pytest.mark.parametrize("where", ["slot", "node"])
@pytest.mark.parametrize("op", ["bcast", "reduce", "allreduce"])
def test_a_vector_crosses_the_spine_once(mpi, cluster, program, op, where):
    job = cluster.run(mpi, [program(mpi, "once.c"), op, str(BYTES), "5"], where=where).ok()
    once = 1.05 * BYTES + 300_000  # headers, and what the launcher sends
    directions = [bytes_ for link in ("leaf0", "leaf1") for bytes_ in (job.links[link].up_bytes, job.links[link].down_bytes)]
    crossings = 2 if op == "allreduce" else 1
    assert sum(directions) / 2 <= crossings * once and max(directions) <= once, job.links


@pytest.mark.parametrize("where", ["slot", "node"])
@pytest.mark.parametrize("source", ["differential.cpp", "reductions.cpp"])
def test_against_oracle(mpi, cluster, where, source, request):
    if mpi.mpicxx is None:
        pytest.skip(f"{mpi.title} has no C++ compiler wrapper")
    flags = ["-std=gnu++20", "-DOMPI_SKIP_MPICXX=1", "-DMPICH_SKIP_MPICXX=1", "-ldl"]
    binary = harness.build_program(mpi, source, flags=flags, language="c++")
    cases = 3_000 if request.config.getoption("--long", default=False) else 40
    exact = ["--exact", "--expect-native", "99"] if source == "differential.cpp" else ["--any-order", "--expect-native", "100"]
    job = cluster.run(mpi, [binary, "--cases", str(cases), *exact], where=where, env=schedules(*COLLECTIVES),
                      timeout=60 + cases).ok()
    assert f"{cases} cases ok, with us" in job.stdout and job.messages() == [], job.describe()
