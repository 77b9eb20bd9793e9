# SPDX-License-Identifier: BSD-3-Clause
"""One place that talks to the terminal. Results go to stdout; progress, advice and errors to stderr."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

# Tables that go to a file or a pipe need not be folded to 80 columns, unless somebody says how many there are.
# A stream that is closed is None, and Rich's writes to it are lost.
out = Console(highlight=False, width=None if os.isatty(1) or os.environ.get("COLUMNS", "").isdigit() else 160)
err = Console(stderr=True, highlight=False, soft_wrap=not os.isatty(2))


STDOUT = "stdout"


class _Stdout(io.FileIO):
    """What goes wrong has its name, as with files."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STDOUT
            raise


def watch_stdout() -> None:
    """Errors of writing to stdout can be told from others from now on."""
    if plain := sys.stdout:
        raw = _Stdout(plain.fileno(), "w", closefd=False)
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), plain.encoding, plain.errors, line_buffering=plain.line_buffering
        )


def flush_stdout() -> None:
    if sys.stdout:
        sys.stdout.flush()


def give_up_stdout() -> None:
    """What waits to be written is dropped: Python would try it again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def fail(message: str, status: int = 2) -> NoReturn:
    """One clear message, and out."""
    complain(message)
    raise typer.Exit(status)


def complain(message: str) -> None:
    err.print(Text.assemble(("stretto:", "bold red"), " ", message))


def note(message: str) -> None:
    err.print(Text(message, style="dim"))


@contextmanager
def working(text: str) -> Iterator[None]:
    """Shows that something long is under way, and afterwards how long it took. What is quick leaves no trace."""
    begin = time.monotonic()
    if err.is_terminal:
        with err.status(escape(text) + " ..."):
            yield
    else:
        announcement = threading.Timer(1.0, lambda: err.print(f"{text} ...", markup=False))
        announcement.start()
        try:
            yield
        finally:
            announcement.cancel()
    seconds = time.monotonic() - begin
    if seconds >= 2:
        note(f"{text}: {seconds:.0f} s")


# Names and versions of what commands write as JSON (docs/json.md). A version changes when a reader of the old one would go wrong.
SCHEMAS = {
    "bench": 1,
    "cluster.bench": 1,
    "cluster.run": 1,
    "cluster.simulate": 1,
    "cluster.status": 1,
    "demo": 1,
    "doctor": 1,
    "explain": 1,
    "info": 1,
    "kv.bench": 1,
    "model.bench": 1,
    "model.best-k": 1,
    "model.chains": 1,
    "model.compare": 1,
    "model.measure": 1,
    "model.predict": 1,
    "model.scale": 1,
    "stats": 1,
    "top": 1,
    "topology": 1,
    "tune": 1,
    "tune.judge": 1,
    "verify": 1,
}


def write_json(path: Path | None, schema: str, data: dict[str, Any]) -> None:
    """To a file, or to stdout for `-`, beginning with the schema that a reader may go by."""
    if path is None:
        return
    text = json.dumps({"schema": f"stretto.{schema}/{SCHEMAS[schema]}", **data}, indent=2, default=str) + "\n"
    if str(path) == "-":
        print(text, end="")
        return
    try:
        path.write_text(text)
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")


@contextmanager
def child(
    line: Sequence[str], *, requests: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM), **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """A process that is through at the end. When something goes wrong meanwhile, or somebody has had enough, it is asked to end by one request
    after the other, so that it can end what it has begun itself; at last it is killed."""
    with subprocess.Popen(line, **options) as process:
        try:
            yield process
        except BaseException:
            _end(process, requests)
            raise


def _end(process: subprocess.Popen[Any], requests: Sequence[signal.Signals]) -> None:
    for request in requests:
        process.send_signal(request)
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):  # somebody who asks again does not want to wait
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
    """Runs a command whose output is only worth seeing when it fails; on a terminal its progress is shown: the number
    of lines that match `count`, or the last line. Returns its status and output."""
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
    """Status (0 or 1) and JSON report of one of our programs that says "progress DONE TOTAL" on stderr; a bar shows that on a
    terminal. Another status is an error, explained by what else it said."""
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
