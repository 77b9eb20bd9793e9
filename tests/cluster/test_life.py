# SPDX-License-Identifier: BSD-3-Clause
"""Clusters come and go by up, status and down, also after accidents. Nothing stays behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stretto.cluster import Cluster, ClusterError, Plan, registry, wiring

ROOT = Path(__file__).resolve().parents[2]


def stretto(*arguments: str, prefix: tuple[str, ...] = (), ok: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "stretto", "cluster", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert not ok or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def name(make_cluster):  # make_cluster skips where no cluster is possible
    """A name of this test's own. The fixture takes down what has that name afterwards."""
    one = f"life{os.getpid()}"
    yield one
    if one in registry.names():
        registry.take_down(one)


def processes(name: str) -> list[str]:
    """All processes of a cluster, as this machine sees them."""
    shown = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if str(registry.runtime() / name) in line]


def gone(name: str) -> bool:
    """Whether all processes of a cluster end by themselves."""
    end = time.monotonic() + 10
    while (left := processes(name)) and time.monotonic() < end:
        time.sleep(0.02)
    return not left


def traces(name: str) -> dict[str, object]:
    """What lies in the places where a cluster could leave something."""
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if name in line]
    return {
        "processes": processes(name),
        "links": re.findall(r"^\S+", links, re.MULTILINE),
        "mounts": mounts,
        "named namespaces": sorted(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else [],
        "files": [
            str(p) for folder in (registry.runtime(), Path("/tmp"), Path("/dev/shm")) for p in folder.glob(f"*{name}*")
        ],
    }


def test_up_status_down(name, tmp_path):
    before = traces(name)
    said = stretto(
        "up", "--name", name, "--leaves", "3", "--hosts", "1", "--ranks", "1", "--uplink-rate", "200M"
    ).stdout
    assert f"cluster {name} is up: 3 leaf switches x 1 hosts x 1 ranks" in said and len(processes(name)) >= 4
    status = json.loads(stretto("status", "--name", name, "--json", "-").stdout)
    assert [h["name"] for h in status["hosts"]] == [f"{name}-{i}" for i in range(3)]
    assert {link["rate_bps"] for link in status["links"]} == {10**9, 2 * 10**8}
    assert Path(status["network_file"]).read_text().splitlines()[1] == f"{name}-0 leaf0 spine"
    table = stretto("status", "--name", name).stdout
    assert f"{name}-2 - leaf2" in table and "200 Mbit/s" in table
    assert f"cluster {name} is gone" in stretto("down", "--name", name).stdout
    assert traces(name) == before


def test_run_leaves_no_files_and_tells_of_too_many_ranks(name):
    cluster = Cluster.up(Plan(name, leaves=1, ranks_per_host=1))
    before = sorted(cluster.directory.iterdir())
    two, three = (
        stretto("run", "--name", name, "-n", n, "--without", "--", "sleep", "1", ok=False) for n in ("2", "3")
    )
    assert (
        "3 ranks, but cluster" in three.stderr and "was made for 2" in three.stderr and "was made for" not in two.stderr
    )
    assert sorted(cluster.directory.iterdir()) == before


def test_hosts_are_hosts(name):
    """Each host has its own name, its own files in /dev/shm and $TMPDIR, and its own processes.

    Its network reaches the other hosts and nothing else.
    """
    cluster = Cluster.up(Plan(name, leaves=1, ranks_per_host=1))
    first, second = f"{name}-0", f"{name}-1"
    assert cluster.execute(first, "hostname").strip() == first
    cluster.execute(first, "sh", "-c", "echo x >/dev/shm/mine; echo x >$TMPDIR/mine; sleep 50 >/dev/null 2>&1 &")
    assert cluster.execute(
        second, "sh", "-c", "ls /dev/shm $TMPDIR; grep -l sleep /proc/[0-9]*/comm || true"
    ).split() == ["/dev/shm:", f"{cluster.temporary}:"]
    assert cluster.processes(first) == ["sleep 50"] and not (cluster.temporary / "mine").exists()
    assert cluster.execute(second, "getent", "hosts", first).split() == ["10.77.0.1", first]
    assert cluster.execute(first, "ip", "-brief", "route").splitlines() == [
        "10.77.0.0/24 dev eth0 proto kernel scope link src 10.77.0.1 "
    ]
    for number, host in enumerate((first, second)):
        assert cluster.processors(host) == frozenset(cluster.plan.processors(number, sorted(os.sched_getaffinity(0))))
        assert int(cluster.execute(host, "nproc")) == len(cluster.processors(host))
    assert (
        len(
            {
                cluster.execute(h, "readlink", f"/proc/self/ns/{kind}")
                for h in (first, second)
                for kind in ("net", "uts", "ipc", "mnt", "pid")
            }
        )
        == 10
    )
    assert cluster.execute(first, "cat", "/proc/sys/net/ipv4/tcp_congestion_control") == "reno\n", (
        "never the machine's: BBR rests"
    )
    assert cluster.execute(first, "cat", "/proc/sys/kernel/random/boot_id") != cluster.execute(
        second, "cat", "/proc/sys/kernel/random/boot_id"
    )
    cluster.kill(first)
    assert cluster.processes(first) == []
    cluster.down()
    assert processes(name) == []


def test_the_same_name_twice(name):
    Cluster.up(Plan(name, leaves=1, hosts_per_leaf=1))
    again = stretto("up", "--name", name, ok=False)
    assert again.returncode == 2 and "is up already" in again.stderr
    assert len(Cluster.find(name).plan.hosts) == 1


@pytest.mark.parametrize("seconds", [0.2, 0.5, 0.8])
def test_up_that_is_killed_half_way_leaves_nothing(name, seconds):
    before = traces(name)
    line = [
        "-c",
        f"from stretto.cluster import *; Cluster.up(Plan({name!r}, hosts_per_leaf=15)); "
        "print('up'); import time; time.sleep(50)",
    ]
    maker = subprocess.Popen(
        [sys.executable, "-u", *line],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    time.sleep(seconds)
    maker.send_signal(signal.SIGKILL)
    if maker.communicate()[0] == "":  # not up yet: the fabric ends with its maker
        assert gone(name)
        with pytest.raises(ClusterError):
            Cluster.find(name)
    if name in registry.names():
        registry.take_down(name)
    assert traces(name) == before


def test_a_cluster_that_does_not_stay_ends_with_its_maker(name):
    line = (
        f"from stretto.cluster import *; Cluster.up(Plan({name!r}, leaves=1), stays=False); "
        "print('up'); import time; time.sleep(50)"
    )
    maker = subprocess.Popen(
        [sys.executable, "-uc", line],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
    )
    assert maker.stdout.readline() == "up\n" and len(Cluster.find(name).execute(f"{name}-1", "hostname")) > 0
    maker.kill()
    maker.communicate()
    assert gone(name)
    Cluster.up(Plan(f"{name}x", leaves=1), stays=False).down()
    assert name not in registry.names(), "the next one clears what the dead one left"


def test_up_that_fails_leaves_nothing(name, monkeypatch):
    before = traces(name)
    monkeypatch.setattr(wiring, "host_script", lambda *_: "ip link set nonesuch up")
    with pytest.raises(ClusterError, match="nonesuch"):
        Cluster.up(Plan(name))
    assert traces(name) == before


def test_a_cluster_whose_fabric_died(name):
    cluster = Cluster.up(Plan(name, leaves=1))
    with registry.one_at_a_time():  # else a test beside this one, which makes a cluster, clears the dead one
        os.kill(cluster.fabric, signal.SIGKILL)
        end = time.monotonic() + 10
        while registry.is_alive(name) and time.monotonic() < end:
            time.sleep(0.02)
        said = stretto("status", "--name", name, ok=False)
    assert said.returncode == 2 and "is dead" in said.stderr
    Cluster.up(Plan(name, leaves=1, hosts_per_leaf=1)).down()


def test_a_user_who_may_not_make_namespaces_is_told_so(name):
    for command in (["up"], ["run", "true"]):
        said = stretto(command[0], "--name", name, *command[1:], prefix=("unshare", "--user"), ok=False)
        assert said.returncode == 2 and "namespaces are refused here: unshare: " in said.stderr, said.stderr


def test_no_such_cluster(name):
    for command in ("status", "down"):
        said = stretto(command, "--name", name, ok=False)
        assert said.returncode == 2 and f"there is no cluster {name}" in said.stderr, said.stderr
