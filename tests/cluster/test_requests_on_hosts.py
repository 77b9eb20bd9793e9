# SPDX-License-Identifier: BSD-3-Clause
"""Collectives with requests between hosts, where nothing but links connects the ranks."""

from __future__ import annotations

import harness
from stretto.bench import program
from stretto.native import programs

ON = {"STRETTO_NONBLOCKING": "on", "STRETTO_EXPLAIN": "1"}
OURS = "ours, by connections of our own between nodes"


def test_random_calls(mpi, cluster):
    calls = harness.build_program(mpi, "nonblocking.c")
    job = cluster.run(mpi, [calls, "random", "31", "60"], where="node", env=ON, timeout=120).ok()
    assert [r["wrong"] for r in job.results()] == [0] * 8 and OURS in job.stderr, job.describe()


def test_the_benchmark_runs(mpi, cluster):
    job = cluster.run(mpi, [programs.compiled(mpi, "requests"), "1", "8"], env=ON, timeout=120).ok()
    rows = [row for row in program.collect(job.stdout.splitlines(), lambda _: None) if row["event"] == "row"]
    assert len(rows) == 10 and OURS in job.stderr, job.describe()
