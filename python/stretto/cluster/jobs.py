# SPDX-License-Identifier: BSD-3-Clause
"""MPI jobs on a cluster. The MPI's own launcher runs on the first host, with our remote shell in
place of ssh."""

from __future__ import annotations

import atexit
import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TextIO

from stretto.cluster import shell
from stretto.cluster.cluster import Cluster
from stretto.cluster.plan import domains_of_plan, placement_text
from stretto.cluster.registry import ClusterError
from stretto.cluster.wiring import Traffic
from stretto.core.paths import own_profile
from stretto.core.positions import Source
from stretto.mpi import Mpi, environments, launching
from stretto.mpi.launching import JobHangs

MERCY_S = 10  # between the request to end and SIGKILL


@dataclass
class Job(subprocess.CompletedProcess):
    """A finished job and its traffic on every link: messages, their headers, and the launcher's own
    traffic."""

    args: list[str]
    returncode: int
    stdout: str = ""
    stderr: str = ""
    seconds: float = 0.0
    links: dict[str, Traffic] = field(default_factory=dict)


# ---- what the launcher is told -------------------------------------------------------------------


def placement(cluster: Cluster, np: int, where: str) -> list[str]:
    """The host of every rank. `slot` fills host after host, `node` deals ranks out, and a file
    names one host per line."""
    hosts = [host.name for host in cluster.plan.hosts]
    if where == "slot":
        share = max(cluster.plan.ranks_per_host, -(-np // len(hosts)))
        return [hosts[rank // share] for rank in range(np)]
    if where == "node":
        return [hosts[rank % len(hosts)] for rank in range(np)]
    try:
        text = Path(where).read_text(errors="replace")
    except OSError as error:
        raise ClusterError(f"--map {where}: neither slot nor node, nor a readable file: {error.strerror}") from None
    source = Source(where, text)
    named = [(found[1].strip(), found.start(1)) for found in re.finditer(r"^[ \t]*([^\s#][^#\n]*)", text, re.MULTILINE)]
    for name, offset in named:
        if name not in hosts:
            raise ClusterError(source.at(offset, f"{name} is not a host of cluster {cluster.plan.name}"))
    if len(named) < np:
        raise ClusterError(source.at(len(text.rstrip()), f"hosts for {len(named)} ranks, but {np} are wanted"))
    return [name for name, _ in named[:np]]


def rank_defaults(cluster: Cluster, mpi: Mpi) -> dict[str, str]:
    """Options for ranks on a cluster: its switches, the rules of `stretto tune --cluster`, and
    yielding, because hosts share processors. Each job measures for itself, because links may change
    and other clusters have hosts of the same names: Stretto keeps no times where no cache is."""
    env = {"STRETTO_WAIT": "yield", "STRETTO_TOPOLOGY": str(cluster.network_file), **mpi.yielding}
    env["XDG_CACHE_HOME"] = str(cluster.temporary / "cache")
    rules = own_profile(cluster.plan.name).with_suffix(".rules")
    if rules.exists():
        env["STRETTO_RULES"] = str(rules)
    if mpi.kind == "mpich" and mpi.origin == "system":
        env["UCX_TLS"] = "tcp,self"  # with shared memory, Debian's MPICH may hang in MPI_Finalize
    return env


def command(
    cluster: Cluster,
    mpi: Mpi,
    hosts: Sequence[str],
    argv: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    extra: Sequence[str] = (),
) -> list[str]:
    """The launcher's command line for the first host, with one rank on each of `hosts`, in this
    order."""
    # With these words, every launcher starts ranks in the order of a host file.
    if mpi.kind == "openmpi":
        text = "".join(f"{host}\n" for host in hosts)
        words = ["--bind-to", "none", "--map-by", "seq", "--hostfile"]
    else:
        text = "".join(f"{host}:{len(list(ranks))}\n" for host, ranks in groupby(hosts))
        words = [
            "-launcher",
            "rsh",
            "-launcher-exec",
            str(cluster.agent),
            "-machinefile" if mpi.kind == "impi" else "-f",
        ]
    defaults = rank_defaults(cluster, mpi)
    if cluster.plan.nics > 1 and mpi.kind == "openmpi":
        argv = [cluster.own_card, *argv]
        defaults["STRETTO_PLACEMENT"] = _file(cluster, "places", placement_text(domains_of_plan(cluster.plan, hosts)))
    return mpi.command(len(hosts), argv, {**defaults, **(env or {})}, [*words, _file(cluster, "ranks", text), *extra])


def _file(cluster: Cluster, name: str, text: str) -> str:
    """A file with this text, which all hosts see until this process ends."""
    file = cluster.directory / f"{name}.{os.getpid()}.{zlib.crc32(text.encode()):08x}"
    file.write_text(text)
    atexit.register(file.unlink, missing_ok=True)
    return str(file)


def launching_environment(cluster: Cluster, mpi: Mpi) -> dict[str, str]:
    agents = {name: str(cluster.agent) for name in ("PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent")}
    # An ordinary user is root on his cluster's hosts.
    root = {f"{who}_ALLOW_RUN_AS_ROOT{word}": "1" for who in ("OMPI", "PRTE") for word in ("", "_CONFIRM")}
    return {**environments.clean_environment(mpi), **agents, **root, "TMPDIR": str(cluster.temporary)}


# ---- running it ----------------------------------------------------------------------------------


def start(
    cluster: Cluster, mpi: Mpi, line: Sequence[str], streams: Sequence[int] = (0, 1, 2), cwd: Path | None = None
) -> socket.socket:
    """Starts a launcher. shell.wait awaits its end; closing the connection asks it to end."""
    try:
        return shell.start(
            cluster.directory,
            cluster.plan.hosts[0].name,
            line,
            launching_environment(cluster, mpi),
            str(cwd or os.getcwd()),
            streams,
        )
    except OSError as error:
        raise ClusterError(f"host {cluster.plan.hosts[0].name} cannot be reached: {error.strerror}") from None


def run(
    cluster: Cluster,
    mpi: Mpi,
    argv: Sequence[str | Path],
    np: int | None = None,
    where: str = "slot",
    env: Mapping[str, str] | None = None,
    extra: Sequence[str] = (),
    timeout: float = 60,
    cwd: Path | None = None,
) -> Job:
    """Runs a job for its output and its traffic. If it does not end in time, everything on all
    hosts is ended, and JobHangs is raised."""
    line = command(cluster, mpi, placement(cluster, np or cluster.plan.ranks, where), argv, env, extra)
    before, begin = cluster.links(), time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull) as nothing:
        with start(cluster, mpi, line, (nothing.fileno(), out.fileno(), err.fileno()), cwd) as connection:
            status = _attend(cluster, connection, timeout)
        texts = [_text(stream) for stream in (out, err)]
    if status is None:
        raise JobHangs(f"not done within {timeout:.0f} s: {' '.join(line)}\n{texts[0][-3000:]}{texts[1][-3000:]}")
    seconds, after = time.monotonic() - begin, cluster.links()
    return Job(line, status, *texts, seconds, {name: after[name] - before[name] for name in after})


@contextmanager
def piped(cluster: Cluster, mpi: Mpi, line: Sequence[str]) -> Iterator[tuple[TextIO, Callable[[], tuple[int, str]]]]:
    """A job whose output is read while it runs, and a function that awaits its end and returns its
    status and errors. If the block ends first, the job is ended."""
    said, says = os.pipe()
    with tempfile.TemporaryFile("w+") as errors, open(os.devnull) as nothing, open(said) as output:
        with open(says, "w") as write_end:
            connection = start(cluster, mpi, line, (nothing.fileno(), says, errors.fileno()))
            write_end.close()  # the launcher has its own copy

        def end() -> tuple[int, str]:
            status = shell.wait(connection)
            errors.seek(0)
            return status, errors.read()

        with connection:
            yield output, end


def lines(
    cluster: Cluster,
    mpi: Mpi,
    argv: Sequence[str | Path],
    np: int,
    where: str,
    timeout: float,
    env: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """The lines that a job prints, as they come. Raises JobFailed. If no line comes for `timeout`
    seconds, everything on all hosts is ended, and JobHangs is raised."""
    line = command(cluster, mpi, placement(cluster, np, where), argv, env)
    with piped(cluster, mpi, line) as (output, end):
        try:
            yield from launching.lines_of(output.fileno(), line, timeout)
        except JobHangs:
            _end_everything(cluster)
            raise
        status, errors = end()
        if status:
            raise launching.failure(line, status, errors)


def _attend(cluster: Cluster, connection: socket.socket, timeout: float) -> int | None:
    if select.select([connection], [], [], timeout)[0]:
        return shell.wait(connection)
    shell.send_signal(connection, signal.SIGTERM)
    select.select([connection], [], [], MERCY_S)
    _end_everything(cluster)
    return None


def _end_everything(cluster: Cluster) -> None:
    for host in cluster.plan.hosts:
        cluster.kill(host.name)


def _text(stream) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")
