# SPDX-License-Identifier: BSD-3-Clause
"""Part 4: four hosts on Ethernet, and stochastic gradient descent between them."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import Plan
from stretto.cluster.prerequisites import TOOLS, is_root, why_not
from stretto.cluster.registry import ClusterError
from stretto.core.console import fail, working
from stretto.demo import timed
from stretto.demo.part import Clock, Outcome, Part, Request, Skip, compare_pairs, describe, medians
from stretto.demo.pictures import COLUMNS, bars
from stretto.mpi import environments, launching
from stretto.mpi.launching import JobHangs
from stretto.native.build import library_for

ABOUT = "Four hosts on Ethernet: data-parallel SGD"
HOSTS, LEAVES, PER_HOST, LIMIT_S = 4, 2, 2, 30
RANKS = HOSTS * PER_HOST
STEPS, FEATURES = "200", "16384"
LEAST_PAIRS = 2


def prepare(request: Request) -> Path:
    if is_root():
        install_tools()
    if reason := why_not():
        raise Skip(reason)
    return timed.compiled(request.mpi, "sgd")


def install_tools() -> None:
    """Installs Debian's packages of the tools that make links, as a checkout does with compilers."""
    lacking = sorted({package for tool, package in TOOLS.items() if not shutil.which(tool)})
    if lacking and shutil.which("apt-get"):
        with working(f"installing {' '.join(lacking)}"):
            subprocess.run(["apt-get", "-q", "-y", "install", *lacking], capture_output=True, check=False)


@contextmanager
def four_hosts() -> Iterator[Cluster]:
    """They end with this process, however it ends."""
    cluster = Cluster.up(Plan(f"demo-{os.getpid()}", LEAVES, HOSTS // LEAVES, PER_HOST), stays=False)
    try:
        yield cluster
    finally:
        cluster.down()


def once(cluster: Cluster, request: Request, program: Path, env: dict[str, str]) -> tuple[float, int]:
    """The seconds that the program says, and the bytes that crossed the busiest link between switches."""
    job = jobs.run(cluster, request.mpi, [program, STEPS, FEATURES], RANKS, "node", env, timeout=LIMIT_S)
    took = timed.seconds_in(job.stdout)
    if job.returncode or took is None:
        fail(str(launching.failure(job.args, job.returncode, job.stdout + job.stderr)), 1)
    return took, max(job.links[link.name].both_bytes for link in cluster.plan.links if link.is_uplink)


def run(request: Request, program: Path, clock: Clock) -> Outcome:
    times: dict[str, list[float]] = {way: [] for way in timed.WAYS}
    moved: dict[str, list[int]] = {way: [] for way in timed.WAYS}
    env = {"without": {}, "with": environments.rank_environment(library_for(request.mpi.abi), {})}
    try:
        with working("four hosts: SGD"), four_hosts() as cluster:
            while len(times["with"]) < request.repeat and (clock.left > 0 or len(times["with"]) < LEAST_PAIRS):
                for way in timed.WAYS:
                    took, crossed = once(cluster, request, program, env[way])
                    times[way].append(took)
                    moved[way].append(crossed)
    except (ClusterError, JobHangs) as error:
        fail(str(error), 1)
    return conclude(request, times, {way: round(statistics.median(each)) for way, each in moved.items()})


def conclude(request: Request, times: dict[str, list[float]], moved: dict[str, int]) -> Outcome:
    without, with_it = times.values()
    seen, gain, colour, ratio = compare_pairs(f"SGD on {HOSTS} hosts", without, with_it)
    megabytes = [f"{moved[way] / 1e6:.0f} MB" for way in timed.WAYS]
    job = f"examples/sgd.c, an Allreduce of 128 KiB in each step, {medians(len(without))}"
    job = f"{job}, {PER_HOST} ranks a host, dealt in turn, links of 1 and 0.5 Gbit/s"
    return Outcome(
        seen,
        colour,
        [describe(job, request.mpi, RANKS)],
        {"without_s": without, "with_s": with_it, "ratio": ratio, "busiest_link_bytes": moved},
        [partial(bars, title=ABOUT, columns=dict(zip(COLUMNS, times.values())))],
        gain,
        f"the busiest link carries {megabytes[0]} without, {megabytes[1]} with",
    )


PART = Part("hosts", ABOUT, 18, prepare, run)
