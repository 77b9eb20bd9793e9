# SPDX-License-Identifier: BSD-3-Clause
"""Runs random sequences of MPI calls (programs/sequences.cpp) plain and with Stretto, and compares.

A difference is repeated alone and shrunk to the shortest list of operations that still differs.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import harness
from stretto.mpi import Mpi

OPERATIONS = 30
Lines = tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """Options, the ranks of a pretended node (0: the machine is one), and whether two threads call."""

    options: Mapping[str, str] = field(default_factory=dict)
    ranks_of_a_node: int = 0
    threads: bool = False


SERVED = {"STRETTO_NONBLOCKING": "on", "STRETTO_KIND": "on"}
EARLY = {"STRETTO_OVERLAP": "3"}  # calls of any length may return early
SETTINGS = {
    "default": Setting(),
    "agreed_later": Setting({"STRETTO_AGREE": ""}),  # as users have it
    "requests": Setting(SERVED),
    "watched": Setting({"STRETTO_WATCHDOG": "1000"}),
    "nodes": Setting(SERVED, 2),
    "early": Setting(SERVED | EARLY, 2),
    "fabric": Setting(SERVED | EARLY | {"STRETTO_FABRIC": "tcp"}, 2),
    "checked": Setting(SERVED | {"STRETTO_CHECK": "3"}),
    "threads": Setting(SERVED, threads=True),
}

# What MPIs do wrong without Stretto, so that sequences leave it out, by the start of an MPI's tag.
#   persistent            with a persistent collective in a list, MPI_Waitall and MPI_Testall at
#                         times report an error of others (MPICH 5, 3 ranks: sequence 1260)
#   looks_at_persistent   MPI_Request_get_status ends a persistent request, and so does MPI_Testall
#                         that returns false: the next call has an empty status, and no error
#   persistent_to_nobody  a persistent request with MPI_PROC_NULL is never active (MPICH), or stays
#                         active (Intel MPI)
#   inactive_in_lists     MPI_Testany and its like report persistent collectives that have ended
#   truncated_persistent  MPI_Testsome reports success of a persistent receive that has failed
#   truncated_from_anyone at times a receive with MPI_ANY_SOURCE takes more than fits, and succeeds
#   negative_count        MPI_Allreduce takes it, and stops in the midst
#   alltoallw_in_place    MPI_Ialltoallw says that it truncates; Open MPI 4 crashes
#   reduction_gaps        MPI_Reduce_scatter_block reads past its buffers for elements with gaps
#   errors_in_lists       MPI_Waitall ends the job for an error
#   pending_after_free    the MPI crashes if an MPI_Ibarrier or an error outlives its communicator
#   freed_persistent      MPI_Start needs the datatype that was freed after MPI_..._init
#   neighbor_allgatherv   a rank that receives nothing sends nothing
MPICH = ("persistent", "persistent_to_nobody", "truncated_persistent", "alltoallw_in_place", "reduction_gaps")
OPEN_MPI = ("errors_in_lists", "pending_after_free", "neighbor_allgatherv", "alltoallw_in_place", "freed_persistent")
WRONG_PLAIN = {
    "mpich-4": (*MPICH, "inactive_in_lists"),
    "mpich-5": (*MPICH, "looks_at_persistent", "negative_count", "truncated_from_anyone"),
    "impi": (*MPICH, "inactive_in_lists", "looks_at_persistent"),
    "openmpi": OPEN_MPI,
}


@dataclass
class Outcome:
    """What the ranks wrote down for each sequence that all of them ended, and why the job stopped."""

    sequences: dict[int, Lines]
    stopped: str = ""


@dataclass
class Difference:
    seed: int
    operations: list[int]
    words: str  # the operations
    found: str  # the lines that differ, or why the job stopped

    def __str__(self) -> str:
        only = ",".join(map(str, self.operations))
        return f"sequence {self.seed}, --only {only}\n{self.words}\n{self.found}"


@dataclass
class Runner:
    """Runs sequences of one MPI, number of ranks and setting."""

    mpi: Mpi
    ranks: int
    setting: Setting
    without: Sequence[str] = ()
    tries: int = 3  # runs of a candidate before it counts as right
    timeout: float = 20
    cpu: Sequence[str] = ()  # before the launcher
    program: Path = field(init=False)

    def __post_init__(self) -> None:
        self.program = harness.build_cxx(self.mpi, "sequences.cpp")

    def line(self, first: int, count: int, only: Sequence[int] = ()) -> list[str]:
        masked = [*self.without]
        masked += [name for tag, names in WRONG_PLAIN.items() if self.mpi.tag.startswith(tag) for name in names]
        line = [str(self.program), str(first), str(count), str(OPERATIONS)]
        line += ["--without", ",".join(masked)] if masked else []
        line += ["--threads"] if self.setting.threads else []
        return line + (["--only", ",".join(map(str, only))] if only else [])

    def run(self, preload: bool, first: int, count: int = 1, only: Sequence[int] = ()) -> Outcome:
        folder = Path(tempfile.mkdtemp(prefix="sequences-"))
        folder.chmod(0o755)
        stopped = ""
        line: list[str | Path] = [*self.line(first, count, only), "--logs", str(folder)]
        if preload and self.setting.ranks_of_a_node:
            line.insert(0, harness.pretended_nodes(folder, self.setting.ranks_of_a_node))
        try:
            job = harness.run_job(
                self.mpi,
                self.ranks,
                line,
                env=self.setting.options if preload else {},
                preload=preload,
                timeout=self.timeout + 0.3 * count * self.ranks,
                prefix=self.cpu,
            )
            if job.returncode != 0:
                stopped = f"exit code {job.returncode}\n{job.output[-3000:]}"
        except harness.JobTimeout as error:
            stopped = f"hangs\n{str(error)[-3000:]}"
        found = Outcome(read(folder, self.ranks), stopped)
        shutil.rmtree(folder, ignore_errors=True)
        return found

    # ---- Differences ----

    def differs(self, seed: int, only: Sequence[int] = ()) -> str:
        """How the sequence differs in one of some runs. Nothing if it fails plain."""
        plain = self.run(False, seed, 1, only)
        if seed not in plain.sequences:
            return ""
        for _ in range(self.tries):
            ours = self.run(True, seed, 1, only)
            if ours.sequences.get(seed) != plain.sequences[seed] or ours.stopped:
                return compared(plain, ours, seed)
        return ""

    def stops_plain(self, seed: int, only: Sequence[int] = ()) -> str:
        return self.run(False, seed, 1, only).stopped

    def shrunk(self, seed: int, how: Callable[..., str] | None = None) -> Difference | None:
        """The shortest list of operations of a sequence that differs, or None if it does not alone."""
        how = how or self.differs
        found = {(): how(seed)}
        if not found[()]:
            return None

        def fails(only: list[int]) -> bool:
            if tuple(only) not in found:
                found[tuple(only)] = how(seed, only)
            return found[tuple(only)] != ""

        operations = shrink(list(range(OPERATIONS)), fails)
        return Difference(seed, operations, self.words(seed, operations), found.get(tuple(operations), found[()]))

    def words(self, seed: int, operations: Sequence[int]) -> str:
        try:
            line = [*self.line(seed, 1, operations), "--list"]
            return harness.run_job(self.mpi, self.ranks, line, preload=False, timeout=self.timeout).stdout
        except harness.JobTimeout as error:
            return "\n".join(re.findall(r"^\d+\.\d+ .*$", str(error), re.MULTILINE))

    def batch(self, first: int, count: int) -> Iterator[tuple[int, str]]:
        """Seeds that differ in one launch, and how. Sequences that stop the plain MPI are left out."""
        end = first + count
        while first < end:
            plain = self.run(False, first, end - first)
            stop = next((s for s in range(first, end) if s not in plain.sequences), end)
            if stop < end:
                yield stop, "plain " + plain.stopped
            while first < stop:
                ours = self.run(True, first, stop - first)
                wrong = [s for s in range(first, stop) if ours.sequences.get(s) != plain.sequences[s]]
                if not wrong:
                    break
                last = next((s for s in wrong if s not in ours.sequences), stop)
                for seed in wrong:
                    if seed <= last:
                        yield seed, compared(plain, ours, seed)
                first = last + 1
            first = stop + 1


def read(folder: Path, ranks: int) -> dict[int, Lines]:
    """The lines of each sequence that every rank has ended."""
    lines: dict[int, list[str]] = {}
    ended: dict[int, int] = {}
    for rank in range(ranks):
        path = folder / str(rank)
        for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
            seed, _, text = line.partition(" ")
            if text == "end":
                ended[int(seed)] = ended.get(int(seed), 0) + 1
            elif seed.isdigit():
                lines.setdefault(int(seed), []).append(f"rank {rank}: {text}")
    return {seed: tuple(lines.get(seed, ())) for seed, ranks_there in ended.items() if ranks_there == ranks}


def compared(plain: Outcome, ours: Outcome, seed: int) -> str:
    if seed not in ours.sequences:
        return f"with Stretto: {ours.stopped or 'some ranks did not end it'}"
    there, here = set(plain.sequences[seed]), set(ours.sequences[seed])
    lines = [f"plain  {x}" for x in sorted(there - here)[:5]] + [f"ours   {x}" for x in sorted(here - there)[:5]]
    return "\n".join(lines) + (f"\n{ours.stopped}" if ours.stopped else "")


def shrink(items: list[int], fails: Callable[[list[int]], bool]) -> list[int]:
    """Delta debugging: a list from which nothing can be left out, so that it still fails."""
    parts = 2
    while len(items) >= 2:
        size = -(-len(items) // parts)
        chunks = [items[i : i + size] for i in range(0, len(items), size)]
        rest = [[x for x in items if x not in chunk] for chunk in chunks]
        if smaller := next((c for c in (chunks if parts == 2 else []) + rest if c and fails(c)), None):
            items, parts = smaller, max(parts - 1, 2)
        elif parts >= len(items):
            break
        else:
            parts = min(2 * parts, len(items))
    return items
