# SPDX-License-Identifier: BSD-3-Clause
"""A command whose standard error passes through this process, which behaves as if it were that command."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2}
PR_SET_PDEATHSIG = 1
LAST_SECONDS = 0.5  # for what processes that outlive the command still write


def _forward(process: subprocess.Popen[bytes]) -> None:
    """A terminal sends its signals to the command, too. What others send to this process, the command must get."""
    while True:
        info = signal.sigwaitinfo(FORWARDED)
        if info.si_pid != 0:
            process.send_signal(info.si_signo)


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
    after: Callable[[], None] = lambda: None,
) -> NoReturn:
    """Runs the command and then `after`, and ends as the command ends."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    prctl = ctypes.CDLL(None).prctl

    def prepare() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # if this process is killed
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    ours, theirs = os.pipe()
    process = subprocess.Popen(line, env=dict(env), stderr=theirs, preexec_fn=prepare)
    os.close(theirs)
    threading.Thread(target=_forward, args=(process,), daemon=True).start()
    with suppress(OSError):  # nobody reads standard error any more: the command hears of it, too
        _pass_on(ours, process, feed)
        _write(end())
    os.close(ours)
    status = process.wait()
    try:
        after()
    except Exception as error:  # the command's status is what counts
        _write(f"stretto: {error}\n".encode())
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {-status})
        os.kill(os.getpid(), -status)
    os._exit(status if status >= 0 else 128 - status)
