# SPDX-License-Identifier: BSD-3-Clause
"""Running an MPI job for its output, within a time limit."""
from __future__ import annotations

import os
import re
import select
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress

from stretto.console import child
from stretto.mpi import Mpi

ASKED = (signal.SIGTERM,)  # by which launchers end their ranks, too


class JobHangs(RuntimeError):
    """A job did not end within its time limit, several times in a row."""


def clean_environment(mpi: Mpi) -> dict[str, str]:
    """Ours without a preloaded library and without Stretto's options, plus what the MPI needs."""
    own = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not re.match(r"STRETTO(_|$)", k)}
    return {**own, **mpi.environment()}


def capture(mpi: Mpi, line: Sequence[str], timeout: float = 60, attempts: int = 3) -> subprocess.CompletedProcess[str]:
    """Runs a launcher's command line. A job that hangs is tried again: the MPICH 5.0.2 wheel, without any library of
    ours, hangs in its own MPI_Init about once in 50 starts on a busy 2-core machine."""
    for _ in range(attempts):
        with suppress(subprocess.TimeoutExpired), child(line, requests=ASKED, env=clean_environment(mpi), stdin=subprocess.DEVNULL,
                                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as job:
            out, err = job.communicate(timeout=timeout)
            return subprocess.CompletedProcess(list(line), job.returncode, out, err)
    raise JobHangs(f"not done within {timeout:.0f} s, {attempts} times: {' '.join(line)}")


class JobFailed(RuntimeError):
    """A job ended with another status than 0; the text is what it said."""


def lines(mpi: Mpi, line: Sequence[str], timeout: float) -> Iterator[str]:
    """What a job says, as it says it. Closed before its end, the job is ended. JobFailed, or JobHangs when nothing came for so long."""
    with tempfile.TemporaryFile("w+") as errors, child(line, requests=ASKED, env=clean_environment(mpi), stdin=subprocess.DEVNULL,
                                                       stdout=subprocess.PIPE, stderr=errors) as job:
        yield from lines_of(job.stdout.fileno(), line, timeout)
        if job.wait(timeout=timeout):
            errors.seek(0)
            raise failure(line, job.returncode, errors.read())


def lines_of(output: int, line: Sequence[str], timeout: float) -> Iterator[str]:
    """What comes out of a pipe, until its end. JobHangs when nothing came for so long."""
    rest = b""
    while select.select([output], [], [], timeout)[0]:
        some = os.read(output, 1 << 16)
        if not some:
            return
        *whole, rest = (rest + some).split(b"\n")
        yield from (text.decode(errors="replace") for text in whole)
    raise JobHangs(f"nothing came for {timeout:.0f} s: {' '.join(line)}")


def failure(line: Sequence[str], status: int, errors: str) -> JobFailed:
    return JobFailed(f"$ {shlex.join(map(str, line))}\n{errors.strip()[-3000:]}\nexit status {status}")
