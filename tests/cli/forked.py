# SPDX-License-Identifier: BSD-3-Clause
"""The command-line tool in a process of its own that need not load it: a fork of this one, which has."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn


def run(
    arguments: Sequence[str], env: Mapping[str, str], cwd: Path | None = None, timeout: float = 100
) -> subprocess.CompletedProcess[str]:
    """Runs `python -m stretto` with these arguments and this environment only. Raises
    subprocess.TimeoutExpired, as subprocess.run does."""
    import stretto.cli  # what takes the time

    assert stretto.cli
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pid = os.fork()
        if pid == 0:
            _become(arguments, env, cwd, out.fileno(), err.fileno())
        status = _wait(pid, timeout)
        if status is None:
            raise subprocess.TimeoutExpired(list(arguments), timeout)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return subprocess.CompletedProcess(list(arguments), status, *texts)


def _wait(pid: int, timeout: float) -> int | None:
    """Exit status; None: it was not through in time, and has been ended."""
    process = os.pidfd_open(pid)
    through = False
    try:
        through = bool(select.select([process], [], [], timeout)[0])
    finally:
        os.close(process)
        if not through:
            _end(pid)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if through else None


def _end(pid: int) -> None:
    """Asked first, so that it can end what it has begun."""
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + 15
    while time.monotonic() < until and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)


def _become(arguments: Sequence[str], env: Mapping[str, str], cwd: Path | None, out: int, err: int) -> NoReturn:
    """The new process has its own streams, environment and directory, and nothing that this process
    has cached."""
    status = 70
    try:
        for descriptor, to in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(descriptor, to)
        sys.stdin, sys.stdout, sys.stderr = (open(n, "r" if n == 0 else "w", closefd=False) for n in range(3))
        os.environ.clear()
        os.environ.update(env)
        if cwd:
            os.chdir(cwd)
        sys.argv = ["stretto", *arguments]
        status = _perform(env)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
        with suppress(BaseException):
            sys.stderr.flush()
        os._exit(status)


def _perform(env: Mapping[str, str]) -> int:
    from stretto import __main__
    from stretto.core import console
    from stretto.native import probe

    probe.ask.cache_clear()
    console.out.width, console.err.soft_wrap = int(env.get("COLUMNS") or 160), True
    try:
        __main__.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
