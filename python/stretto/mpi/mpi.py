# SPDX-License-Identifier: BSD-3-Clause
"""An MPI of this machine: what it is, and how to call its launcher."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stretto.mpi.abis import ABIS, IMPLEMENTATIONS, Implementation


class MpiNotFound(RuntimeError):
    """This machine has no MPI that fits the description."""


@dataclass(frozen=True)
class Mpi:
    """An MPI installation."""

    kind: str  # a name of IMPLEMENTATIONS
    abi: str  # a name of ABIS: the Stretto library that serves it
    version: str
    prefix: Path
    mpiexec: Path
    mpicc: Path | None
    mpicxx: Path | None
    mpifort: Path | None
    library: Path  # the libmpi that ranks load
    origin: str  # system or wheel
    include: Path | None = field(default=None, compare=False)  # directory of mpi.h, if headers are installed
    wrapper_words: tuple[str, ...] = ()  # that the compiler wrappers need for this ABI

    @property
    def implementation(self) -> Implementation:
        return IMPLEMENTATIONS[self.kind]

    @property
    def title(self) -> str:
        name = f"{self.implementation.title} {self.version}" + (" (wheel)" if self.origin == "wheel" else "")
        return f"{name}, standard ABI" if self.is_standard else name

    @property
    def is_standard(self) -> bool:
        """Whether this is the MPI by its library of the standard ABI, libmpi_abi."""
        return ABIS[self.abi].standard

    @property
    def name(self) -> str:
        """What `--mpi` may call it."""
        return f"{self.kind}@{self.abi}" if self.is_standard else self.kind

    @property
    def tag(self) -> str:
        """A name for directories and test ids: one per MPI found."""
        name = f"{self.kind}-{self.version}" + ("-wheel" if self.origin == "wheel" else "")
        return f"{self.abi}-{name}" if self.is_standard else name

    @property
    def python(self) -> Path | None:
        """The interpreter of a wheel's environment, if it has mpi4py and NumPy. PyPI's mpi4py has no
        build for the standard ABI."""
        python = self.prefix / "bin" / "python"
        if self.origin != "wheel" or self.is_standard or not python.exists():
            return None
        packages = list(self.prefix.glob("lib/python3*/site-packages"))
        return python if any((p / "mpi4py").is_dir() and (p / "numpy").is_dir() for p in packages) else None

    @property
    def major(self) -> int:
        return int(re.match(r"\d*", self.version).group() or 0)

    @property
    def srun_option(self) -> str:
        """The option by which Slurm's srun talks to this MPI. Without it each rank is a job of its
        own, or does not start."""
        return ABIS[self.implementation.abi].srun_option

    @property
    def yielding(self) -> dict[str, str]:
        """Variables that make this MPI's ranks yield the processor while they wait, for jobs with
        more ranks than processors."""
        return dict(self.implementation.yielding)

    def command(
        self, np: int, argv: Sequence[str | Path], env: Mapping[str, str] | None = None, extra: Sequence[str] = ()
    ) -> list[str]:
        """The launcher's whole command line. `env` reaches all ranks, but not the launcher and its
        helpers. `argv` may have further parts, as in `a : -n 1 b`."""
        line = [str(self.mpiexec)]
        forwards = [word for pair in (env or {}).items() for word in self.forward(*pair)]
        if self.kind == "openmpi":
            if os.geteuid() == 0:
                line.append("--allow-run-as-root")
            # Open MPI 5 refuses a second --map-by, so the caller's replaces ours.
            line += [] if "--map-by" in extra else self._oversubscribe(np + further_ranks([*map(str, argv)]))
        line += [*forwards, *extra, "-n", str(np)]
        for word in map(str, argv):
            # A colon begins another part of the job. Open MPI's -x holds for one part, Hydra's
            # -genv for all.
            line += [word, *forwards] if word == ":" and self.kind == "openmpi" else [word]
        return line

    def forward(self, name: str, value: str) -> list[str]:
        """Words for mpiexec that give a variable to the ranks."""
        return [word.format(name=name, value=value) for word in self.implementation.forward]

    def _oversubscribe(self, np: int) -> list[str]:
        # Only when needed: Open MPI 5 does not bind ranks to cores once oversubscription is
        # allowed.
        if np <= usable_cores():
            return []
        return ["--oversubscribe"] if self.major < 5 else ["--map-by", ":OVERSUBSCRIBE"]

    def environment(self) -> dict[str, str]:
        """Variables that the launcher needs beside our environment."""
        env = {name: value.format(prefix=self.prefix) for name, value in self.implementation.launching.items()}
        if self.origin == "wheel":
            env["PATH"] = _prepend(self.prefix / "bin", "PATH")
        if self.implementation.library_path or self.is_standard:  # other MPIs have libmpi_abi, too
            env["LD_LIBRARY_PATH"] = _prepend(self.library.parent, "LD_LIBRARY_PATH")
        return env


def further_ranks(argv: Sequence[str]) -> int:
    """Ranks of the parts after the first one in `a x : -n 3 b`."""
    parts = argv[argv.index(":") :] if ":" in argv else []
    return sum(
        int(count) for word, count in zip(parts, parts[1:]) if word in ("-n", "-np", "--np", "-c") and count.isdigit()
    )


def _prepend(directory: Path, variable: str) -> str:
    rest = [p for p in os.environ.get(variable, "").split(":") if p and p != str(directory)]
    return ":".join([str(directory), *rest])


@functools.cache
def usable_cores() -> int:
    """Cores (not hardware threads) that this process may run on. Open MPI counts them as slots."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.add(siblings.read_text() if siblings.exists() else str(cpu))
    return len(cores)
