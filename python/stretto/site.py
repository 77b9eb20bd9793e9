# SPDX-License-Identifier: BSD-3-Clause
"""Where measuring jobs run: on this machine or on a cluster of namespaces, and in which domains their ranks are there."""
from __future__ import annotations

import contextlib
import json as jsons
import subprocess
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from stretto import job, launch, places
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster, ClusterError
from stretto.cluster.plan import Domains, domains_of_plan, placement_text
from stretto.console import fail
from stretto.mpi import Mpi, usable_cores

MpiName = Annotated[Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + launch.MPI_HELP)]
ClusterName = Annotated[Optional[str], typer.Option("--cluster", metavar="NAME", help="On this cluster of namespaces ([b]stretto cluster up[/]) instead of "
                                                    "on this machine alone.", show_default=False)]
Map = Annotated[str, typer.Option("--map", metavar="MAP", help="Where ranks go on a cluster, as of [b]stretto cluster run[/].")]

REFILL_MS = 3
# Of src/topo/seat.hpp, lowest first; messages on those beyond the machine's go through a network.
MACHINE_LEVELS = ("core", "l2", "l3", "numa", "socket", "node")
LEVELS = (*MACHINE_LEVELS, "leaf", *(f"switch{n}" for n in range(2, 9)))


@dataclass(frozen=True)
class Site:
    mpi: Mpi
    cluster: Cluster | None = None
    where: str = "slot"
    levels: str | None = None  # of this machine, as --levels has them

    # ---- jobs ---------------------------------------------------------------------------------------------------------------

    def lines(self, ranks: int, argv: Sequence[str | Path], timeout: float, env: Mapping[str, str] | None = None) -> Iterator[str]:
        """What a job says, as it says it."""
        if self.cluster:
            return jobs.lines(self.cluster, self.mpi, argv, ranks, self.where, timeout, env)
        return job.lines(self.mpi, self.mpi.command(ranks, argv, env or {}), timeout)

    @property
    def directory(self) -> Path:
        """Whose files all ranks can read."""
        return self.cluster.directory if self.cluster else places.build_root()

    def rows(self, ranks: int, argv: Sequence[str | Path], timeout: float) -> list[dict[str, Any]]:
        """The JSON objects that a job prints. A job that fails ends this process with its words."""
        done = self._run(ranks, argv, timeout)
        rows = [jsons.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
        if done.returncode or not rows:
            fail(str(job.failure(done.args, done.returncode, done.stderr or done.stdout)), 1)
        return rows

    def _run(self, ranks: int, argv: Sequence[str | Path], timeout: float) -> subprocess.CompletedProcess[str]:
        if self.cluster:
            return jobs.run(self.cluster, self.mpi, argv, ranks, self.where, timeout=timeout)
        return job.capture(self.mpi, self.mpi.command(ranks, argv, {}), timeout=timeout)

    # ---- places -------------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return f"{self.mpi.title} on cluster {self.cluster.plan.name}" if self.cluster else self.mpi.title

    def domains(self, ranks: int) -> Domains:
        if self.cluster:
            return domains_of_plan(self.cluster.plan, jobs.placement(self.cluster, ranks, self.where))
        return domains_of_levels(self.levels, ranks) if self.levels else {}

    def place(self, ranks: int) -> str:
        """What a profile's [[measured]] calls this place: as --levels has it, where domains are equal and their ranks neighbours."""
        domains = self.domains(ranks)
        regular = levels_of_domains(domains)
        return regular if regular is not None else placement_text(domains).replace("\n", "; ")

    def placement(self, ranks: int) -> list[str]:
        """Where the ranks are, for stretto-model and for bench/schedules.cpp."""
        domains = self.domains(ranks)
        if not domains:
            return []
        text = placement_text(domains)
        file = self.directory / f"places.{zlib.crc32(text.encode()):08x}"
        file.write_text(text)
        return ["--places", str(file)]

    def crowd(self, ranks: int) -> list[str]:
        """For bench/schedules.cpp: hosts of a cluster do not know what they share, and its links are token buckets, which fill again in this time."""
        if not self.cluster:
            return []
        return [*(["--crowded", "1"] if self.is_crowded(ranks) else []), "--rest", str(REFILL_MS)]

    def is_crowded(self, ranks: int) -> bool:
        return ranks > usable_cores()


def choose(mpi: str | None, cluster: str | None, where: str = "slot", levels: str | None = None) -> Site:
    if cluster is None:
        return Site(launch.choose(mpi), levels=levels)
    if levels:
        fail("--levels or --cluster, not both")
    with plain_errors():
        return Site(launch.choose(mpi), Cluster.find(cluster), where)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    try:
        yield
    except ClusterError as error:
        fail(str(error))


# ---- domains -----------------------------------------------------------------------------------------------------------------

def checked_levels(levels: Optional[str]) -> Optional[str]:
    """Callback of --levels: levels that there are, each above the one before."""
    if levels is None:
        return None
    below = ""
    for part in levels.split(","):
        name, _, number = part.partition(":")
        if not name or not number.isdecimal() or int(number) == 0:
            fail(f"--levels: '{part}': NAME:N expected, N 1 or more, as in node:2,leaf:2")
        if name not in LEVELS:
            fail(f"--levels: '{part}': no such level: one of {', '.join(LEVELS)}")
        if below and LEVELS.index(name) <= LEVELS.index(below) and (below, name) != ("numa", "l3"):  # an L3 may span NUMA nodes
            fail(f"--levels: {name} after {below}: from the lowest up, which is {', '.join(LEVELS)}")
        below = name
    return levels


def domains_of_levels(levels: str, ranks: int) -> Domains:
    domains: Domains = {}
    each = 1
    for part in levels.split(","):
        name, _, number = part.partition(":")
        each *= int(number)
        domains[name] = [rank // each for rank in range(ranks)]
    return domains


def levels_of_domains(domains: Domains) -> str | None:
    """The other way round; None: they are not all of one size and of neighbours."""
    words, below = [], 1
    for name, of_ranks in domains.items():
        each = of_ranks.count(of_ranks[0])
        order = {domain: number for number, domain in enumerate(dict.fromkeys(of_ranks))}
        if each % below or any(order[domain] != rank // each for rank, domain in enumerate(of_ranks)):
            return None
        words.append(f"{name}:{each // below}")
        below = each
    return ",".join(words)
