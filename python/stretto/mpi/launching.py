# SPDX-License-Identifier: BSD-3-Clause
"""Runs MPI jobs for their output, within a time limit."""

from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from stretto.core.console import fail
from stretto.core.processes import child, parent
from stretto.mpi import environments
from stretto.mpi.mpi import Mpi


def words_of(launcher: Sequence[str]) -> list[str]:
    """Words for mpiexec, split as a shell does."""
    words = []
    for text in launcher:
        try:
            words += shlex.split(text)
        except ValueError as error:
            fail(f"--launcher {text}: {str(error).lower()}")
    return words


# Words and variables that send ranks to other machines, too.
HOST_WORDS = r"--?(host|hosts|hostfile|machinefile|machine|f|ppn|perhost|ranks-per-proc|default-hostfile)(=.*)?"
ALLOCATIONS = (
    "SLURM_JOB_ID",
    "PBS_NODEFILE",
    "PBS_JOBID",
    "LSB_HOSTS",
    "LSB_JOBID",
    "PE_HOSTFILE",
    "FLUX_JOB_ID",
    "COBALT_NODEFILE",
    "HYDRA_HOST_FILE",
    "I_MPI_HYDRA_HOST_FILE",
    "OMPI_MCA_orte_default_hostfile",
    "PRTE_MCA_prte_default_hostfile",
)


def is_spread(words: Sequence[str]) -> bool:
    """Whether ranks may run on other machines than this one."""
    return any(re.fullmatch(HOST_WORDS, word) for word in words) or any(os.environ.get(name) for name in ALLOCATIONS)


def leave_allocation() -> None:
    """From here on, launchers see a machine without a batch system: they start all ranks here."""
    for name in list(os.environ):
        if name in ALLOCATIONS or name.startswith(("SLURM_", "PBS_", "LSB_", "FLUX_")):
            del os.environ[name]


ASKED = (signal.SIGTERM,)  # launchers pass it on to their ranks


class JobHangs(RuntimeError):
    """A job did not end within its time limit."""


# ---- launchers -----------------------------------------------------------------------------------


@contextmanager
def launched(line: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Starts a launcher. At the end of the block it has ended, and its ranks have left nothing in
    /dev/shm.

    The launcher has a session of its own, so Ctrl-C of a terminal reaches only this process, which
    asks the launcher to end once. Open MPI's launcher, asked twice within a second, ends at once
    and leaves the segments of its ranks.
    """
    with ExitStack() as afterwards:
        with child(line, requests=ASKED, start_new_session=True, **options) as process:
            try:
                yield process
            except BaseException:
                afterwards.enter_context(deaf())  # a launcher that is killed would leave its ranks
                afterwards.callback(remove, segments_of(process.pid))  # read while its ranks still run
                raise


@contextmanager
def deaf() -> Iterator[None]:
    """Ctrl-C has no effect inside."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread gets it
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def remove(segments: Iterable[str]) -> None:
    """Removes segments that a launcher has left; MPICH's launcher removes none."""
    for segment in segments:
        Path(segment).unlink(missing_ok=True)


def segments_of(launcher: int) -> set[str]:
    """Files of /dev/shm that only processes of this launcher have mapped."""
    parents = {int(entry.name): parent(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}

    def is_ours(pid: int) -> bool:
        while pid not in (0, launcher):
            pid = parents.get(pid, 0)
        return pid == launcher

    ours: set[str] = set()
    others: set[str] = set()
    for pid in parents:
        (ours if is_ours(pid) else others).update(mapped_segments(pid))
    return ours - others


def mapped_segments(pid: int) -> set[str]:
    try:
        text = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:  # it has ended, or belongs to another user
        return set()
    return set(re.findall(r" (/dev/shm/[^/\n]+)$", text, re.MULTILINE))


# ---- running them --------------------------------------------------------------------------------


def capture(mpi: Mpi, line: Sequence[str], timeout: float = 60, attempts: int = 3) -> subprocess.CompletedProcess[str]:
    """Runs a launcher's command line for its output. A job that hangs is tried again.

    The MPICH 5.0.2 wheel, without any library of ours, hangs in its own MPI_Init about once in 50
    starts on a busy 2-core machine.
    """
    for _ in range(attempts):
        with (
            suppress(subprocess.TimeoutExpired),
            launched(
                line,
                env=environments.clean_environment(mpi),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            ) as job,
        ):
            out, err = job.communicate(timeout=timeout)
            return subprocess.CompletedProcess(list(line), job.returncode, out, err)
    raise JobHangs(f"not done within {timeout:.0f} s, {attempts} times: {' '.join(line)}")


class JobFailed(RuntimeError):
    """A job ended with another status than 0. The text is what it said."""


def lines(mpi: Mpi, line: Sequence[str], timeout: float) -> Iterator[str]:
    """The lines that a job prints, as they come. If the reader stops early, the job is ended.
    Raises JobFailed, or JobHangs when no line comes for `timeout` seconds."""
    with (
        tempfile.TemporaryFile("w+") as errors,
        launched(
            line,
            env=environments.clean_environment(mpi),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as job,
    ):
        yield from lines_of(job.stdout.fileno(), line, timeout)
        if job.wait(timeout=timeout):
            errors.seek(0)
            raise failure(line, job.returncode, errors.read())


def lines_of(output: int, line: Sequence[str], timeout: float) -> Iterator[str]:
    """The lines that come out of a pipe, until its end. Raises JobHangs when none comes for
    `timeout` seconds."""
    rest = b""
    while select.select([output], [], [], timeout)[0]:
        some = os.read(output, 1 << 16)
        if not some:
            return
        *whole, rest = (rest + some).split(b"\n")
        yield from (text.decode(errors="replace") for text in whole)
    raise JobHangs(f"nothing came for {timeout:.0f} s: {' '.join(line)}")


def failure(line: Sequence[str], status: int, errors: str) -> JobFailed:
    """The error for a job that failed."""
    return JobFailed(f"$ {shlex.join(map(str, line))}\n{errors.strip()[-3000:]}\nexit status {status}")
