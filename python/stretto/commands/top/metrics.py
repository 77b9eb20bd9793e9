# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of a running job do, as Prometheus text in a file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from stretto.commands.top import jobs
from stretto.commands.top.jobs import Row
from stretto.core.console import fail

HELP = {
    "stretto_job_info": ("gauge", "The job that the other metrics are of."),
    "stretto_ranks": ("gauge", "Ranks of the job, on all hosts."),
    "stretto_calls_total": ("counter", "Calls of a collective, by what carried them."),
    "stretto_bytes_total": ("counter", "Bytes that a rank sent and received through Stretto."),
    "stretto_collective_seconds_total": ("counter", "Time in calls of a collective, with STRETTO_STATS."),
    "stretto_in_collective": ("gauge", "1: the rank is in a collective."),
    "stretto_waiting_seconds": ("gauge", "How long the rank has waited for others in its call; 0: it does not wait."),
    "stretto_finished": ("gauge", "1: the rank has come to MPI_Finalize, or is gone."),
}


def label_text(labels: Row) -> str:
    def escaped(value: object) -> str:
        return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}"


def samples_of(process: Row, host: str) -> Iterable[tuple[str, Row, float]]:
    who = {"rank": process["rank"], "host": host}
    for op, counts in process["collectives"].items():
        for path, calls in counts["calls"].items():
            if calls:
                yield "stretto_calls_total", {**who, "collective": op, "path": path}, calls
        yield "stretto_bytes_total", {**who, "collective": op}, counts["bytes"]
        if counts["ns"]:
            yield "stretto_collective_seconds_total", {**who, "collective": op}, counts["ns"] / 1e9
    call = process["call"]
    running = process["state"] == "running"
    inside = bool(running and call and call["open"])
    yield "stretto_in_collective", who, int(inside)
    yield "stretto_waiting_seconds", who, (call["waiting_s"] or 0) if inside else 0
    yield "stretto_finished", who, int(not running)


def text(job: Row, frame: Row) -> str:
    """The text of one look at a job."""
    about = {key: job[key] for key in ("job", "host", "version", "command")}
    found: dict[str, list[str]] = {name: [] for name in HELP}
    found["stretto_job_info"].append(f"{label_text(about)} 1")
    found["stretto_ranks"].append(f" {job['ranks']}")
    for process in frame["processes"]:
        for name, labels, value in samples_of(process, job["host"]):
            found[name].append(f"{label_text(labels)} {value:.10g}")
    lines = []
    for name, samples in found.items():
        if samples:
            kind, help_text = HELP[name]
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}", *(name + sample for sample in samples)]
    return "\n".join(lines) + "\n"


def replace(path: Path, content: str) -> None:
    """A reader sees the old text or the new one, and never a part."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_text(content)
        aside.replace(path)
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")


def write(path: Path, program: str, processes: list[Row]) -> None:
    """Writes once a second until the job has ended."""
    for frame in jobs.frames(program, processes, 1.0, 0):
        replace(path, text(processes[0], frame))
