# SPDX-License-Identifier: BSD-3-Clause
"""Processes: starting and ending one, and what the kernel knows of a running one."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from stretto.core.console import err, fail


@contextmanager
def child(
    line: Sequence[str], *, requests: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM), **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """A process that has ended when the block ends. After an exception, including Ctrl-C, it is
    asked to end by each request in turn, and then killed."""
    with subprocess.Popen(line, **options) as process:
        try:
            yield process
        except BaseException:
            _end(process, requests)
            raise


def _end(process: subprocess.Popen[Any], requests: Sequence[signal.Signals]) -> None:
    for request in requests:
        process.send_signal(request)
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):  # a second Ctrl-C means: do not wait
            process.communicate(timeout=10)
            return
    process.kill()
    process.communicate()


def stream(
    line: Sequence[str],
    text: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    log: Path | None = None,
    count: str | None = None,
) -> tuple[int, str]:
    """Runs a command and returns its status and output. A terminal shows its progress: the number
    of lines that match `count`, or the last line."""
    lines: list[str] = []
    matches = 0
    with (
        child(
            line,
            env={**os.environ, **(env or {})},
            cwd=cwd,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process,
        err.status(escape(text)) as status,
    ):
        for each in process.stdout:
            lines.append(each)
            if count and re.search(count, each):
                matches += 1
                status.update(f"{escape(text)} ({matches})")
            elif not count:
                status.update(Text.assemble(text, " ", (each.strip()[:70], "dim")))
    output = "".join(lines)
    if log:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"$ {shlex.join(map(str, line))}\n{output}")
    return process.returncode, output


def report_of(line: Sequence[str], text: str) -> tuple[int, Any]:
    """Runs one of our programs that says "progress DONE TOTAL" on stderr. Returns its status (0 or
    1) and its JSON report. Another status is an error, and the message is what the program said."""
    said = []
    bar = Progress(
        TextColumn(text),
        BarColumn(),
        TextColumn("{task.percentage:.0f}%"),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    with tempfile.TemporaryFile("w+") as report, bar:
        task = bar.add_task("", total=None)
        with child(line, stdout=report, stderr=subprocess.PIPE, text=True) as process:
            for each in process.stderr:
                if progress := re.match(r"progress (\d+) (\d+)", each):
                    bar.update(task, completed=int(progress[1]), total=int(progress[2]))
                else:
                    said.append(each)
        if process.returncode not in (0, 1):
            fail("".join(said).strip() or f"{Path(line[0]).name} ended with status {process.returncode}")
        report.seek(0)
        return process.returncode, json.load(report)


def parent(pid: int) -> int:
    """The parent of a process; 0: there is no such process."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


# ---- whose a process is --------------------------------------------------------------------------


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with. Empty if it has ended or belongs to another
    user."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def listening_ports(pid: int) -> set[int]:
    """TCP ports on which a process listens."""
    sockets: set[str] = set()
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                sockets |= set(re.findall(r"^socket:\[(\d+)\]$", os.readlink(descriptor)))
    ports: set[int] = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for row in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = row.split()
                if fields[3] == "0A" and fields[9] in sockets:  # LISTEN
                    ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports
