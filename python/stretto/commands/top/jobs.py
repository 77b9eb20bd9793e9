# SPDX-License-Identifier: BSD-3-Clause
"""The job that the user means, and the frames that stretto-top writes of it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.table import Table
from rich.text import Text

from stretto.core.console import complain, err, fail, working
from stretto.core.processes import child, environment_of, listening_ports, parent
from stretto.native import build

Row = dict[str, Any]
LOOK_EVERY_S = 0.5  # for a job that has not begun


# ---- the program that looks ----------------------------------------------------------------------


def looker() -> str:
    """The path of stretto-top."""
    with working("building the onlooker"):
        return str(build.ensure_built("release", ["stretto-top"]) / "stretto-top")


def survey(program: str, pids: Iterable[int] = ()) -> Row:
    """What stretto-top finds on this machine."""
    done = subprocess.run(
        [program, "list", *map(str, pids)], capture_output=True, text=True, errors="replace", check=True
    )
    return json.loads(done.stdout)


def frames(program: str, processes: list[Row], interval_s: float, count: int) -> Iterator[Row]:
    """Frames of a job. The first comes at once, with the counts at the beginning. Then `count` more
    come; 0: until the job has ended."""
    job = processes[0]["job"]
    pids = [str(p["pid"]) for p in processes] if job == "0" else []
    line = [program, "watch", job, str(round(interval_s * 1000)), str(count), *pids]
    with child(line, requests=[signal.SIGTERM], stdout=subprocess.PIPE, text=True) as process:
        for each in process.stdout:
            yield json.loads(each)


# ---- which job -----------------------------------------------------------------------------------


def jobs_of(processes: Iterable[Row]) -> dict[str, list[Row]]:
    """Processes by the number that the ranks of their job agreed on. Processes without one
    (sessions) go by their parent."""
    jobs: dict[str, list[Row]] = {}
    for process in processes:
        key = process["job"] if process["job"] != "0" else f"parent {parent(process['pid'])}"
        jobs.setdefault(key, []).append(process)
    return jobs


def descends_from(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        pid = parent(pid)
    return pid == ancestor


def of_srun(job: list[Row], pid: int) -> bool:
    """Whether this srun has started the job. Its ranks descend from slurmstepd, and have the port
    on which srun listens in their environment."""
    ports = {environment_of(process["pid"]).get("SLURM_SRUN_COMM_PORT") for process in job} - {None}
    return bool(ports) and bool(ports & set(map(str, listening_ports(pid))))


def of_slurm(job: list[Row], number: str) -> bool:
    """Whether the job has this Slurm number of a job, or of a step (4711.0)."""
    wanted, _, step = number.partition(".")
    environments = [environment_of(process["pid"]) for process in job]
    return any(e.get("SLURM_JOB_ID") == wanted and step in ("", e.get("SLURM_STEP_ID")) for e in environments)


def choose(program: str, wanted: str | None) -> list[Row]:
    """The processes of the job that the user means. Without a job, or with several, the command
    ends with a message."""
    found = survey(program)
    jobs = jobs_of(found["processes"])
    if wanted is None:
        if len(jobs) == 1:
            return next(iter(jobs.values()))
        if jobs:
            several(jobs)
        fail("no job runs with Stretto on this machine, or none has used a communicator enough yet" + unseen(found))
    of_pid = [
        job for job in jobs.values() if wanted.isdigit() and any(descends_from(p["pid"], int(wanted)) for p in job)
    ]
    if wanted.isdigit() and not of_pid:
        of_pid = [job for job in jobs.values() if of_srun(job, int(wanted))]
    if re.fullmatch(r"\d+(\.\d+)?", wanted) and not of_pid:
        of_pid = [job for job in jobs.values() if of_slurm(job, wanted)]
    if len(of_pid) == 1:
        return of_pid[0]
    named = [job for name, job in jobs.items() if name.startswith(wanted.lower())]
    if len(named) == 1 and not of_pid:
        return named[0]
    if of_pid or named:
        several(jobs)
    complain(why_not(program, wanted, found))
    if jobs:
        err.print("Jobs that run with Stretto:")
        err.print(table_of(jobs), soft_wrap=False)
    raise typer.Exit(2)


def await_job(program: str, ancestor: int) -> list[Row]:
    """The processes of the job that this process starts. Empty: it ends without one."""
    while Path(f"/proc/{ancestor}").exists():
        for job in jobs_of(survey(program)["processes"]).values():
            if any(descends_from(process["pid"], ancestor) for process in job):
                return job
        time.sleep(LOOK_EVERY_S)
    return []


def unseen(found: Row) -> str:
    """The part of a message about processes that cannot be watched."""
    text = ""
    if found["refused"]:
        pids = sorted({r["pid"] for r in found["refused"]})
        text += f"; {', '.join(map(str, pids[:8]))}: {found['refused'][0]['why']}"
    if found["denied"]:
        text += f"; {len(found['denied'])} processes of others cannot be looked into"
    return text


def why_not(program: str, wanted: str, found: Row) -> str:
    """Why the process or job that the user named is not found."""
    if not wanted.isdigit() or not Path(f"/proc/{wanted}").exists():
        return f"there is no process and no job {wanted}" + unseen(found)
    pid = int(wanted)
    if pid in found["denied"]:
        return (
            f"no permission to look into process {pid}: it is user {Path(f'/proc/{pid}').stat().st_uid}'s, or protected"
        )
    for refused in found["refused"]:
        if refused["pid"] == pid:
            return f"process {pid} cannot be watched: {refused['why']}"
    return f"process {pid} has no part in a job that runs with Stretto, or has called no collective yet"


def several(jobs: dict[str, list[Row]]) -> NoReturn:
    """Lists the jobs and ends the command."""
    err.print("Several jobs run with Stretto: name one by its number or by a process of it")
    err.print(table_of(jobs), soft_wrap=False)
    raise typer.Exit(2)


def table_of(jobs: dict[str, list[Row]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("job", no_wrap=True, min_width=max(map(len, jobs)))
    table.add_column("ranks here", no_wrap=True)
    table.add_column("host", no_wrap=True)
    table.add_column("processes", min_width=9)  # wrapped, not cut
    table.add_column("command")  # the first column that is cut
    for name, processes in jobs.items():
        first = processes[0]
        ranks = f"{len(processes)} of {first['ranks']}" if first["ranks"] else str(len(processes))
        pids = ", ".join(str(p["pid"]) for p in processes[:4]) + (", ..." if len(processes) > 4 else "")
        table.add_row(name, ranks, Text(first["host"]), pids, Text(first["command"], no_wrap=True, overflow="ellipsis"))
    return table
