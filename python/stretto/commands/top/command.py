# SPDX-License-Identifier: BSD-3-Clause
"""The command `stretto top`."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.live import Live

from stretto.commands.top import figures, jobs, metrics, picture, stacks
from stretto.commands.top.jobs import Row
from stretto.core import source_lines
from stretto.core.console import fail, out
from stretto.core.output_files import check_outputs
from stretto.core.reports import write_json

resolver = source_lines.Resolver()
LOOK_BACK_S = 2.0  # seconds that rates and shares of the live picture cover


def with_lines(view: Row) -> Row:
    """Lines of source in place of addresses, for ranks that wait or that others wait for."""
    for row in [*view["held_up"], *(row for row in view["rows"] if row["waiting_s"] is not None)]:
        row["at"] = row["at"] and resolver.text(row["at"])
    for row in view["rows"]:
        row["host_call"] = row["host_call"] and resolver.text(row["host_call"])
    view["contradictions"] = [resolver.text(each) for each in view["contradictions"]]
    return view


def watch_live(program: str, processes: list[Row], interval: float) -> None:
    history: deque[Row] = deque(maxlen=max(round(LOOK_BACK_S / interval), 1) + 1)
    view: Row = {}
    with Live(console=out, auto_refresh=False, vertical_overflow="ellipsis") as live:
        for frame in jobs.frames(program, processes, interval, 0):
            history.append(frame)
            view = with_lines(figures.snapshot(history))
            live.update(
                picture.picture(processes[0], view, out.width, out.height if out.is_terminal else None), refresh=True
            )
    gone = [row["rank"] for row in view.get("rows", []) if row["state"] == "gone"]
    out.print(
        "The job has ended"
        + (
            f"; ranks that did not come to MPI_Finalize, or could not be seen there: {picture.ranks_text(gone)}"
            if gone
            else ""
        )
        + ".",
        style="dim",
    )


def command(
    job: Annotated[
        Optional[str],
        typer.Argument(
            metavar="[PID|JOB]",
            help="A process of the job, its launcher (mpiexec, srun), the job's "
            "number as `stretto top` lists it, or Slurm's. Not needed if there is one job.",
            show_default=False,
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one picture, of one second.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.05, max=60.0, help="Between pictures.")
    ] = 0.5,
    json_file: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="One look, of one second, as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
    metrics_file: Annotated[
        Optional[Path],
        typer.Option("--metrics", metavar="FILE", help="Write Prometheus text into FILE once a second, until it ends."),
    ] = None,
    show_stacks: Annotated[
        bool, typer.Option("--stacks", help="Print where each rank is: its stack. Also of jobs without Stretto.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="First wait until the process PID has started its job.")] = False,
) -> None:
    """Watch a running job: what each rank is doing, and who waits for whom.

    The job need not be started in any special way: \
with Stretto in front, its ranks say what they do in memory that others may read.
    """
    check_outputs(json_file, metrics_file)
    program = jobs.looker()
    if show_stacks:
        rows = stacks.show(program, job)
        return write_json(json_file, "top.stacks", {"processes": rows})
    if wait and not (job or "").isdigit():
        fail("--wait: it needs the number of a process")
    processes = jobs.await_job(program, int(job or 0)) if wait else jobs.choose(program, job)
    if not processes:
        fail(f"process {job} has ended without a job that can be watched", 1)
    if metrics_file is not None:
        return metrics.write(metrics_file, program, processes)
    if not once and json_file is None:
        return watch_live(program, processes, interval)
    view = with_lines(figures.snapshot(jobs.frames(program, processes, 1.0, 1)))
    write_json(
        json_file, "top", {**{key: processes[0][key] for key in ("job", "ranks", "host", "version", "command")}, **view}
    )
    if once:
        out.print(picture.picture(processes[0], view, out.width))
