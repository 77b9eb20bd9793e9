# SPDX-License-Identifier: BSD-3-Clause
"""MPI jobs between hosts: where ranks are, what crosses which link, and how fast."""

from __future__ import annotations

import pytest
from stretto.cluster import ClusterError
from stretto.mpi.launching import JobHangs

BYTES, TIMES = 6_250_000, 3  # a twentieth of a second of a host's link, a tenth of an uplink's
ALL = BYTES * TIMES


def hosts_of_ranks(job) -> list[str]:
    results = sorted(job.results(), key=lambda r: r["rank"])
    assert [r["rank"] for r in results] == list(range(len(results)))
    assert all(r["sum"] == sum(range(len(results))) for r in results)
    return [r["host"] for r in results]


@pytest.mark.parametrize(
    "preload", [pytest.param(True, id="with"), pytest.param(False, id="without", marks=pytest.mark.long)]
)
def test_ranks_fill_hosts(mpi, cluster, program, preload):
    job = cluster.run(mpi, [program(mpi, "hello.c")], preload=preload).ok()
    assert hosts_of_ranks(job) == [name for name in cluster.names for _ in range(2)]


def test_ranks_are_dealt_out(mpi, cluster, program):
    assert hosts_of_ranks(cluster.run(mpi, [program(mpi, "hello.c")], where="node").ok()) == cluster.names * 2


@pytest.mark.one_mpi
def test_ranks_go_where_a_file_says(mpi, cluster, program, tmp_path):
    order = [cluster.names[i] for i in (3, 0, 0, 2, 3)]
    (tmp_path / "map").write_text("# one host per rank\n" + "\n".join(order) + "\n")
    assert hosts_of_ranks(cluster.run(mpi, [program(mpi, "hello.c")], 5, str(tmp_path / "map")).ok()) == order


@pytest.mark.one_mpi
def test_files_that_place_no_ranks(mpi, cluster, tmp_path):
    (tmp_path / "map").write_text("elsewhere\n")
    for where, message in (("nowhere", "neither slot nor node"), (str(tmp_path / "map"), "elsewhere is not a host")):
        with pytest.raises(ClusterError, match=message):
            cluster.run(mpi, ["true"], where=where)


def send(cluster, mpi, program, to: int):
    job = cluster.run(mpi, [program(mpi, "sendrecv.c"), "0", str(to), str(BYTES), str(TIMES)], preload=False).ok()
    return job, job.results()[0]["seconds"]


@pytest.mark.alone
def test_counters_and_rates_across_the_spine(mpi, cluster, program):
    job, seconds = send(cluster, mpi, program, 7)
    sender, receiver = cluster.names[0], cluster.names[3]
    crossed = (
        job.links[sender].up_bytes,
        job.links["leaf0"].up_bytes,
        job.links["leaf1"].down_bytes,
        job.links[receiver].down_bytes,
    )
    for count in crossed:
        assert ALL <= count <= 1.05 * ALL + 300_000, job.links  # headers, and what the launcher sends
    untouched = (job.links[sender].down_bytes, job.links["leaf1"].up_bytes, job.links[cluster.names[1]].both_bytes)
    assert max(untouched) < 0.05 * ALL, job.links
    assert 0.97 <= seconds / (BYTES * 8 / cluster.plan.uplink_rate_bps) <= 1.7


@pytest.mark.alone
@pytest.mark.one_mpi
def test_rates_below_one_leaf_switch(mpi, cluster, program):
    job, seconds = send(cluster, mpi, program, 3)
    assert max(traffic.both_bytes for traffic in cluster.uplinks(job)) < 0.05 * ALL, job.links
    assert 0.97 <= seconds / (BYTES * 8 / cluster.plan.host_rate_bps) <= 1.9


@pytest.mark.one_mpi
def test_messages_on_one_host_cross_no_link(mpi, cluster, program):
    job, _ = send(cluster, mpi, program, 1)
    assert max(traffic.both_bytes for traffic in job.links.values()) < 0.05 * ALL, job.links


@pytest.mark.one_mpi
def test_a_job_that_does_not_end_is_ended(mpi, cluster, program, tmp_path):
    with pytest.raises(JobHangs):
        cluster.run(mpi, [program(mpi, "endless.c"), tmp_path / "running"], preload=False, timeout=4)
    assert cluster.leftovers() == []
