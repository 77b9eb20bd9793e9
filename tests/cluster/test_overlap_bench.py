# SPDX-License-Identifier: BSD-3-Clause
"""bench --suite overlap: it measures between hosts what hides behind the computation after a call."""

from __future__ import annotations

import json

import pytest

RATE_BPS = 100_000_000
BYTES = 256 << 10


@pytest.mark.alone  # it compares times
def test_measures_between_hosts(mpi, make_cluster, tool, tmp_path):
    cluster = make_cluster(leaves=1, hosts_per_leaf=2, ranks_per_host=1, host_rate_bps=RATE_BPS)
    file = tmp_path / "overlap.json"
    call = ["--name", cluster.plan.name, "--mpi", mpi.mpiexec, "--op", "alltoall,bcast", "--sizes", str(BYTES)]
    tool(
        *("bench", "--suite", "overlap", *call, "--map", "cyclic", "--regimes", "bc", "--repeat", "2", "--json", file),
        timeout=200,
    )
    doc = json.loads(file.read_text())
    assert doc["schema"] == "stretto.overlap.bench/1" and doc["compute"] == "sleep"
    assert [(r["op"], r["bytes"], r["regime"]) for r in doc["results"]] == [
        (op, BYTES, regime) for op in ("alltoall", "bcast") for regime in "bc"
    ]
    link_ms = BYTES * 8e3 / RATE_BPS
    for r in doc["results"]:
        assert r["comm_ms"] > 0.8 * link_ms, "a link is not faster than its rate, but for what it lets through at once"
        assert r["total_ms"] > 0.8 * r["comp_ms"] > 0.4 * r["comm_ms"] and r["total_ms"] >= r["init_ms"]
        assert abs(r["wire_ms"] - link_ms) < 1e-6 and 0 <= r["bound_ms"] <= r["comm_ms"]
        assert 0 <= r["formula_ms"] <= min(r["comm_ms"], r["curc_ms"] + r["crc_ms"])
        assert r["overlap_ms"] < 1.5 * r["comm_ms"], "nothing but the call can hide"
        assert abs(r["gain_ms"] - (r["blocking_total_ms"] - r["total_ms"])) < 1e-6
    assert cluster.leftovers() == []
