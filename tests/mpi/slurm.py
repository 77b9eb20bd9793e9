# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm in a folder of its own: munge, controller, and a daemon for each node.

Its nodes are this machine, on the loopback, or the hosts of a cluster of namespaces. The daemons end
with the block that starts them. Nothing of Slurm's own configuration on this machine is read.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import stretto
from stretto.native import build

CONFIGURATION = """
ClusterName=test
SlurmctldHost={nodes[0].name}({nodes[0].address})
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SwitchType=switch/none
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdTimeout=8
KillWait=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
PartitionName=main Nodes={names} Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:8
"""
# Control groups keep a job to its processors where they can be written.
CGROUPS = {
    "slurm.conf": "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup,task/affinity\n",
    "cgroup.conf": "CgroupPlugin=cgroup/v1\nConstrainCores=yes\n",
}
NO_CGROUPS = {"slurm.conf": "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/affinity\n"}


@dataclass(frozen=True)
class Node:
    """A node of Slurm, and the words before a command that runs there."""

    name: str
    address: str
    cpus: int
    enter: Sequence[str] = ()


@dataclass
class Slurm:
    """A Slurm that runs."""

    folder: Path
    nodes: Sequence[Node]
    daemons: dict[str, subprocess.Popen] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.variables}

    def here(self, *words: object) -> list[str]:
        """The command line that runs a command on the first node, where users log in."""
        return [*self.nodes[0].enter, *map(str, words)]

    def call(self, *words: object) -> str:
        """The output of a command of Slurm, which must succeed."""
        return subprocess.run(
            self.here(*words), env=self.environment, capture_output=True, text=True, check=True, timeout=30
        ).stdout

    def states(self) -> dict[str, str]:
        lines = subprocess.run(
            self.here("sinfo", "-h", "-N", "-o", "%N %T"), env=self.environment, capture_output=True, text=True
        ).stdout
        found = dict(line.split() for line in lines.splitlines())
        return {node.name: found.get(node.name, "unknown") for node in self.nodes}

    def start(self, name: str, line: Sequence[str], node: Node) -> None:
        with open(self.folder / f"{name}.out", "w") as out:
            self.daemons[name] = subprocess.Popen(
                [*node.enter, *line], env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def start_node(self, node: Node) -> None:
        self.start(f"slurmd on {node.name}", ["slurmd", "-D"], node)

    def wait_until_idle(self) -> None:
        wait_until(lambda: set(self.states().values()) == {"idle"}, "the nodes do not come up")

    def end(self) -> None:
        for process in reversed(self.daemons.values()):
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        remove_control_groups(self.nodes)


def remove_control_groups(nodes: Sequence[Node]) -> None:
    """Slurm leaves those that it makes. One that still has a process stays."""
    for node in nodes:
        for group in Path("/sys/fs/cgroup").glob(f"*/slurm_{node.name}"):
            for folder in [*sorted((f for f in group.rglob("*/") if f.is_dir()), reverse=True), group]:
                with contextlib.suppress(OSError):
                    folder.rmdir()


def is_installed() -> bool:
    return os.geteuid() == 0 and all(shutil.which(name) for name in ("munged", "slurmctld", "slurmd", "srun", "sinfo"))


def this_machine() -> list[Node]:
    return [Node(socket.gethostname().split(".")[0], "127.0.0.1", len(os.sched_getaffinity(0)))]


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]


@contextlib.contextmanager
def running(folder: Path, nodes: Sequence[Node], files: dict[str, str]) -> Iterator[Slurm]:
    """A Slurm whose nodes take jobs. TimeoutError if they never do. The files go beside slurm.conf; a
    text for slurm.conf itself is added to it."""
    slurm = Slurm(folder, nodes)
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    lines = [f"NodeName={n.name} NodeAddr={n.address} CPUs={n.cpus} State=UNKNOWN\n" for n in nodes]
    text = "".join(lines) + CONFIGURATION.format(
        nodes=nodes, names=",".join(n.name for n in nodes), ports=_free_ports(2), folder=folder
    )
    for name, more in {"slurm.conf": "", **files}.items():
        (folder / name).write_text(text + more if name == "slurm.conf" else more)
    names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    munge = [f"--{option}={folder}/munge.{suffix}" for option, suffix in names.items()]
    try:
        slurm.start("munged", ["munged", "--foreground", "--force", *munge], nodes[0])
        wait_until(lambda: (folder / "munge.socket").exists(), "munged does not start")
        slurm.start("slurmctld", ["slurmctld", "-D"], nodes[0])
        for node in nodes:
            slurm.start_node(node)
        slurm.wait_until_idle()
        yield slurm
    finally:
        slurm.end()


def wait_until(true: Callable[[], object], complaint: str, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(complaint)
        time.sleep(0.1)


def plugin(folder: Path) -> dict[str, str]:
    """The file that adds `srun --stretto`; nothing where Slurm's headers are missing. `folder` gets a command
    `stretto`, as an installation has it."""
    try:
        library = build.ensure_built("release", ["stretto-spank"]) / "stretto-spank.so"
    except build.BuildError:
        return {}
    command, package = folder / "stretto", Path(stretto.__file__).parents[1]
    command.write_text(f'#!/bin/sh\nPYTHONPATH={package} exec {sys.executable} -m stretto "$@"\n')
    command.chmod(0o755)
    return {"plugstack.conf": f"optional {library} stretto={command}\n"}


def control() -> dict[str, str]:
    """Files that have Slurm keep jobs to their processors by control groups, if it can do so here."""
    writable = all(os.access(f"/sys/fs/cgroup/{name}", os.W_OK) for name in ("cpuset", "freezer"))
    return CGROUPS if writable else NO_CGROUPS
