# SPDX-License-Identifier: BSD-3-Clause
"""Makes a cluster on this machine, finds it again, and runs commands on it.

A cluster is one PID namespace. Its first process is the fabric. It holds the network namespace with
the switches, and is the parent of all hosts. The first process of a host has namespaces of its own
(network, host name, IPC, mounts, PIDs) and is a remote-shell daemon.

So a cluster ends with its fabric, at once: the kernel ends all processes, and removes mounts, links
and namespaces with the last process that uses them. Until `up` has finished, the fabric ends with
the process that makes it. A cluster that does not stay ends with that process, too.

An ordinary user's cluster is in a user namespace as well, which belongs to the fabric. He is root
there, over the cluster's namespaces alone.

Outside the namespaces there is one directory of sockets and text files.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stretto.cluster import registry, shell, wiring
from stretto.cluster.plan import Plan
from stretto.cluster.prerequisites import UNSHARE, new_namespaces, why_not
from stretto.cluster.registry import ClusterError
from stretto.cluster.wiring import Traffic

PYTHON = [sys.executable, "-I", "-S"]


_lifelines: list[contextlib.ExitStack] = []  # clusters that end with this process


@dataclass(frozen=True)
class Cluster:
    """A cluster that is up."""

    plan: Plan

    @property
    def directory(self) -> Path:
        return registry.runtime() / self.plan.name

    @property
    def network_file(self) -> Path:
        return self.directory / "network"

    @property
    def agent(self) -> Path:
        """The program that launchers call in place of ssh."""
        return self.directory / "rsh"

    @property
    def own_card(self) -> Path:
        """The wrapper of programs on hosts with several network cards: each rank of Open MPI uses
        one of them."""
        return self.directory / "own-card"

    @property
    def temporary(self) -> Path:
        """The same path on every host, with a file system of its own on each."""
        return self.directory / "tmp"

    @property
    def shared(self) -> Path:
        """Memory that all hosts see, for measuring programs that must synchronise without a
        message."""
        return self.directory / "shared"

    # ---- making, finding, taking away ------------------------------------------------------------

    @classmethod
    def up(cls, plan: Plan, stays: bool = True) -> Cluster:
        """Makes a cluster. Unless it `stays`, it ends with this process."""
        if reason := why_not():
            raise ClusterError(reason)
        cluster = cls(plan)
        with registry.one_at_a_time():
            if registry.is_alive(plan.name):
                raise ClusterError(f"cluster {plan.name} is up already")
            for dead in registry.dead_names():
                registry.end(dead)
            cluster._write_files()
            try:
                cluster._start(stays)
            except BaseException:
                registry.end(plan.name)
                raise
        return cluster

    @classmethod
    def find(cls, name: str = "default") -> Cluster:
        try:
            plan = Plan(**json.loads((registry.runtime() / name / "cluster.json").read_text()))
        except (OSError, ValueError, TypeError):
            raise ClusterError(f"there is no cluster {name}; stretto cluster up makes one") from None
        if not registry.is_alive(name):
            raise ClusterError(f"cluster {name} is dead; stretto cluster down clears what it left")
        return cls(plan)

    def down(self) -> None:
        registry.take_down(self.plan.name)

    def _write_files(self) -> None:
        self.temporary.mkdir(parents=True)
        self.shared.mkdir()
        files = {
            "hosts": self.plan.hosts_text(),
            "network": self.plan.network_text(),
            "rsh": f'#!/bin/sh\nexec {shlex.join([*PYTHON, shell.__file__, "call", str(self.directory)])} "$@"\n',
        }
        for name, text in files.items():
            (self.directory / name).write_text(text)
        self.agent.chmod(0o755)
        self.own_card.write_text(
            "#!/bin/sh\n"
            f"export OMPI_MCA_btl_tcp_if_include=eth$((OMPI_COMM_WORLD_LOCAL_RANK % {self.plan.nics}))\n"
            'exec "$@"\n'
        )
        self.own_card.chmod(0o755)

    def _start(self, stays: bool) -> None:
        with contextlib.ExitStack() as stack:
            lifeline = stack.enter_context(self._start_fabric())
            self.execute(registry.FABRIC, "mount", "-t", "tmpfs", "tmpfs", str(self.shared))  # hosts inherit this mount
            usable = sorted(os.sched_getaffinity(0))
            started = {
                host.name: self._start_host(host.name, self.plan.processors(i, usable))
                for i, host in enumerate(self.plan.hosts)
            }
            for host, said in started.items():
                _await_ready(said, f"host {host}")
            pids = {host: shell.first_process(self.directory, host) for host in started}
            try:
                wiring.wire(self.plan, self.fabric, pids)
            except wiring.WiringError as error:
                raise ClusterError(f"the network cannot be made: {error}") from None
            # the cluster is complete from here on
            (self.directory / "cluster.json").write_text(json.dumps(self.plan.as_json()) + "\n")
            if stays:
                lifeline.write(b"keep")
                lifeline.flush()
            else:
                _lifelines.append(stack.pop_all())

    def _start_fabric(self) -> IO[bytes]:
        line = [
            *new_namespaces(),
            *PYTHON,
            shell.__file__,
            "serve",
            str(shell.socket_of(self.directory, registry.FABRIC)),
            "--lifeline",
        ]
        process = subprocess.Popen(
            line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=login_environment(self),
            cwd="/",
        )
        assert process.stdin and process.stdout
        _await_ready(os.dup(process.stdout.fileno()), "the fabric")
        process.stdout.close()
        return process.stdin

    def _start_host(self, host: str, processors: Sequence[int]) -> int:
        """Has the fabric start a host. Returns the descriptor of the host's output."""
        words = shlex.join([*PYTHON, shell.__file__, "serve", str(shell.socket_of(self.directory, host))])
        script = "; ".join(
            [
                f"hostname {host}",
                "mount -t tmpfs -o mode=1777 tmpfs /dev/shm",
                f"mount -t tmpfs -o mode=1777 tmpfs {self.temporary}",
                f"mount --bind {self.directory}/hosts /etc/hosts",
                # Libraries identify a machine by its boot id.
                f"cat /proc/sys/kernel/random/uuid >{self.directory}/{host}.boot_id",
                f"mount --bind {self.directory}/{host}.boot_id /proc/sys/kernel/random/boot_id",
                f"exec taskset --cpu-list {','.join(map(str, processors))} {words}",
            ]
        )
        connection, said = self._begin(registry.FABRIC, [*UNSHARE, "sh", "-ec", script], stay=True)
        connection.close()
        return said

    # ---- looking and touching --------------------------------------------------------------------

    @property
    def fabric(self) -> int:
        """The first process of the cluster."""
        try:
            return shell.first_process(self.directory, registry.FABRIC)
        except OSError:
            raise ClusterError(f"cluster {self.plan.name} is dead") from None

    def links(self) -> dict[str, Traffic]:
        """The traffic of every link since the cluster came up, by the name of the link's lower end."""
        return wiring.count(self.plan, self.fabric)

    def execute(self, host: str, *argv: str) -> str:
        """Runs a command on a host as root, as after a login, and returns its output."""
        connection, said = self._begin(host, argv)
        with connection, open(said, errors="replace") as text:
            output = text.read()
            status = shell.wait(connection)
        if status:
            raise ClusterError(f"{host}: {shlex.join(argv)}: exit status {status}\n{output}".rstrip())
        return output

    def _begin(self, host: str, argv: Sequence[str], stay: bool = False) -> tuple[socket.socket, int]:
        """Starts a command. Returns its connection and the descriptor of its output."""
        said, says = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            return shell.start(
                self.directory, host, argv, login_environment(self), streams=(nothing, says, says), stay=stay
            ), said
        except OSError as error:
            os.close(said)
            raise ClusterError(f"host {host} cannot be reached: {error.strerror}") from None
        finally:
            os.close(says)
            os.close(nothing)

    def processors(self, host: str) -> frozenset[int]:
        """The processors of this machine that a host's programs run on."""
        return frozenset(os.sched_getaffinity(shell.first_process(self.directory, host)))

    def processes(self, host: str) -> list[str]:
        """Command lines that run on a host, without its daemon."""
        listed = self.execute(
            host,
            "sh",
            "-c",
            'for p in /proc/[0-9]*; do [ "${p#/proc/}" = 1 ] || [ "${p#/proc/}" = $$ ] || '
            'tr "\\0" " " <$p/cmdline && echo; done 2>/dev/null; true',
        )
        return [line.strip() for line in listed.splitlines() if line.strip() and not line.startswith("tr ")]

    def kill(self, host: str) -> None:
        """Kills all programs of a host and waits until they have ended, at most 10 s. The host's daemon stays."""
        with contextlib.suppress(ClusterError):
            self.execute(host, "sh", "-c", "kill -KILL -1")
            # A killed process ends when it gets a processor, on a loaded machine late.
            end = time.monotonic() + 10
            while self.processes(host) and time.monotonic() < end:
                time.sleep(0.02)


def login_environment(cluster: Cluster) -> dict[str, str]:
    """The environment after a remote login, without the caller's own variables."""
    kept = {k: os.environ[k] for k in ("LANG", "LC_ALL", "USER", "SHELL", "TERM") if k in os.environ}
    return {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": os.environ.get("HOME", "/root"),
        **kept,
        "TMPDIR": str(cluster.temporary),
    }


def _await_ready(said: int, who: str) -> None:
    """Waits until a daemon listens. Raises ClusterError with its output if it ends before."""
    text = b""
    with open(said, "rb", buffering=0) as stream:
        while not text.endswith(b"ready\n"):
            if not select.select([stream], [], [], registry.START_S)[0]:
                raise ClusterError(f"{who} does not start: {text.decode(errors='replace').strip()}")
            part = stream.read(4096)
            if not part:
                raise ClusterError(f"{who} cannot be started: {text.decode(errors='replace').strip()}")
            text += part
