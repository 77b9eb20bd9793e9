# SPDX-License-Identifier: BSD-3-Clause
"""Part 4: four hosts on Ethernet, and a Fourier transform whose Alltoall returns early."""

from __future__ import annotations

import os
import re
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from stretto.bench.verdicts import of_ratios
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import Plan
from stretto.cluster.prerequisites import why_not
from stretto.cluster.registry import ClusterError
from stretto.core.console import fail, working
from stretto.demo import timed
from stretto.demo.part import Clock, Outcome, Part, Request, Skip, bars, describe, shown
from stretto.mpi import environments, launching
from stretto.mpi.launching import JobHangs
from stretto.native.build import library_for

ABOUT = "four hosts on Ethernet: a 3-D Fourier transform, overlap off and on"
HOSTS, LEAVES, LIMIT_S = 4, 2, 30
SIZE, REPEAT = "96", "4"
# The name of each way of running it, and Stretto's options there. None: without Stretto.
WAYS: dict[str, dict[str, str] | None] = {"without": None, "with": {}, "overlap": {"STRETTO_OVERLAP": "on"}}


def prepare(request: Request) -> Path:
    if reason := why_not():
        raise Skip(reason)
    return timed.compiled(request.mpi, "fft3d")


@contextmanager
def four_hosts() -> Iterator[Cluster]:
    """They end with this process, however it ends."""
    cluster = Cluster.up(Plan(f"demo-{os.getpid()}", LEAVES, HOSTS // LEAVES, 1), stays=False)
    try:
        yield cluster
    finally:
        cluster.down()


def once(cluster: Cluster, request: Request, program: Path, env: dict[str, str]) -> tuple[float, str]:
    """Seconds of a transform, and the checksum."""
    line = [program, "--size", SIZE, "--repeat", REPEAT]
    job = jobs.run(cluster, request.mpi, line, HOSTS, "slot", env, timeout=LIMIT_S)
    said = re.search(r"^checksum (\w+)\nseconds per transform ([\d.]+)", job.stdout, re.MULTILINE)
    if job.returncode or not said:
        fail(str(launching.failure(job.args, job.returncode, job.stdout + job.stderr)), 1)
    return float(said[2]), said[1]


def run(request: Request, program: Path, clock: Clock) -> Outcome:
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    checksums = set()
    library = library_for(request.mpi.abi)
    env = {
        way: {} if settings is None else environments.rank_environment(library, settings)
        for way, settings in WAYS.items()
    }
    try:
        with working("four hosts: a Fourier transform"), four_hosts() as cluster:
            while len(times["with"]) < request.repeat and (clock.left > 0 or len(times["with"]) < 3):
                for way in WAYS:
                    took, checksum = once(cluster, request, program, env[way])
                    times[way].append(took)
                    checksums.add(checksum)
    except (ClusterError, JobHangs) as error:
        fail(str(error), 1)
    return conclude(request, times, len(checksums) == 1)


def conclude(request: Request, times: dict[str, list[float]], identical: bool) -> Outcome:
    ratios = {of: [a / b for a, b in zip(times["overlap"], times[of])] for of in ("without", "with")}
    words, colour = of_ratios(ratios["without"])
    of_overlap, _ = of_ratios(ratios["with"])
    medians = [shown(statistics.median(times[way])) for way in WAYS]
    verdict = (
        f"FFT on {HOSTS} hosts: {medians[0]} without Stretto, {medians[1]} with, {medians[2]} with overlap: "
        f"{words} (overlap beside none: {of_overlap})"
    )
    if not identical:
        verdict, colour = "FFT: the results differ: this is a bug of ours, please report it", "bold red"
    what = f"examples/fft3d.c, {SIZE}^3 elements, links of 1 and 0.5 Gbit/s, medians of {len(times['with'])} runs"
    return Outcome(
        verdict,
        colour,
        [describe(what, request.mpi, HOSTS)],
        {
            **{f"{way}_s": each for way, each in times.items()},
            "ratio": statistics.median(ratios["without"]),
            "overlap_ratio": statistics.median(ratios["with"]),
            "identical": identical,
        },
        [partial(panel, times=times)],
        not identical,
    )


def panel(axis: Any, times: dict[str, list[float]]) -> None:
    names = {"without": "without", "with": "with Stretto", "overlap": "with overlap"}
    bars(axis, "Four hosts on Ethernet: FFT", {name: times[way] for way, name in names.items()})


PART = Part("hosts", ABOUT, 18, prepare, run)
