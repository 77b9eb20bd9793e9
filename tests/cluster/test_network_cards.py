# SPDX-License-Identifier: BSD-3-Clause
"""Hosts with two network cards each: vectors in stripes, a carrier for each card."""

from __future__ import annotations

import re

import harness
import pytest

pytestmark = pytest.mark.every  # some cases are for one MPI only
BYTES = 8 << 20


@pytest.fixture
def rules(tmp_path):
    def written(text: str) -> dict[str, str]:
        (tmp_path / "rules").write_text(text)
        return {"STRETTO_RULES": str(tmp_path / "rules")}

    return written


@pytest.mark.parametrize(
    ("op", "where"),
    [
        ("bcast", "slot"),
        ("reduce", "slot"),
        ("allreduce", "slot"),
        ("allreduce", "node"),
        pytest.param("bcast", "node", marks=pytest.mark.long),
        pytest.param("reduce", "node", marks=pytest.mark.long),
    ],
)
def test_stripes_share_the_cards(mpi, make_cluster, program, rules, op, where):
    """Every host takes in, or puts out, the vector once (an allreduce twice, over two rounds), a half by each card."""
    if mpi.kind != "openmpi":
        pytest.skip("ranks have cards of their own with Open MPI only")
    cluster = make_cluster(leaves=1, hosts_per_leaf=4, nics=2)
    job = cluster.run(
        mpi,
        [program(mpi, "once.c"), op, str(BYTES), "5"],
        where=where,
        env=rules(f"{op}: hierarchy:stripes segment=64K\n"),
    ).ok()
    other = 300_000  # what the launcher sends, and the first call
    for host in cluster.names:
        first, second = job.links[host], job.links[f"{host}.1"]
        for way in ("up_bytes", "down_bytes"):
            assert abs(getattr(first, way) - getattr(second, way)) < 0.05 * BYTES + other, job.links
    in_all = sum(link.up_bytes for link in job.links.values())
    assert in_all == pytest.approx((8 if op == "allreduce" else 3) * BYTES, rel=0.06), job.links


def test_against_oracle(mpi, make_cluster, rules):
    if mpi.kind != "openmpi":
        pytest.skip("ranks have cards of their own with Open MPI only")
    cluster = make_cluster(leaves=1, hosts_per_leaf=4, nics=2)
    text = "".join(f"{op}: hierarchy:stripes segment=1K\n" for op in ("bcast", "reduce", "allreduce"))
    job = cluster.run(
        mpi,
        [harness.build_cxx(mpi, "reductions.cpp"), "--cases", "40", "--any-order"],
        env={**rules(text), "STRETTO_EXPLAIN": "1"},
        timeout=100,
    ).ok()
    assert "40 cases ok, with us" in job.stdout, job.describe()
    assert re.search(
        r"allreduce of \d+ bytes, 8 ranks: ours, .*by one rank for each network card at once", job.stderr
    ), job.describe()
