# SPDX-License-Identifier: BSD-3-Clause
"""cluster bench: it measures between hosts, against the best peer, and knows what a link needs."""

from __future__ import annotations

import json

import pytest
from stretto.bench import between_hosts
from stretto.cluster import Plan


def row(op: str, size: int, ours: float, mpi: float) -> dict:
    return {
        "event": "row",
        "np": 8,
        "op": op,
        "bytes": size,
        "ours_us": ours,
        "mpi_us": mpi,
        "bound_us": 0.0,
        "path": "schedule",
        "flag_ns": 100.0,
    }


def test_the_best_peer_counts():
    runs = {
        ("slot", "tuned"): [[row("bcast", 1 << 20, 20e3, 40e3)], [row("bcast", 1 << 20, 22e3, 44e3)]],
        ("slot", "han"): [[row("bcast", 1 << 20, 21e3, 28e3)], [row("bcast", 1 << 20, 21e3, 28e3)]],
    }
    (result,) = between_hosts.rows_of(Plan(), runs)
    assert (result["best"], result["ratio"], result["ratios"]) == ("han", 0.75, [0.75, 0.75])
    assert result["mpi_us"] == {"tuned": 42e3, "han": 28e3}
    assert result["link_us"] == pytest.approx(2**20 * 8 / 0.5e9 * 1e6) and result["link_ratio"] == pytest.approx(
        21e3 / result["link_us"]
    )


def test_what_must_cross_the_slowest_link():
    assert between_hosts.link_time_us(Plan(leaves=1), "bcast", 125) == 1.0
    assert between_hosts.link_time_us(Plan(), "allreduce", 125) == 2.0
    assert between_hosts.link_time_us(Plan(), "alltoall", 125) is None
    assert between_hosts.link_time_us(Plan(leaves=1, hosts_per_leaf=1), "bcast", 125) is None


@pytest.mark.one_mpi
def test_measures_between_hosts(mpi, cluster, tool, tmp_path):
    file = tmp_path / "bench.json"
    peers = list(between_hosts.peers_of(mpi))[:1]
    ops = ["bcast", "barrier", "allreduce"] if mpi.kind == "openmpi" else ["bcast", "barrier"]  # MPICH spins
    tool(
        "cluster",
        "bench",
        "--name",
        cluster.plan.name,
        "--mpi",
        mpi.mpiexec,
        "--op",
        ",".join(ops),
        "--sizes",
        "256K",
        "--map",
        "node",
        "--peers",
        peers[0],
        "--repeat",
        "1",
        "--json",
        file,
        timeout=120,
    )
    doc = json.loads(file.read_text())
    assert [(r["map"], r["op"], r["bytes"]) for r in doc["results"]] == [
        ("node", op, 0 if op == "barrier" else 256 << 10) for op in ops
    ]
    for result in (r for r in doc["results"] if r["bytes"]):
        assert result["mpi_us"][peers[0]] > result["link_us"] > 4e3, "nothing is faster than the link"
        assert result["link_ratio"] > 1 and result["ratio"] > 0
    assert set(doc["geomean"]["node"]) == set(ops)
    assert cluster.execute(cluster.names[0], "ls", str(cluster.shared)) == ""
