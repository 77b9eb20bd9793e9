# SPDX-License-Identifier: BSD-3-Clause
"""Calls that have returned early, and whose data do not come: the watchdog and `stretto top` say so.

The last rank stops itself at once, while its slow link has hardly taken any data. The others do
something with what is missing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time

import harness
import pytest
from stretto.commands.top import jobs

pytestmark = [pytest.mark.one_mpi]
RATE_BPS = 200_000_000
CALL = r"nothing of MPI_Alltoall has moved for [1-9] s: call 2 of those that may return early on communicator \d of"


@pytest.fixture
def two_hosts(make_cluster):
    made = make_cluster(leaves=1, hosts_per_leaf=2, ranks_per_host=2, host_rate_bps=RATE_BPS)
    yield made
    assert made.leftovers() == []


def run(cluster, mpi, how, ranks=2, seconds=3, where="node", words=(), **env):
    line = [harness.build_program(mpi, "stands_still.c"), how, seconds, *words]
    env = {"STRETTO_OVERLAP": "65536", "STRETTO_WATCHDOG": "1", **env}
    return cluster.run(mpi, line, ranks, where, env, timeout=90)


def check(job) -> str:
    """The data were right in the end. Returns what was said."""
    results = job.ok().results()
    assert results and all(r["early"] == 1 and r["wrong"] == 0 for r in results), job.describe()
    return "\n".join(job.messages())


@pytest.mark.parametrize(
    ("how", "guard", "does"),
    [
        ("touch", "auto", "a thread waits for its data where it touches them, for [0-9] s"),
        ("touch", "user", "a thread waits for its data where it touches them, for [0-9] s"),
        ("write", "user", "a thread waits for its data in a system call, for [0-9] s"),
        ("send", "user", "a thread waits for its data in a function of MPI, for [0-9] s"),
        ("compute", "user", "no thread waits for its data here"),
    ],
)
def test_what_does_not_come_is_named(mpi, two_hosts, how, guard, does):
    job = run(two_hosts, mpi, how, STRETTO_OVERLAP_GUARD=guard)
    said = rf"{CALL} 2 ranks, which has returned; {does}; data are missing from: 1 on \S+ \(\d+ bytes\); its own"
    assert len(re.findall(said, check(job))) == 1, job.describe()


def test_a_rank_that_waits_for_data_holds_up_a_neighbour(mpi, two_hosts):
    job = run(two_hosts, mpi, "neighbour", 3, 4, where="slot")
    text = check(job)
    assert re.search("MPI_Barrier has not ended .* waiting: 0; missing: 1; through: none", text), job.describe()
    assert "rank 1 waits for data of call 2 (MPI_Alltoall) from rank 2: that call has returned early" in text, (
        job.describe()
    )


def test_a_time_limit_ends_who_waits_for_data(mpi, two_hosts):
    job = run(two_hosts, mpi, "touch", seconds=12, STRETTO_TIMEOUT="2")
    assert job.returncode != 0, job.describe()
    said = "data of MPI_Alltoall, which has returned early, have not come for [2-4] s, and this rank waits for them"
    assert re.search(f"rank 0: error: STRETTO_TIMEOUT: {said}", "\n".join(job.messages())), job.describe()


def test_top_shows_whose_data_a_rank_waits_for(mpi, two_hosts, tmp_path):
    harness.build_program(mpi, "stands_still.c")
    program, name = jobs.looker(), str(tmp_path)  # the last word of its command, by which it is found
    made, view, waiting = [], {}, []  # who waits for data, in the view that is looked at
    job = threading.Thread(target=lambda: made.append(run(two_hosts, mpi, "touch", 2, 16, "node", [name])))
    job.start()
    end = time.monotonic() + 60
    while job.is_alive() and time.monotonic() < end and waiting != [0]:  # at the end both wait for a short time
        pids = [str(p["pid"]) for p in jobs.survey(program)["processes"] if name in p["command"]]
        line = [sys.executable, "-m", "stretto", "top", *pids[:1], "--json", "-"]
        done = subprocess.run(line, env=harness.clean_environment(), capture_output=True, text=True, check=False)
        view = json.loads(done.stdout) if pids and done.returncode == 0 else {}
        waiting = [row["rank"] for row in view.get("rows", ()) if row["by"] == "deferred"]
    job.join()
    check(made[0])
    assert waiting == [0], view
    first, _ = view["rows"]
    assert (first["rank"], first["doing"], first["by"], first["waits_for"]) == (0, "alltoall", "deferred", [1]), view
    (call,) = first["deferred"]
    assert (call["call"], call["waits"], call["missing"][0]["rank"]) == (2, "touch", 1), view
    assert first["time_waiting"] > 0.5 and first["waiting_s"] <= call["returned_s"], view
    assert [h["rank"] for h in view["held_up"]] in ([], [1]), view
