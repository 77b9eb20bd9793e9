# SPDX-License-Identifier: BSD-3-Clause
"""A simulated cluster. SimGrid's SMPI runs bench/simulated.cpp on it, with one thread per rank."""

from __future__ import annotations

import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stretto.core.console import fail, note
from stretto.core.paths import root
from stretto.native import build, programs


@dataclass(frozen=True)
class Network:
    """Nodes on leaf switches, and these on spine switches. Rates are in GB/s, latencies in
    microseconds."""

    nodes: int
    per_node: int
    per_leaf: int  # 0: all nodes on one switch
    spines: int = 2
    link: float = 12.5
    link_us: float = 1.0
    memory: float = 8.0
    memory_us: float = 0.3
    overhead_us: float = 0.0  # processor time for each message, at either end
    eager_bytes: int = 0  # shorter messages do not wait for a posted receive

    @property
    def ranks(self) -> int:
        return self.nodes * self.per_node

    @property
    def levels(self) -> str:
        return f"node:{self.per_node}" + (f",leaf:{self.per_leaf}" if self.per_leaf else "")

    def platform(self) -> str:
        tree = (
            ' topology="FAT_TREE" '
            f'topo_parameters="2;{self.per_leaf},{self.nodes // self.per_leaf};1,{self.spines};1,1"'
            if self.per_leaf
            else ""
        )
        return (
            "<?xml version='1.0'?>\n"
            '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
            f'  <cluster id="cluster" prefix="n" radical="0-{self.nodes - 1}" suffix="" speed="1Gf" '
            f'bw="{self.link}GBps" lat="{self.link_us}us" '
            f'loopback_bw="{self.memory}GBps" loopback_lat="{self.memory_us}us"{tree}/>\n</platform>\n'
        )


OF_SMPI = "mpi:1:0"  # a candidate: what SMPI's selector chooses
PRESETS = {
    "switches": Network(64, 36, 16),  # the example of Kurnosov 2023
    "wide": Network(10, 128, 0),
}


def network_of(text: str) -> Network:
    if text in PRESETS:
        return PRESETS[text]
    parts = text.split("x")
    if len(parts) not in (2, 3) or not all(p.isdigit() and int(p) > 0 for p in parts):
        fail(f"{text}: {', '.join(PRESETS)} or NODESxRANKS[xNODES-PER-LEAF]")
    nodes, per_node, *per_leaf = map(int, parts)
    if per_leaf and nodes % per_leaf[0] != 0:
        fail(f"{text}: {nodes} nodes do not fill leaf switches of {per_leaf[0]}")
    return Network(nodes, per_node, per_leaf[0] if per_leaf and per_leaf[0] < nodes else 0)


class Simulation:
    """smpirun on one network. `seconds` limits the simulation of one call."""

    def __init__(self, network: Network, folder: Path, seconds: float) -> None:
        self.network, self.folder, self.seconds = network, folder, seconds
        (folder / "platform.xml").write_text(network.platform())
        (folder / "hosts").write_text("".join(f"n{i}:{network.per_node}\n" for i in range(network.nodes)))
        self.program = compile_simulated(folder)
        self.running: set[subprocess.Popen[bytes]] = set()
        self.stopped = False

    def key(self) -> str:
        """A hash of all that the times depend on."""
        headers = sorted((root() / "bench").glob("*.hpp"))
        inputs = programs.programs()["simulated"].inputs()
        texts = [file.read_bytes() for file in (*inputs, *headers, self.folder / "platform.xml")]
        words = [word for word in self.line([], "") if word != str(self.program)]
        version = build.run_tool(["smpirun", "--version"])
        return hashlib.sha256(b"".join(texts) + json.dumps([*words, version]).encode()).hexdigest()[:16]

    def stop(self) -> None:
        """Ends the running simulations, and each_time with them. Called from another thread."""
        self.stopped = True
        for process in list(self.running):
            kill_session(process)

    def times(self, jobs: Sequence[str], selector: str = "ompi") -> list[float] | None:
        """Simulated seconds of several jobs; None: one took too long."""
        found = []
        with closing(self.each_time(jobs, selector)) as times:
            for time in times:
                if time is None:
                    return None
                found.append(time)
        return found

    def each_time(self, jobs: Sequence[str], selector: str = "ompi") -> Generator[float | None, None, None]:
        """Simulated seconds of several jobs, as they come. None stands for a job that took too
        long, and for SMPI's own collective if it failed: its Bcast of 64 KiB as MPICH's among 2,304
        ranks ends in a deadlock.

        Jobs share a process, because SMPI's first call takes minutes to find out which ranks share
        a node. After a None, the other jobs run in a new process.
        """
        done = 0
        while done < len(jobs) and not self.stopped:
            with tempfile.TemporaryFile() as said, self.simulating(self.line(jobs[done:], selector), said) as process:
                try:
                    for row in rows_of(process, self.seconds):
                        done += 1
                        yield float(json.loads(row)["time"])
                    if (process.wait() != 0 or done < len(jobs)) and not self.stopped:
                        said.seek(0)
                        words = said.read().decode(errors="replace").strip()[-400:]
                        if done == len(jobs) or not jobs[done].endswith(OF_SMPI):
                            fail(f"smpirun ended with {process.returncode}: {words}")
                        note(f"SMPI's own {jobs[done].removesuffix(f':{OF_SMPI}')} as {selector} would do it: {words}")
                except TooLong:
                    pass
            if done < len(jobs) and not self.stopped:
                done += 1
                yield None

    @contextmanager
    def simulating(self, line: list[str], said: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(line, cwd=self.folder, stdout=subprocess.PIPE, stderr=said, start_new_session=True)
        self.running.add(process)
        try:
            if self.stopped:  # stop() has not seen this process
                kill_session(process)
            yield process
        finally:
            kill_session(process)
            process.communicate()
            self.running.remove(process)

    def line(self, jobs: Sequence[str], selector: str) -> list[str]:
        network = self.network
        costs = (
            [f"--cfg=smpi/{side}:0:{network.overhead_us * 1e-6}:0" for side in ("os", "ois", "or")]
            if network.overhead_us
            else []
        )
        costs += [f"--cfg=smpi/async-small-thresh:{network.eager_bytes}"] if network.eager_bytes else []
        return [
            "smpirun",
            "-np",
            str(network.ranks),
            "-platform",
            "platform.xml",
            "-hostfile",
            "hosts",
            "--cfg=smpi/privatization:no",
            "--cfg=smpi/simulate-computation:no",
            f"--cfg=smpi/coll-selector:{selector}",
            "--log=root.thres:error",
            *costs,
            str(self.program),
            network.levels,
            *jobs,
        ]


class TooLong(Exception):
    """No row has come within the time limit."""

    pass


def rows_of(process: subprocess.Popen[bytes], seconds: float) -> Iterator[bytes]:
    """The rows that a process prints, as they come. Raises TooLong when none comes for so many
    seconds."""
    assert process.stdout
    text = b""
    while True:
        if not select.select([process.stdout], [], [], seconds)[0]:
            raise TooLong
        piece = os.read(process.stdout.fileno(), 1 << 16)
        if not piece:
            return
        *rows, text = (text + piece).split(b"\n")
        yield from (row for row in rows if row.startswith(b"{"))


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kills smpirun, which is a script, and the simulation, which is its child."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def compile_simulated(folder: Path) -> Path:
    if not shutil.which("smpicxx") or not shutil.which("smpirun"):
        fail("simulated clusters need SimGrid: apt-get install libsimgrid-dev simgrid")
    return programs.compile_by("smpicxx", "simulated", folder)
