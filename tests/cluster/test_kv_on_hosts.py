# SPDX-License-Identifier: BSD-3-Clause
"""The store of a job between hosts.

Scopes, fences, waiting and refreshing work as on one host. The last test kills a host's runtime.
"""

from __future__ import annotations

import re
import threading
import time

import pytest
from pmix_programs import NEEDS_HEADER, kv_job, own_client

pytestmark = [NEEDS_HEADER, pytest.mark.every]  # the launcher of some is no PMIx server

CLIENTS = ["own", pytest.param("system", marks=pytest.mark.long)]


@pytest.fixture
def run(mpi, cluster, tmp_path, client):
    """run(mode, np, where) runs a job with the MPI's own PMIx client library or the system's."""
    if mpi.kind != "openmpi":
        pytest.skip("its launcher is no PMIx server")
    if client == "own" and not own_client(mpi):
        pytest.skip("it comes with none")
    env = own_client(mpi) if client == "own" else {}
    return lambda mode, np, where: cluster.run(mpi, [kv_job(), mode, tmp_path], np, where, env, False, timeout=120)


@pytest.mark.parametrize(
    ("np", "where", "hosts", "client"),
    [
        (4, "slot", 2, "own"),
        pytest.param(3, "node", 3, "system", marks=pytest.mark.long),
        pytest.param(8, "node", 4, "own", marks=pytest.mark.long),
    ],
)
def test_ranks_see_what_they_may(run, np, where, hosts):
    job = run("semantics", np, where).ok()
    said = sorted(re.findall(r"rank (\d+) of (\d+): (\d+) hosts, (\d+) elsewhere", job.stdout))
    assert said == [(str(r), str(np), str(hosts), str(np - np // hosts)) for r in range(np)], job.stdout


@pytest.mark.parametrize("client", CLIENTS)
def test_a_collecting_fence_asks_each_other_host_once(run, cluster):
    """Counts the questions: without whole bundles each rank would be asked, with the same results."""
    hosts = len(cluster.names)
    said = re.findall(r"rank \d+ on (\S+) asked (\d+)", run("questions", 2 * hosts, "slot").ok().stdout)
    assert len(said) == 2 * hosts
    for host in cluster.names:
        assert sum(int(n) for name, n in said if name == host) == 10 * (hosts - 1), said


@pytest.mark.parametrize("client", CLIENTS)
def test_the_runtime_of_a_host_is_killed(run, cluster, tmp_path):
    """Calls on that host soon end with an error, and its ranks still read what a fence collected.

    The runtime ends the other host's ranks, or they get errors, too.
    """
    victim = cluster.names[1]

    def kill():
        end = time.monotonic() + 60
        while len(list(tmp_path.glob("ready*"))) < 4 and time.monotonic() < end:
            time.sleep(0.1)
        cluster.execute(
            victim,
            "sh",
            "-c",
            "for p in /proc/[0-9]*; do case $(cat $p/comm) in orted|prted*) kill -9 ${p#/proc/};; esac; done",
        )

    killer = threading.Thread(target=kill)
    killer.start()
    run("lost", 4, "slot")
    killer.join()
    end = time.monotonic() + 30
    while cluster.processes(victim) and time.monotonic() < end:
        time.sleep(0.1)
    peer_gone = "-6 -6 -6 1 1\n"
    said = {path.name: path.read_text() for path in tmp_path.glob("said?")}
    assert said.get("said2") == said.get("said3") == peer_gone, said
    assert all(text == peer_gone for text in said.values()), said
