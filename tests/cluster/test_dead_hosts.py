# SPDX-License-Identifier: BSD-3-Clause
"""Hosts die and links break in the middle of collectives.

The job ends in time, its messages tell the user what to do, and no process stays behind.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dead_peer
import harness
import pytest

SAID_BY_LAUNCHERS = (
    r"lost communication|disconnected|process manager error|BAD TERMINATION|fatal error|"
    r"exited on signal|exited abnormally|daemon exit status"
)


@contextlib.contextmanager
def accident(running: Path, cause: Callable[[], None]) -> Iterator[list[float]]:
    """Causes the accident as soon as the program makes its calls. The list gets the time of it."""
    happened: list[float] = []

    def wait_and_cause() -> None:
        while not running.exists():
            time.sleep(0.05)
        happened.append(time.monotonic())
        cause()

    threading.Thread(target=wait_and_cause, daemon=True).start()
    yield happened


@pytest.mark.parametrize(
    ("op", "preload"),
    [
        ("allreduce", True),
        pytest.param("bcast", True, marks=pytest.mark.long),
        pytest.param("allreduce", False, marks=pytest.mark.long),
    ],
    ids=["allreduce", "bcast", "without"],
)
def test_a_host_that_dies_ends_the_job(mpi, cluster, program, tmp_path, op, preload):
    running = tmp_path / "running"
    with accident(running, lambda: cluster.kill(cluster.names[2])) as happened:
        job = cluster.run(mpi, [program(mpi, "endless.c"), running, op], preload=preload, timeout=40)
    assert time.monotonic() - happened[0] < 20, job.output
    assert re.search(SAID_BY_LAUNCHERS, job.output, re.IGNORECASE), job.output
    assert job.returncode != 0 or mpi.kind == "openmpi"  # whose launcher complains, but may return 0
    assert cluster.leftovers() == []


def test_a_host_that_dies_ends_calls_with_requests(mpi, cluster, tmp_path):
    running, there = tmp_path / "running", cluster.names[2]
    program = harness.build_program(mpi, "dead_peer.c")
    with harness.nothing_left(), accident(running, lambda: cluster.kill(there)) as happened:
        job = cluster.run(mpi, [program, "host", running], env=dead_peer.ON, timeout=40)
    assert time.monotonic() - happened[0] < 20 and "is wrong" not in job.output, job.output
    assert job.returncode != 0 or mpi.kind == "openmpi", job.output
    named = [line for line in job.messages() if "has died, or the connection to it is gone" in line]
    assert all(re.search(rf"rank [45] on {there} has died", line) for line in named), job.output
    assert cluster.leftovers() == []


@pytest.mark.one_mpi
def test_all_ranks_of_all_hosts_hear_of_a_dead_one(mpi, cluster, tmp_path):
    line = dead_peer.line(mpi, tmp_path, 8, "test", 5, "late")
    with harness.nothing_left():
        job = cluster.run(mpi, line, env=dead_peer.ON, timeout=40)
    dead_peer.check_all_heard(dead_peer.texts(job, tmp_path, 8), 5)


@pytest.fixture
def mended(cluster):
    """A cluster whose hosts a test may cut off. The fixture connects them again afterwards.

    During the test TCP gives up after 6 seconds, not after 15 minutes. Keepalives do not help where
    data is on its way. The daemon of a host that is cut off may have output of its ranks to pass on.
    """

    def retry(times: int) -> None:
        for name in cluster.names:
            cluster.execute(name, "sysctl", "-qw", f"net.ipv4.tcp_retries2={times}")

    retry(4)
    yield cluster
    for name in cluster.names:
        cluster.mend(name)
    retry(15)


@pytest.mark.one_mpi
@pytest.mark.parametrize(
    ("op", "served"),
    [
        ("bcast", "schedule"),
        pytest.param("allreduce", "schedule", marks=pytest.mark.long),
        pytest.param("barrier", "mpi", marks=pytest.mark.long),
    ],
    ids=["bcast", "allreduce", "barrier"],
)
def test_a_link_that_breaks_ends_the_job(mpi, mended, program, tmp_path, monkeypatch, op, served):
    """A rank that waits names the ranks that it waits for, and the time limit ends all ranks.

    No message says that the host is gone, and no process checks it. Open MPI's launcher would wait
    for ever for the daemon that it does not reach. So the test makes its keepalives frequent.
    """
    if mpi.kind == "impi":
        pytest.skip("its launcher waits for ever for a host that it does not reach")
    for name, value in (("time", 2), ("intvl", 1), ("probes", 2)):
        for prefix in ("PRTE", "OMPI"):
            monkeypatch.setenv(f"{prefix}_MCA_oob_tcp_keepalive_{name}", str(value))
    limit_s = 7 if mpi.kind == "openmpi" else 3
    there = mended.names[2]
    running = tmp_path / "running"
    options = {f"STRETTO_{op.upper()}": served, "STRETTO_WATCHDOG": "1", "STRETTO_TIMEOUT": str(limit_s)}
    with accident(running, lambda: mended.cut(there)) as happened:
        job = mended.run(mpi, [program(mpi, "endless.c"), running, op], env=options, timeout=60)
    seconds = time.monotonic() - happened[0]
    text = "\n".join(job.messages())
    if served == "schedule":
        said = (
            rf"watchdog: MPI_{op.title()} \(.*65536 bytes\) has stood still for 1 s: "
            r"call \d+ by schedule on a communicator of 8 ranks; "
        )
        assert re.search(said + rf"rank [0-367] on \S+ waits for data of: [^;]*[45] on {there}", text), job.describe()
    else:
        assert f"watchdog: MPI_{op.title()}, which is left to the MPI, has not ended for 1 s" in text, job.describe()
    assert f"STRETTO_TIMEOUT: MPI_{op.title()} has not ended for {limit_s} s" in text or re.search(
        SAID_BY_LAUNCHERS, job.output
    ), job.describe()
    assert seconds < limit_s + 10 and (job.returncode != 0 or mpi.kind == "openmpi"), (
        f"{seconds:.1f} s\n{job.describe()}"
    )
    assert mended.leftovers(limit_s + 10) == []
