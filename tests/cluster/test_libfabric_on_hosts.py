# SPDX-License-Identifier: BSD-3-Clause
"""Long messages of Stretto's connections by libfabric, over the cluster's links: the provider `tcp`."""

from __future__ import annotations

import ctypes
import re

import harness
import pytest
from stretto.native import programs

BYTES = 300_003
FABRIC = {"STRETTO_OVERLAP": "65536", "STRETTO_FABRIC": "tcp", "STRETTO_EXPLAIN": "1"}


@pytest.fixture(autouse=True)
def _libfabric():
    """Some MPIs bring their own. A test does not depend on which."""
    try:
        ctypes.CDLL("libfabric.so.1")
    except OSError as error:
        pytest.skip(f"no libfabric: {error}")


@pytest.fixture
def two_hosts(make_cluster):
    cluster = make_cluster(leaves=1, hosts_per_leaf=2, ranks_per_host=2)
    yield cluster
    assert cluster.leftovers() == []


def came_by_libfabric(job) -> int:
    (found,) = re.findall(r"connections: (\d+) bytes have come to rank 0 by libfabric", job.stderr)
    return int(found)


@pytest.mark.parametrize("guard", ["auto", *(pytest.param(each, marks=pytest.mark.long) for each in ("user", "segv"))])
def test_whatever_a_program_does(mpi, two_hosts, guard):
    env = {**FABRIC, "STRETTO_OVERLAP_GUARD": guard}
    line = [harness.build_program(mpi, "under_way.c"), BYTES]
    job = two_hosts.run(mpi, line, env=env, timeout=200).ok()
    results = job.results()
    assert len(results) >= 18 and [r["case"] for r in results if r["wrong"] != 0] == [], job.describe()
    assert sum(r["early"] for r in results) > 0, job.describe()
    assert "long messages go by libfabric, provider tcp" in job.stderr, job.describe()
    assert came_by_libfabric(job) >= len(results) * BYTES, job.describe()


def test_an_example_has_one_result(mpi, two_hosts):
    line, sums = [programs.compiled(mpi, "sample_sort"), "--keys", "200000", "--repeat", "12"], set()
    for overlap in ("off", "on", "auto", "65536"):
        job = two_hosts.run(mpi, line, env={**FABRIC, "STRETTO_OVERLAP": overlap}, timeout=120).ok()
        sums |= set(re.findall(r"^checksum (\w{16})$", job.stdout, re.MULTILINE))
        if overlap == "65536":
            assert came_by_libfabric(job) > 0, job.describe()
    assert len(sums) == 1, sums


def test_a_dead_rank_is_named(mpi, two_hosts):
    line = [harness.build_program(mpi, "under_way.c"), 1 << 20, "killed"]
    job = two_hosts.run(mpi, line, where="node", env=FABRIC, timeout=60)
    said = [text for text in job.messages() if "returned early" in text]
    died = re.compile(r"rank [0-3] on \S+ has died, or the connection to it is gone")
    assert all(died.search(text) for text in said), job.describe()
    assert job.returncode != 0 and job.seconds < 40, job.describe()


@pytest.mark.one_mpi
def test_a_provider_that_is_not_there_is_said_once(mpi, two_hosts):
    line = [harness.build_program(mpi, "under_way.c"), BYTES, "read"]
    job = two_hosts.run(mpi, line, env={**FABRIC, "STRETTO_FABRIC": "slingshot"}, timeout=60).ok()
    (said,) = [text for text in job.messages() if "STRETTO_FABRIC has no effect" in text]
    assert "no such provider" in said
    assert job.stderr.count("connections: no libfabric: ") == 1, job.describe()


def test_calls_with_requests_use_it(mpi, two_hosts):
    env = {"STRETTO_NONBLOCKING": "on", "STRETTO_FABRIC": "tcp", "STRETTO_EXPLAIN": "1"}
    line = [programs.compiled(mpi, "requests"), "1", "8"]
    job = two_hosts.run(mpi, line, env=env, timeout=120).ok()
    assert came_by_libfabric(job) > 0, job.describe()
