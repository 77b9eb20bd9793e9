# SPDX-License-Identifier: BSD-3-Clause
"""top: what the ranks of a running job are doing, and who waits for whom."""

from __future__ import annotations

import json as jsons
import re
import signal
import subprocess
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn, Optional

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stretto import build
from stretto.console import child, complain, err, fail, out, working, write_json
from stretto.job import environment_of, listening_ports, parent
from stretto.outputs import check_outputs

PATHS = {"inline": "inline", "cico": "cico", "single": "single copy", "schedule": "schedule", "host": "MPI"}
FROM_ROOT = {"bcast", "scatter", "scatterv"}  # where the others wait for the root alone
FROM_LOWER = {"scan", "exscan"}  # where a rank waits for those below it
OUTSIDE = "outside collectives"  # computing, as a rule
LOOK_BACK_S = 2.0  # rates and shares of the live picture are those of the last so many seconds
BAR = 14
WORTH_TELLING_S = 0.1  # a wait for somebody

Row = dict[str, Any]


# ---- the program that looks ------------------------------------------------------------------------------------------


def looker() -> str:
    with working("building the onlooker"):
        return str(build.ensure_built("release", ["stretto-top"]) / "stretto-top")


def survey(program: str, pids: Iterable[int] = ()) -> Row:
    done = subprocess.run(
        [program, "list", *map(str, pids)], capture_output=True, text=True, errors="replace", check=True
    )
    return jsons.loads(done.stdout)


def frames(program: str, processes: list[Row], interval_s: float, count: int) -> Iterator[Row]:
    """The first one at once, which has the counts to begin with; then `count` more, 0: until the job has ended."""
    job = processes[0]["job"]
    pids = [str(p["pid"]) for p in processes] if job == "0" else []
    line = [program, "watch", job, str(round(interval_s * 1000)), str(count), *pids]
    with child(line, requests=[signal.SIGTERM], stdout=subprocess.PIPE, text=True) as process:
        for each in process.stdout:
            yield jsons.loads(each)


# ---- which job -------------------------------------------------------------------------------------------------------


def jobs_of(processes: Iterable[Row]) -> dict[str, list[Row]]:
    """By the number that the ranks of a job agreed on. Processes that share none (sessions) go by their parent."""
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
    """Whether this srun has started the job. Its ranks descend from slurmstepd, and know srun by the port on which it listens."""
    ports = {environment_of(process["pid"]).get("SLURM_SRUN_COMM_PORT") for process in job} - {None}
    return bool(ports) and bool(ports & set(map(str, listening_ports(pid))))


def of_slurm(job: list[Row], number: str) -> bool:
    """By Slurm's number of a job, or of a step of it (4711.0)."""
    wanted, _, step = number.partition(".")
    environments = [environment_of(process["pid"]) for process in job]
    return any(e.get("SLURM_JOB_ID") == wanted and step in ("", e.get("SLURM_STEP_ID")) for e in environments)


def choose(program: str, wanted: str | None) -> list[Row]:
    """The processes of the job that the user means; a message and out if there is none, or more than one."""
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


def unseen(found: Row) -> str:
    text = ""
    if found["refused"]:
        pids = sorted({r["pid"] for r in found["refused"]})
        text += f"; {', '.join(map(str, pids[:8]))}: {found['refused'][0]['why']}"
    if found["denied"]:
        text += f"; {len(found['denied'])} processes of others cannot be looked into"
    return text


def why_not(program: str, wanted: str, found: Row) -> str:
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
    err.print("Several jobs run with Stretto: name one by its number or by a process of it")
    err.print(table_of(jobs), soft_wrap=False)
    raise typer.Exit(2)


def table_of(jobs: dict[str, list[Row]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("job", no_wrap=True, min_width=max(map(len, jobs)))
    table.add_column("ranks here", no_wrap=True)
    table.add_column("host", no_wrap=True)
    table.add_column("processes", min_width=9)  # in several lines rather than cut
    table.add_column("command")  # the first to give way
    for name, processes in jobs.items():
        first = processes[0]
        ranks = f"{len(processes)} of {first['ranks']}" if first["ranks"] else str(len(processes))
        pids = ", ".join(str(p["pid"]) for p in processes[:4]) + (", ..." if len(processes) > 4 else "")
        table.add_row(name, ranks, Text(first["host"]), pids, Text(first["command"], no_wrap=True, overflow="ellipsis"))
    return table


# ---- figures out of frames -------------------------------------------------------------------------------------------


def may_wait_for(call: Row, mine: int, other: int) -> bool:
    """Whether a rank in this call can be waiting for that other one of its communicator to come to it."""
    if call["collective"] in FROM_ROOT:
        return other == call["root"]
    return other < mine if call["collective"] in FROM_LOWER else other != mine


def waits_for(process: Row, frame: Row) -> list[int]:
    """Processes that have not come to the call in which this one waits."""
    call = process["call"]
    if not call or not call["open"] or call["waiting_s"] is None:
        return []
    members = frame["communicators"].get(call["communicator"], [])
    mine = next((m["rank"] for m in members if m["pid"] == process["pid"]), None)
    if mine is None:
        return []
    return [m["pid"] for m in members if m["begun"] < call["number"] and may_wait_for(call, mine, m["rank"])]


def total(collectives: Row, key: str) -> int:
    return sum(c[key] for c in collectives.values())


def paths_of(collectives: Row) -> dict[str, int]:
    return {path: sum(c["calls"][path] for c in collectives.values()) for path in PATHS}


def since(now: Row, before: Row) -> Row:
    """Counts of collectives between two frames; of all time, if nothing was called between them."""
    gone: Row = {}
    for name, counts in now.items():
        old = before.get(name)
        calls = {path: n - (old["calls"][path] if old else 0) for path, n in counts["calls"].items()}
        gone[name] = {"calls": calls, **{key: counts[key] - (old[key] if old else 0) for key in ("bytes", "ns")}}
    return gone


def row_of(process: Row, before: Row, samples: Row, seconds: float, ranks: dict[int, int], frame: Row) -> Row:
    call = process["call"]
    moved = since(process["collectives"], before["collectives"])
    calls, recent = sum(paths_of(process["collectives"]).values()), sum(paths_of(moved).values())
    running = process["state"] == "running"
    inside = bool(running and call and call["open"])

    def rate(n):
        return n / seconds if seconds else 0.0

    def share(key):
        return samples[key] / samples["samples"] if samples["samples"] else None

    return {
        "rank": process["rank"],
        "pid": process["pid"],
        "state": process["state"],
        "doing": call["collective"]
        if inside
        else OUTSIDE
        if running and call
        else "unknown"
        if running
        else process["state"],
        "by": call["by"] if inside else None,
        "since_s": call["since_s"] if running and call else None,
        "since_is_exact": bool(call and call["seen"]),
        "waiting_s": call["waiting_s"] if inside else None,
        "waits_for": sorted(ranks[pid] for pid in waits_for(process, frame)) if running else [],
        "calls": calls,
        "bytes": total(process["collectives"], "bytes"),
        "calls_per_s": rate(recent),
        "bytes_per_s": rate(total(moved, "bytes")),
        "paths": paths_of(moved) if recent else paths_of(process["collectives"]),
        "time_in_collectives": share("inside"),
        "time_waiting": share("waiting"),
        "seconds_in_collectives": total(process["collectives"], "ns") / 1e9 or None,
        "collectives": process["collectives"],
        "recent": moved,
    }


def snapshot(history: Iterable[Row]) -> Row:
    """What the last of these frames says, with rates and shares since the first of them."""
    first, *later = history
    frame = later[-1] if later else first
    before = {p["pid"]: p for p in first["processes"]}
    ranks = {p["pid"]: p["rank"] for p in frame["processes"]}
    rows = []
    for process in frame["processes"]:
        seen = [p for f in later for p in f["processes"] if p["pid"] == process["pid"]]
        seconds = sum(f["interval_s"] for f in later[-len(seen) :]) if seen else 0.0
        samples = {key: sum(p[key] for p in seen) for key in ("samples", "inside", "waiting")}
        rows.append(
            row_of(process, before.get(process["pid"], seen[0] if seen else process), samples, seconds, ranks, frame)
        )
    return {"seconds": sum(f["interval_s"] for f in later), "rows": rows, "held_up": held_up(rows)}


def held_up(rows: list[Row]) -> list[Row]:
    """Ranks that others wait for, and that wait for nobody themselves: who should be looked at."""
    waiting_for: dict[int, list[Row]] = {}
    for row in rows:
        for rank in row["waits_for"]:
            waiting_for.setdefault(rank, []).append(row)
    return [
        {
            "rank": row["rank"],
            "doing": row["doing"],
            "waited_for_by": [w["rank"] for w in waiting_for[row["rank"]]],
            "for_s": max(w["waiting_s"] for w in waiting_for[row["rank"]]),
        }
        for row in rows
        if row["rank"] in waiting_for
        and not row["waits_for"]
        and max(w["waiting_s"] for w in waiting_for[row["rank"]]) >= WORTH_TELLING_S
    ]


# ---- the picture -----------------------------------------------------------------------------------------------------


def call_name(collective: str) -> str:
    return collective.capitalize()


def time_text(seconds: float) -> str:
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds // 60:.0f} min"


def number_text(number: float, unit: str = "") -> str:
    if number == 0:
        return "-"
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {letter}{unit}"
    return f"{number:.3g} {unit}".strip()


def ranks_text(ranks: list[int]) -> str:
    """0-2, 5"""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ", ".join(", ".join(map(str, range(a, b + 1))) if b - a < 2 else f"{a}-{b}" for a, b in spans)


def doing_text(row: Row) -> Text:
    if row["state"] != "running":
        return Text(
            "finished" if row["state"] == "finished" else "gone",
            style="dim" if row["state"] == "finished" else "bold red",
        )
    if row["by"] is None:
        return Text("?" if row["doing"] == "unknown" else row["doing"], style="dim")
    by = {"engine": "", "host": " (MPI)", "schedule": " (schedule)"}[row["by"]]
    return Text(call_name(row["doing"]) + by, style="bold" if row["waits_for"] else "")


def since_text(row: Row) -> str:
    if row["since_s"] is None:
        return ""
    exact = row["since_is_exact"] or (
        row["waiting_s"] is not None and row["waiting_s"] >= row["since_s"] - 0.01
    )  # the rank's own word
    return ("" if exact else "> ") + time_text(row["since_s"])


def bar(row: Row) -> Text:
    inside, waiting = row["time_in_collectives"], row["time_waiting"]
    if inside is None:
        return Text("")
    red = round(waiting * BAR)
    green = max(round(inside * BAR) - red, 0)
    text = Text("█" * red, style="red")
    text.append("█" * green, style="green")
    text.append("░" * (BAR - red - green), style="bright_black")
    return text


def share_text(part: float | None) -> str:
    return "" if part is None else f"{part:.0%}"


def paths_text(paths: dict[str, int]) -> str:
    calls = sum(paths.values())
    used = sorted(((n, path) for path, n in paths.items() if n), reverse=True)
    return ", ".join(PATHS[path] + (f" {n / calls:.0%}" if len(used) > 1 else "") for n, path in used[:3])


def one_line(text: str | Text) -> Text:
    """What gives way where there is no room for it."""
    text = Text(text) if isinstance(text, str) else text
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def grid(*headings: RenderableType) -> Table:
    """Headings that begin with a blank are those of numbers, which are never cut; texts give way."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in headings:
        number = str(heading).startswith(" ")
        table.add_column(
            str(heading).strip() if number else one_line(heading), justify="right" if number else "left", no_wrap=number
        )
    return table


def ranks_table(rows: list[Row], width: int) -> Table:
    """Columns that a narrow terminal has no room for are left out."""
    legend = Text.assemble(("wait", "red"), " ", ("move", "green"), " else")
    wide, wider, widest = width >= 80, width >= 100, width >= 120
    table = grid(
        " rank",
        " pid",
        "doing",
        " since",
        "waits for",
        *([" calls/s", " bytes/s"] if wide else []),
        *([legend] if wider else []),
        *([" in calls"] if wide else []),
        " waiting",
        *(["by way of"] if widest else []),
    )
    for row in rows:
        waits = Text(ranks_text(row["waits_for"]), style="bold red")
        if not row["waits_for"] and row["waiting_s"] is not None:
            waits = Text("all there", style="dim")
        rates = [number_text(row["calls_per_s"]), number_text(row["bytes_per_s"], "B")]
        table.add_row(
            str(row["rank"]),
            str(row["pid"]),
            one_line(doing_text(row)),
            since_text(row),
            one_line(waits),
            *(rates if wide else []),
            *([bar(row)] if wider else []),
            *([share_text(row["time_in_collectives"])] if wide else []),
            share_text(row["time_waiting"]),
            *([one_line(paths_text(row["paths"]))] if widest else []),
        )
    return table


def collectives_table(rows: list[Row], seconds: float) -> Table:
    table = grid("all ranks", " calls/s", " bytes/s", " calls", " bytes", "by way of")
    table.columns[0].no_wrap = True  # names that begin alike are told apart

    def per_s(n):
        return n / seconds if seconds else 0.0

    for name in sorted({name for row in rows for name in row["collectives"]}):
        ever = [row["collectives"][name] for row in rows if name in row["collectives"]]
        recent = [row["recent"][name] for row in rows if name in row["recent"]]
        calls = {path: sum(c["calls"][path] for c in ever) for path in PATHS}
        now = sum(sum(c["calls"].values()) for c in recent)
        table.add_row(
            call_name(name),
            number_text(per_s(now)),
            number_text(per_s(sum(c["bytes"] for c in recent)), "B"),
            number_text(sum(calls.values())),
            number_text(sum(c["bytes"] for c in ever), "B"),
            one_line(paths_text(calls)),
        )
    return table


def held_up_text(held: list[Row]) -> Text:
    text = Text()
    for h in held:
        doing = {OUTSIDE: "is outside collectives", "gone": "is gone", "finished": "has finished"}.get(
            h["doing"], f"is in {call_name(h['doing'])}"
        )
        text.append(f"rank {h['rank']}", style="bold red")
        text.append(
            f" {doing}; {ranks_text(h['waited_for_by'])} {'waits' if len(h['waited_for_by']) == 1 else 'wait'} for it, "
            f"{time_text(h['for_s'])} by now\n"
        )
    text.rstrip()
    return text


def fitting(rows: list[Row], held: list[Row], most: int) -> list[Row]:
    """As many rows as there is room for: those that hold others up, then by rank."""
    if len(rows) <= most:
        return rows
    first = {h["rank"] for h in held}
    chosen = sorted(rows, key=lambda row: (row["rank"] not in first, row["rank"]))[: max(most, 1)]
    return sorted(chosen, key=lambda row: row["rank"])


def picture(job: Row, view: Row, width: int, height: int | None = None) -> RenderableType:
    rows, held = view["rows"], view["held_up"]
    title = Text.assemble(
        ("job " + job["job"], "bold"),
        f"  {len(rows)} ranks" + (f" of {job['ranks']}" if job["ranks"] > len(rows) else "") + f" on {job['host']}  ",
        (job["command"], "dim"),
    )
    title.no_wrap, title.overflow = True, "ellipsis"
    below = collectives_table(rows, view["seconds"])
    room = len(rows) if height is None else height - below.row_count - len(held) - 8
    shown = fitting(rows, held, room)
    parts: list[RenderableType] = [title, "", ranks_table(shown, width)]
    if len(shown) < len(rows):
        parts.append(Text(f"and {len(rows) - len(shown)} more ranks", style="dim"))
    parts += ["", below]
    if held:
        parts += ["", held_up_text(held)]
    return Group(*parts)


# ---- the command -----------------------------------------------------------------------------------------------------


def watch_live(program: str, processes: list[Row], interval: float) -> None:
    history: deque[Row] = deque(maxlen=max(round(LOOK_BACK_S / interval), 1) + 1)
    view: Row = {}
    with Live(console=out, auto_refresh=False, vertical_overflow="ellipsis") as live:
        for frame in frames(program, processes, interval, 0):
            history.append(frame)
            view = snapshot(history)
            live.update(picture(processes[0], view, out.width, out.height if out.is_terminal else None), refresh=True)
    gone = [row["rank"] for row in view.get("rows", []) if row["state"] == "gone"]
    out.print(
        "The job has ended"
        + (f"; ranks that did not come to MPI_Finalize, or could not be seen there: {ranks_text(gone)}" if gone else "")
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
    json: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="One look, of one second, as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
) -> None:
    """Watch a running job: what each rank is doing, and who waits for whom.

    The job need not be started in any special way: with Stretto in front, its ranks say what they do in memory that others may read.
    """
    check_outputs(json)
    program = looker()
    processes = choose(program, job)
    if not once and json is None:
        return watch_live(program, processes, interval)
    view = snapshot(frames(program, processes, 1.0, 1))
    write_json(
        json, "top", {**{key: processes[0][key] for key in ("job", "ranks", "host", "version", "command")}, **view}
    )
    if once:
        out.print(picture(processes[0], view, out.width))
