# SPDX-License-Identifier: BSD-3-Clause
"""The machine or cluster that measuring jobs run on, and the domains of their ranks there."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.cluster.levels import domains_of_levels, levels_of_domains
from stretto.cluster.plan import Domains, domains_of_plan, placement_text
from stretto.cluster.registry import ClusterError
from stretto.core.console import fail
from stretto.core.paths import build_root
from stretto.mpi import Mpi, choosing, launching, usable_cores

REFILL_MS = 3
TURNS = 5  # runs; their medians count
TIMES = ("time", "low", "high", "first")


@dataclass(frozen=True)
class Target:
    """This machine, or a cluster of namespaces, with the MPI to measure."""

    mpi: Mpi
    cluster: Cluster | None = None
    where: str = "slot"
    levels: str | None = None  # this machine's, as --levels names them

    # ---- jobs ------------------------------------------------------------------------------------

    def lines(
        self, ranks: int, argv: Sequence[str | Path], timeout: float, env: Mapping[str, str] | None = None
    ) -> Iterator[str]:
        """The lines that a job prints, as they come."""
        if self.cluster:
            return jobs.lines(self.cluster, self.mpi, argv, ranks, self.where, timeout, env)
        return launching.lines(self.mpi, self.mpi.command(ranks, argv, env or {}), timeout)

    @property
    def directory(self) -> Path:
        """A directory whose files all ranks can read."""
        return self.cluster.directory if self.cluster else build_root()

    def timed(
        self, ranks: int, program: Path, options: Sequence[str], repeat: int, texts: Sequence[str], timeout: float
    ) -> list[dict[str, Any]]:
        """The results of bench/schedules.cpp for each job in `texts`: medians over several runs,
        each with its share of the repetitions. Several runs, because the machine may be slower for
        the whole of one."""
        turns = min(TURNS, repeat)
        runs = [self._rows(ranks, [program, *options, str(-(-repeat // turns)), *texts], timeout) for _ in range(turns)]
        return [
            {**of_job[0], **{name: statistics.median(row[name] for row in of_job) for name in TIMES}}
            for of_job in zip(*runs)
        ]

    def _rows(self, ranks: int, argv: Sequence[str | Path], timeout: float) -> list[dict[str, Any]]:
        """The JSON objects that a run prints. Ends this process if the run fails."""
        done = self._run(ranks, argv, timeout)
        rows = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
        if done.returncode or not rows:
            fail(str(launching.failure(done.args, done.returncode, done.stderr or done.stdout)), 1)
        return rows

    def _run(self, ranks: int, argv: Sequence[str | Path], timeout: float) -> subprocess.CompletedProcess[str]:
        if self.cluster:
            return jobs.run(self.cluster, self.mpi, argv, ranks, self.where, timeout=timeout)
        return launching.capture(self.mpi, self.mpi.command(ranks, argv, {}), timeout=timeout)

    # ---- domains ---------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return f"{self.mpi.title} on cluster {self.cluster.plan.name}" if self.cluster else self.mpi.title

    def domains(self, ranks: int) -> Domains:
        if self.cluster:
            return domains_of_plan(self.cluster.plan, jobs.placement(self.cluster, ranks, self.where))
        return domains_of_levels(self.levels, ranks) if self.levels else {}

    def place(self, ranks: int) -> str:
        """The name of this placement in a profile's [[measured]]. It is that of --levels if domains
        are equal and their ranks neighbours."""
        domains = self.domains(ranks)
        regular = levels_of_domains(domains)
        return regular if regular is not None else placement_text(domains).replace("\n", "; ")

    def placement(self, ranks: int) -> list[str]:
        """Options that tell stretto-model and bench/schedules.cpp the domains of the ranks."""
        domains = self.domains(ranks)
        if not domains:
            return []
        text = placement_text(domains)
        file = self.directory / f"places.{zlib.crc32(text.encode()):08x}"
        file.write_text(text)
        return ["--places", str(file)]

    def crowd(self, ranks: int) -> list[str]:
        """Options for bench/schedules.cpp on a cluster: whether ranks share processors, and how
        long its links, which are token buckets, take to fill again."""
        if not self.cluster:
            return []
        return [*(["--crowded", "1"] if self.is_crowded(ranks) else []), "--rest", str(REFILL_MS)]

    def processors_of_a_pair(self) -> list[str]:
        """Options for bench/schedules.cpp on a cluster: a processor for each of two ranks, whose
        hosts may share one."""
        usable = sorted(os.sched_getaffinity(0))
        return ["--processors", f"{usable[0]},{usable[-1]}"] if self.cluster else []

    def is_crowded(self, ranks: int) -> bool:
        """Whether there are fewer processors than ranks."""
        if not self.cluster:
            return ranks > usable_cores()
        hosts = jobs.placement(self.cluster, ranks, self.where)
        return ranks > len(frozenset().union(*(self.cluster.processors(host) for host in hosts)))

    def shares(self, ranks: int) -> dict[str, Any]:
        """The [processors] of a profile: the lowest level whose domains have processors of their
        own, and their number."""
        assert self.cluster
        of_rank = [self.cluster.processors(host) for host in jobs.placement(self.cluster, ranks, self.where)]
        for level, of_ranks in self.domains(ranks).items():
            of_domain = {
                domain: frozenset().union(*(own for own, of in zip(of_rank, of_ranks) if of == domain))
                for domain in set(of_ranks)
            }
            count = min(map(len, of_domain.values()))
            if sum(map(len, of_domain.values())) == len(frozenset().union(*of_domain.values())):
                return {"level": level, "count": count}
        raise AssertionError("all ranks are in one domain of the outermost level")


def choose_target(mpi: str | None, cluster: str | None, where: str = "slot", levels: str | None = None) -> Target:
    """The target that the options of a command name."""
    if cluster is None:
        return Target(choosing.choose(mpi), levels=levels)
    if levels:
        fail("--levels or --cluster, not both")
    with plain_errors():
        found = Cluster.find(cluster)
        jobs.placement(found, found.plan.ranks, where)  # fails if a file of hosts is wrong
    return Target(choosing.choose(mpi), found, where)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Turns a ClusterError into a message."""
    try:
        yield
    except ClusterError as error:
        fail(str(error))
