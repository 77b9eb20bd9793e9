# SPDX-License-Identifier: BSD-3-Clause
"""Where the threads of a job's processes are: their stacks, with Stretto in front or without."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rich.text import Text

from stretto.commands.top import jobs
from stretto.commands.top.jobs import Row
from stretto.commands.top.picture import ranks_text
from stretto.core import source_lines
from stretto.core.console import fail, out
from stretto.core.processes import environment_of

RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")  # in a rank's environment
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
SECONDS = 60  # that the stacks of a machine may take


def with_mpi(launcher: int) -> list[int]:
    """The process and those that descend from it, of which MPI libraries are loaded."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and "/libmpi" in (entry / "maps").read_text(errors="replace"):
                found.append(int(entry.name))
    return sorted(pid for pid in found if jobs.descends_from(pid, launcher))


def chosen(program: str, wanted: str | None) -> list[Row]:
    """The processes that the user means, each with its rank if that is known."""
    if wanted is None or not wanted.isdigit() or not Path(f"/proc/{wanted}").exists():
        return jobs.choose(program, wanted)
    ranks = {p["pid"]: p for p in jobs.survey(program)["processes"]}
    job = next((p["job"] for pid, p in ranks.items() if jobs.descends_from(pid, int(wanted))), None)
    if job not in (None, "0"):
        return [p for p in ranks.values() if p["job"] == job]
    rows = []
    for pid in with_mpi(int(wanted)) or [int(wanted)]:
        environment = environment_of(pid)
        rank = next((environment[name] for name in RANKS if environment.get(name, "").isdigit()), None)
        rows.append({"pid": pid, "rank": None if rank is None else int(rank)})
    return sorted(rows, key=lambda row: (row["rank"] is None, row["rank"], row["pid"]))


def why(error: str, pid: int) -> str:
    """What a user can do about a stack that cannot be read."""
    scope = YAMA.read_text().strip() if YAMA.exists() else "0"
    with suppress(OSError):
        owner = Path(f"/proc/{pid}").stat().st_uid
        if os.geteuid() not in (0, owner):
            return f"process {pid} is user {owner}'s: only its user and root may look into it"
    if scope == "3" or (scope != "0" and os.geteuid() != 0):
        return (
            f"no permission to stop process {pid}: kernel.yama.ptrace_scope is {scope}, so this system lets "
            f"{'nobody' if scope == '3' else 'only root'} look at stacks"
            + (". Root may change it: sysctl kernel.yama.ptrace_scope=0" if scope != "3" else "")
        )
    return f"the stack of process {pid} cannot be read: {error}"


def looked(program: str, rows: list[Row]) -> list[Row]:
    """The rows, each with its threads and their frames as places of source."""
    line = [program, "stacks", *(str(row["pid"]) for row in rows)]
    done = subprocess.run(line, capture_output=True, text=True, errors="replace", check=True, timeout=SECONDS)
    found = {p["pid"]: p for p in json.loads(done.stdout)["processes"]}
    resolver = source_lines.Resolver()
    threads = [thread for process in found.values() for thread in process["threads"]]
    resolver.learn(
        part for thread in threads for frame in thread["frames"] if (part := source_lines.split_place(frame))
    )
    for thread in threads:
        thread["frames"] = [_short(resolver.text(frame)) for frame in thread["frames"]]
    return [{"rank": row["rank"], **found[row["pid"]]} for row in rows]


def _short(frame: str) -> str:
    """A frame without a line has the name of its file alone."""
    path, plus, rest = frame.partition("+0x")
    return Path(path).name + plus + rest if plus and path.startswith("/") else frame


def lines(rows: list[Row]) -> Iterator[Text]:
    """Processes with the same stack stand together."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        main = row["threads"][0] if row["threads"] else {"frames": [], "error": "it has ended"}
        said = tuple(main["frames"]) or (why(main["error"] or "it is empty", row["pid"]),)
        groups.setdefault(said, []).append(row)
    for frames, members in groups.items():
        ranks = [row["rank"] for row in members if row["rank"] is not None]
        title = f"rank{'s' if len(ranks) > 1 else ''} {ranks_text(ranks)}" if ranks else "not a rank"
        pids = ", ".join(str(row["pid"]) for row in members[:8]) + (", ..." if len(members) > 8 else "")
        yield Text.assemble((title, "bold"), f"  pid {pids}  ", (members[0]["command"], "dim"))
        yield from (Text(f"    {frame}") for frame in frames)
        more = max(len(row["threads"]) for row in members) - 1
        if more > 0:
            yield Text(f"    and {more} more thread{'s' if more > 1 else ''}", style="dim")


def show(program: str, wanted: str | None) -> list[Row]:
    rows = looked(program, chosen(program, wanted))
    if not any(row["threads"] for row in rows):
        fail("the processes have ended", 1)
    for line in lines(rows):
        out.print(line, soft_wrap=True)
    return rows
