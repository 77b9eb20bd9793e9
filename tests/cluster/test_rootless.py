# SPDX-License-Identifier: BSD-3-Clause
"""Clusters of an ordinary user: jobs run, links keep their rates, nothing stays, and a refusal is one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from stretto.cluster import Cluster, prerequisites

ROOT = Path(__file__).resolve().parents[2]
USER = 61234  # of nobody here
PLACES = os.pathsep.join([str(ROOT / "python"), sysconfig.get_path("purelib")])
UP = (
    "from stretto.cluster import *; import sys; cluster = Cluster.up(Plan('rootless', ranks_per_host=1), stays=False)\n"
)
# An interpreter that setpriv starts with root's last rights may not start again without them.
PROBE = """import subprocess, sys; subprocess.run([sys.executable, "-c", ""], check=True)
from stretto.cluster import why_not; print(why_not())"""

Begin = Callable[..., subprocess.Popen[str]]


def begin_as_user(python: str, home: Path, *words: str | Path) -> subprocess.Popen[str]:
    line = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", python, "-B", "-uc", *map(str, words)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": PLACES}
    pipe = subprocess.PIPE
    return subprocess.Popen(line, env=environment, cwd="/", stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture
def begin() -> Iterator[Begin]:
    """begin(script, *arguments) -> a Python process of an ordinary user."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root, who becomes an ordinary user")
    home = Path(tempfile.mkdtemp(prefix="stretto-rootless-"))
    shutil.chown(home, USER, USER)
    try:
        for python in (sys.executable, "/usr/bin/python3"):  # root's own may be out of reach
            tried = begin_as_user(python, home, PROBE)
            if (said := tried.communicate()[0]) == "None\n":
                break
        else:
            pytest.skip(f"no ordinary user makes a cluster here: {said}")
        yield lambda *words: begin_as_user(python, home, *words)
    finally:
        shutil.rmtree(home)


def finished(process: subprocess.Popen[str], seconds: float = 100) -> str:
    said, errors = process.communicate(timeout=seconds)
    assert process.returncode == 0, said + errors
    return said


def processes() -> list[str]:
    listed = subprocess.run(["ps", "-u", str(USER), "-o", "pid=,args="], capture_output=True, text=True).stdout
    return listed.splitlines()


def assert_nothing_stays() -> None:
    end = time.monotonic() + 10
    while processes() and time.monotonic() < end:
        time.sleep(0.05)
    assert processes() == []
    assert not Path(f"/tmp/stretto-clusters-{USER}").exists()
    assert [path for path in Path("/dev/shm").iterdir() if path.lstat().st_uid == USER] == []


@pytest.mark.one_mpi
@pytest.mark.xdist_group("rootless")
def test_an_ordinary_user_runs_a_job_between_hosts(begin: Begin, mpi, program) -> None:
    script = UP + (
        "from stretto.mpi import finding\n"
        "job = run(cluster, finding.find(sys.argv[1]), [sys.argv[2]], 4, 'node')\n"
        "print(job.stdout, job.stderr, job.returncode, min(each.both_bytes for each in job.links.values()) > 0)\n"
        "cluster.down()"
    )
    said = finished(begin(script, mpi.mpiexec, program(mpi, "hello.c")))
    assert "0 True" in said and all(f"rootless-{host}" in said for host in range(4)), said
    assert_nothing_stays()


@pytest.mark.xdist_group("rootless")
def test_nothing_stays_when_the_maker_or_the_fabric_dies(begin: Begin) -> None:
    maker = begin(UP + "print('up'); sys.stdin.read()")
    assert maker.stdout and maker.stdout.readline() == "up\n" and len(processes()) > 5
    maker.kill()
    maker.communicate()
    finished(begin("from stretto.cluster import *; Cluster.up(Plan('next', leaves=1), stays=False).down()"))
    assert_nothing_stays()
    script = UP + (
        "import os, signal\n"
        "os.kill(cluster.fabric, signal.SIGKILL)\n"
        "from stretto.cluster import registry; registry.take_down('rootless')"
    )
    finished(begin(script))
    assert_nothing_stays()


# ---- rates ---------------------------------------------------------------------------------------

RATE_BPS, UPLINK_BPS, SECONDS = 100_000_000, 50_000_000, 1.5
PAYLOAD, FRAME = 1448, 1514  # bytes of a full segment: the program's, and with headers
RECEIVE = """import socket, sys, time
server = socket.create_server(("", 7000)); print("ready", flush=True)
peer, got = server.accept()[0], 0
first = peer.recv(1 << 20); begin = time.monotonic()
while part := peer.recv(1 << 20): got += len(part)
print(8 * got / (time.monotonic() - begin))"""
SEND = """import socket, sys
socket.create_connection((sys.argv[1], 7000)).sendall(bytes(int(sys.argv[2])))"""


def rate_between(cluster: Cluster, sender: str, receiver: str, rate_bps: int) -> float:
    """Bits per second that one connection carries, with headers."""
    connection, said = cluster._begin(receiver, [sys.executable, "-c", RECEIVE])
    with connection, open(said) as text:
        assert text.readline() == "ready\n"
        cluster.execute(sender, sys.executable, "-c", SEND, receiver, str(round(rate_bps / 8 * SECONDS)))
        return float(text.read()) * FRAME / PAYLOAD


@pytest.mark.parametrize(("receiver", "rate_bps"), [(1, RATE_BPS), (2, UPLINK_BPS)])
def test_links_keep_their_rates(make_cluster, receiver: int, rate_bps: int) -> None:
    """Within 5%, by one of three tries: a busy machine may stop the receiver for a while."""
    cluster = make_cluster(ranks_per_host=1, host_rate_bps=RATE_BPS, uplink_rate_bps=UPLINK_BPS)
    rates: list[float] = []
    while len(rates) < 3 and not (rates and abs(rates[-1] / rate_bps - 1) < 0.05):
        rates.append(rate_between(cluster, cluster.names[0], cluster.names[receiver], rate_bps))
    assert abs(rates[-1] / rate_bps - 1) < 0.05, rates


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", prerequisites.FORBIDDING)
def test_a_refusal_names_the_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str) -> None:
    file = tmp_path / setting.replace(".", "/")
    file.parent.mkdir()
    value = prerequisites.FORBIDDING[setting]
    file.write_text(f"{value}\n")
    monkeypatch.setattr(prerequisites, "SETTINGS", tmp_path)
    monkeypatch.setattr(prerequisites, "is_root", lambda: False)
    monkeypatch.setattr(prerequisites, "TOOLS", {})
    monkeypatch.setattr(prerequisites, "UNSHARE", ["false"])
    monkeypatch.setattr(prerequisites, "AS_USER", [])
    assert prerequisites.why_not() == f"{setting}={value} forbids user namespaces"


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "TOOLS", {"tc-that-is-missing": "iproute2"})
    reason = prerequisites.why_not()
    assert reason == "tc-that-is-missing is not installed (Debian: apt-get install iproute2)"
