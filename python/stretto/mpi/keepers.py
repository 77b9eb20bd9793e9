# SPDX-License-Identifier: BSD-3-Clause
"""The programs that write the statistics of a job that was stopped (tools/keeper). They outlive its ranks by a moment,
and its launcher maybe."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from stretto.core.processes import environment_of
from stretto.core.reports import read_json

NAME = "stretto-keeper"
MARK = "_STRETTO_RUN"  # the number of the process that has started the job
TEXT = "_STRETTO_RUN_TEXT"  # the file that takes the text of a keeper
PATIENCE_S = 12.0  # keepers of several nodes wait for one another for 8 s at most
FAR_PATIENCE_S = 3.0  # for a keeper on another node


def mark(text: Path | None) -> dict[str, str]:
    """For the launcher's environment, which ranks on this machine inherit. `text` is the file that takes
    a keeper's text for the terminal: a launcher that has ended passes nothing on."""
    return {MARK: str(os.getpid())} | ({TEXT: str(text)} if text else {})


def text_file() -> Path:
    """A file that is not there yet, in a new directory of this user alone."""
    return Path(tempfile.mkdtemp(prefix="stretto-run-")) / "text"


def pass_text_on(text: Path) -> None:
    """Prints what a keeper has written for the terminal, and removes the directory of the file."""
    with suppress(OSError):
        sys.stderr.write(text.read_text(errors="replace"))
        sys.stderr.flush()
    shutil.rmtree(text.parent, ignore_errors=True)


def running() -> Iterator[int]:
    """Keepers on this machine, of a job of this process."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "comm").read_text().strip() == NAME:
                if environment_of(int(entry.name)).get(MARK) == str(os.getpid()):
                    yield int(entry.name)


def wait(file: Path | None, several_nodes: bool) -> None:
    """Until the statistics are written, as far as they will be."""
    begin = time.monotonic()
    while any(running()) and time.monotonic() < begin + PATIENCE_S:
        time.sleep(0.02)
    while several_nodes and file and not file.exists() and time.monotonic() < begin + FAR_PATIENCE_S:
        time.sleep(0.1)


def status_of(stats: dict[str, Any] | None, status: int) -> int:
    """The status of a job whose launcher has ended with `status`. Where a signal has ended the first rank, it is what
    a shell says of that: MPICH's launcher ends with the bare number."""
    ends = [rank["end"] for rank in (stats or {}).get("cut_short", {}).get("first", [])]
    numbers = [int(end.split()[1]) for end in ends if end.startswith("signal ")]
    return 128 + status if status in numbers else status


def cut_short(file: Path) -> dict[str, Any] | None:
    """The statistics of a job that was stopped; None: there are none, or the job came to its end."""
    with suppress(OSError, ValueError):
        stats = read_json(file) if file.is_file() else None
        return stats if isinstance(stats, dict) and "cut_short" in stats else None
    return None
