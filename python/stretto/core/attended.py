# SPDX-License-Identifier: BSD-3-Clause
"""A command whose standard error passes through this process, which behaves as if it were that command."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
PR_SET_PDEATHSIG = 1
ONE_REQUEST = 0.5  # seconds: `timeout` sends its signal to the process, and again to its group
LAST_SECONDS = 0.5  # for what processes that outlive the command still write


def _is_in_foreground() -> bool:
    """Whether the terminal sends its signals to this process's group."""
    with suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
        try:
            return os.tcgetpgrp(terminal) == os.getpgrp()
        finally:
            os.close(terminal)
    return False


class _Forwarding:
    """Passes signals of this process on to the command, each request once: Open MPI's launcher, asked twice, leaves
    the segments of its ranks. A terminal sends its signals to a command of its own group, too."""

    def __init__(self) -> None:
        self.shares_terminal = _is_in_foreground()
        self.ended_by: int | None = None  # the last signal that asks processes to end

    def forward(self, process: subprocess.Popen[bytes]) -> None:
        latest: dict[int, float] = {}
        while True:
            info = signal.sigwaitinfo(FORWARDED)
            now, number = time.monotonic(), info.si_signo
            if number in ENDING:
                self.ended_by = number
            has_it = info.si_pid == 0 and self.shares_terminal
            if not has_it and now - latest.get(number, -1.0) > ONE_REQUEST:
                process.send_signal(number)
            latest[number] = now


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(2, data) :]


def _end_of(process: subprocess.Popen[bytes]) -> list[int]:
    """A descriptor that tells of the process's end. Old kernels have none."""
    with suppress(OSError):
        return [os.pidfd_open(process.pid)]
    return []


def _pass_on(stream: int, process: subprocess.Popen[bytes], feed: Callable[[bytes], bytes]) -> None:
    """Until the stream ends. Processes that the command leaves behind may keep it open."""
    ended = _end_of(process)
    while True:
        ready, _, _ = select.select([stream, *ended], [], [])
        if stream not in ready and not select.select([stream], [], [], LAST_SECONDS)[0]:
            return
        data = os.read(stream, 1 << 16)
        if not data:
            return
        _write(feed(data))


def run(
    line: Sequence[str],
    env: Mapping[str, str],
    feed: Callable[[bytes], bytes],
    end: Callable[[], bytes],
    after: Callable[[int], int] = lambda status: status,
) -> NoReturn:
    """Runs the command, and then `after` with its status, which returns the status to end with. If a signal has
    ended the command, this process ends by it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    forwarding = _Forwarding()
    prctl = ctypes.CDLL(None).prctl

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # if this process is killed
        if not forwarding.shares_terminal:
            os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    ours, theirs = os.pipe()
    process = subprocess.Popen(line, env=dict(env), stderr=theirs, preexec_fn=prepare)
    os.close(theirs)
    threading.Thread(target=forwarding.forward, args=(process,), daemon=True).start()
    with suppress(OSError):  # nobody reads standard error any more: the command hears of it, too
        _pass_on(ours, process, feed)
        _write(end())
    os.close(ours)
    status = process.wait()
    try:
        status = after(status)
    except Exception as error:  # the command's status is what counts
        _write(f"stretto: {error}\n".encode())
    if status != 0 and forwarding.ended_by:
        status = -forwarding.ended_by
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-status})
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)
