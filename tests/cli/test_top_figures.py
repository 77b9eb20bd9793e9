# SPDX-License-Identifier: BSD-3-Clause
"""top: who waits for whom, rates and shares, out of what the onlooker has seen."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from rich.console import Console
from stretto.commands.top import figures, jobs, picture
from stretto.commands.top.jobs import table_of

Row = dict[str, Any]


def call(
    collective: str,
    number: int,
    opened: bool = True,
    waiting: float | None = 2.0,
    root: int = -1,
    communicator: str = "c1",
    by: str = "engine",
) -> Row:
    return {
        "collective": collective,
        "by": by,
        "open": opened,
        "communicator": communicator,
        "number": number,
        "root": root,
        "bytes": 8,
        "since_s": 3.0,
        "seen": True,
        "waiting_s": waiting if opened else None,
    }


def process(
    rank: int,
    its: Row | None,
    counts: Row | None = None,
    samples: tuple[int, int, int] = (100, 50, 25),
    state: str = "running",
    deferred: tuple[Row, ...] = (),
    host_call: Row | None = None,
) -> Row:
    return {
        "pid": 1000 + rank,
        "rank": rank,
        "ranks": 4,
        "state": state,
        "call": its,
        "samples": samples[0],
        "inside": samples[1],
        "waiting": samples[2],
        "host_call": host_call,
        "deferred": list(deferred),
        "collectives": counts or {},
    }


def counts(inline: int, cico: int, moved: int) -> Row:
    others = {"single": 0, "schedule": 0, "deferred": 0, "host": 0}
    return {"calls": {"inline": inline, "cico": cico, **others}, "bytes": moved, "ns": 0}


def under_way(call: int, returned: float | None, waits: str = "", waits_for: int = -1, **more: Any) -> Row:
    return {
        "collective": "Alltoall",
        "call": call,
        "communicator": 0,
        "ranks": 4,
        "began_s": 9.0,
        "returned_s": returned,
        "waits": waits,
        "waits_s": 2.5 if waits else None,
        "waits_for": waits_for,
        "missing": [{"rank": 2, "bytes": 65536}, {"rank": 3, "bytes": 4096}],
        "untaken": [],
        **more,
    }


def frame(processes: list[Row], interval: float = 1.0, **communicators: list[tuple[int, int, int]]) -> Row:
    """Communicators by name: (rank there, process' rank, calls begun)."""
    return {
        "interval_s": interval,
        "processes": processes,
        "cycles": [],
        "contradictions": [],
        "communicators": {
            name: [
                {"rank": r, "pid": 1000 + p, "size": len(members), "begun": n, "ended": n - 1} for r, p, n in members
            ]
            for name, members in communicators.items()
        },
    }


def waits(view: Row) -> dict[int, list[int]]:
    return {row["rank"]: row["waits_for"] for row in view["rows"]}


def test_waits_for_those_who_have_not_come() -> None:
    late = call("barrier", 6, opened=False)
    ranks = [process(0, call("barrier", 7)), process(1, call("barrier", 7)), process(2, late)]
    view = figures.snapshot([frame(ranks, c1=[(0, 0, 7), (1, 1, 7), (2, 2, 6)])])
    assert waits(view) == {0: [2], 1: [2], 2: []}
    late = {"rank": 2, "doing": "outside collectives", "at": None, "waited_for_by": [0, 1], "for_s": 2.0}
    assert view["held_up"] == [late]


def test_a_short_wait_is_nobodys_fault() -> None:
    ranks = [process(0, call("barrier", 7, waiting=0.001)), process(1, call("barrier", 6, opened=False))]
    assert figures.snapshot([frame(ranks, c1=[(0, 0, 7), (1, 1, 6)])])["held_up"] == []


@pytest.mark.parametrize(
    ("collective", "root", "waited_for"),
    [
        ("bcast", 3, [3]),
        ("bcast", 1, []),
        ("scatterv", 3, [3]),
        ("gather", 0, [2, 3]),
        ("reduce", 1, [2, 3]),
        ("allreduce", -1, [2, 3]),
        ("scan", -1, []),
        ("exscan", -1, []),
    ],
)
def test_what_a_collective_can_wait_for(collective: str, root: int, waited_for: list[int]) -> None:
    """Rank 1 is in the call, as is 0; 2 and 3 are not."""
    ranks = [
        process(r, call(collective, 5, root=root) if r < 2 else call("barrier", 4, opened=False)) for r in range(4)
    ]
    view = figures.snapshot([frame(ranks, c1=[(r, r, 5 if r < 2 else 4) for r in range(4)])])
    assert waits(view)[1] == waited_for


def test_ranks_of_a_communicator_are_told_as_ranks_of_the_job() -> None:
    """There are two communicators, and the second one reverses the order of ranks. 0 waits for 1,
    which waits for 3 in the other one, so 3 holds them up."""
    ranks = [
        process(0, call("barrier", 2, communicator="a")),
        process(1, call("allreduce", 9, communicator="b")),
        process(2, call("bcast", 1, waiting=None)),
        process(3, call("bcast", 8, opened=False)),
    ]
    view = figures.snapshot([frame(ranks, a=[(0, 0, 2), (1, 1, 1)], b=[(0, 3, 8), (1, 1, 9)])])
    assert waits(view) == {0: [1], 1: [3], 2: [], 3: []}
    assert [h["rank"] for h in view["held_up"]] == [3]


def test_a_rank_whose_data_are_under_way_waits_for_their_source() -> None:
    """Rank 0 touches data of rank 2, rank 1 waits for all of its in a function, rank 2 only has some to come."""
    ended = call("alltoall", 0, opened=False, by="schedule")
    ranks = [
        process(0, ended, deferred=(under_way(3, 4.0, "touch", 2), under_way(4, 0.5))),
        process(1, ended, deferred=(under_way(3, 4.0, "function"),)),
        process(2, ended, deferred=(under_way(3, 4.0),)),
        process(3, call("alltoall", 0, by="schedule"), deferred=(under_way(4, None),)),
    ]
    view = figures.snapshot([frame(ranks)])
    assert waits(view) == {0: [2], 1: [2, 3], 2: [], 3: [2, 3]}
    first, second, third, fourth = view["rows"]
    assert (first["doing"], first["by"], first["waiting_s"]) == ("alltoall", "deferred", 2.5)
    assert (second["doing"], third["doing"], fourth["by"]) == ("alltoall", "outside collectives", "schedule")
    assert [h["rank"] for h in view["held_up"]] == [2]
    text = " ".join(" ".join(shown(view, 300)).split())
    assert "Alltoall (its data)" in text and "all there" not in text
    assert (
        "rank 0 waits for data of call 3 (MPI_Alltoall) on 4 ranks, from rank 2, where it touches them, 2.5 s by now; "
        "it returned 4.0 s ago; to come: 65.5 kB of 2, 4.1 kB of 3" in text
    ), text
    assert "rank 1 waits for data of call 3 (MPI_Alltoall) on 4 ranks, in a function of MPI" in text
    assert "rank 2 goes on without data of call 3" in text and "rank 3 waits for data" not in text


def test_ranks_that_wait_for_messages_and_cycles_are_drawn() -> None:
    def receives(source: int) -> Row:
        words = f"MPI_Recv (from {source}, tag 3, 8 bytes, on MPI_COMM_WORLD)"
        return {"name": "MPI_Recv", "words": words, "at": "ring.c:7 in step", "since_s": 2.0, "waits_for": [source]}

    ended = call("barrier", 1, opened=False)
    ring = frame([process(r, ended, host_call=receives((r + 1) % 3)) for r in range(3)]) | {"cycles": [[0, 1, 2]]}
    view = figures.snapshot([ring])
    assert waits(view) == {0: [1], 1: [2], 2: [0]}
    text = "\n".join(shown(view, 160))
    assert "Recv" in text and "each waits for the next: 0 -> 1 -> 2 -> 0" in text, text
    assert "rank 0 in MPI_Recv (from 1, tag 3, 8 bytes, on MPI_COMM_WORLD)" in text, text
    assert "waiting at ring.c:7 in step: 0-2" in text, text


def test_calls_that_returned_early_count() -> None:
    moved = counts(1, 0, 100)
    moved["calls"]["deferred"] = 9
    row = figures.snapshot([frame([process(0, None, {"alltoall": moved})])])["rows"][0]
    assert row["calls"] == 10 and row["paths"]["deferred"] == 9


def test_rates_and_shares_are_of_the_frames_given() -> None:
    before = frame([process(0, None, {"bcast": counts(10, 5, 1000)})], 0.0)
    middle = frame([process(0, None, {"bcast": counts(20, 5, 3000)}, (100, 80, 10))], 0.5)
    after = frame(
        [
            process(
                0,
                call("bcast", 9, opened=False),
                {"bcast": counts(30, 5, 5000), "barrier": counts(4, 0, 0)},
                (100, 20, 20),
            )
        ],
        1.5,
    )
    row = figures.snapshot([before, middle, after])["rows"][0]
    assert row["calls_per_s"] == pytest.approx((20 + 4) / 2) and row["bytes_per_s"] == pytest.approx(4000 / 2)
    assert row["time_in_collectives"] == pytest.approx(0.5) and row["time_waiting"] == pytest.approx(0.15)
    assert row["calls"] == 39 and row["bytes"] == 5000
    assert row["paths"]["inline"] == 24 and row["paths"]["cico"] == 0, "the paths of what was called meanwhile"
    assert row["doing"] == "outside collectives" and row["by"] is None
    still = figures.snapshot([after])["rows"][0]
    assert still["calls_per_s"] == 0 and still["paths"]["cico"] == 5 and still["time_in_collectives"] is None


def test_a_rank_that_comes_later_and_one_that_ends() -> None:
    first = frame([process(0, call("barrier", 1))])
    view = figures.snapshot(
        [first, frame([process(0, call("barrier", 1), state="gone"), process(1, None, {"barrier": counts(3, 0, 0)})])]
    )
    assert [row["doing"] for row in view["rows"]] == ["gone", "unknown"]
    assert view["rows"][0]["waits_for"] == [] and view["rows"][1]["calls"] == 3 and view["rows"][1]["calls_per_s"] == 0


def shown(view: Row, width: int, height: int | None = None) -> list[str]:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))
    job = {"job": "ab12", "ranks": 70, "host": "node1", "command": "./app [brackets] " + "x" * 300}
    console.print(picture.picture(job, view, width, height))
    return console.export_text().splitlines()


def test_the_picture_fits_its_terminal_and_shows_who_matters() -> None:
    ranks = [
        process(r, call("barrier", 7 if r != 50 else 6, opened=r != 50), {"barrier": counts(7, 0, 0)})
        for r in range(64)
    ]
    view = figures.snapshot([frame(ranks, c1=[(r, r, 7 if r != 50 else 6) for r in range(64)])])
    lines = shown(view, 80, 24)
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert "1050" in text, "the one that all wait for is among the rows"
    assert "rank 50 is outside collectives; 0-49, 51-63 wait for it, 2.0 s by now" in " ".join(text.split())
    assert "more ranks" in text and "[brackets]" in text
    assert len(shown(view, 160)) > 64


@pytest.mark.parametrize("width", [60, 80, 110, 200])
def test_numbers_in_the_picture_are_whole(width: int) -> None:
    ranks = [
        {
            **process(
                r,
                call("reduce_scatter_block", 7, opened=r != 5),
                {"reduce_scatter_block": counts(1234567, 1234, 123456789)},
            ),
            "pid": 4190000 + r,
        }
        for r in range(12)
    ]
    members = [{"rank": r, "pid": 4190000 + r, "size": 12, "begun": 6 if r == 5 else 7, "ended": 6} for r in range(12)]
    lines = shown(figures.snapshot([frame([]) | {"processes": ranks, "communicators": {"c1": members}}]), width)
    assert max(map(len, lines)) <= width and all(re.search(rf"\b{4190000 + r}\b", "\n".join(lines)) for r in range(12))
    assert any(line.startswith("Reduce_scatter_block ") and "14.8 M" in line and "1.48 GB" in line for line in lines)


@pytest.mark.parametrize("width", [60, 80, 110, 200])
def test_numbers_in_the_list_of_jobs_are_whole(width: int) -> None:
    """One is to be typed; a command may be cut."""
    names, pids = ("7ef811f0a1b2c3d4", "7ef811f0a1b2c3d5"), (1100001, 1100002, 1100003, 1100004)
    jobs = {
        name: [{"pid": pid, "ranks": 12, "host": "node1", "command": "./app [b]" + "x" * 300} for pid in pids]
        for name in names
    }
    console = Console(width=width, record=True, file=open("/dev/null", "w"))
    console.print(table_of(jobs))
    text = console.export_text()
    assert all(
        len(re.findall(rf"\b{number}\b", text)) == times
        for numbers, times in ((names, 1), (pids, 2))
        for number in numbers
    ), text
    assert max(map(len, text.splitlines())) <= width and ("./app [b]x" in text or width < 80)


def test_who_has_no_part_is_told_and_jobs_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the launcher of a cluster's job, whose ranks are children of others."""
    job = {"pid": 1, "job": "ab12", "ranks": 1, "host": "node1", "command": "./app"}
    monkeypatch.setattr(jobs, "survey", lambda program: {"processes": [job], "refused": [], "denied": []})
    with pytest.raises(typer.Exit):
        jobs.choose("", str(os.getpid()))
    said = capsys.readouterr().err
    assert "has no part in a job" in said and "ab12" in said


def test_numbers_for_people() -> None:
    assert [picture.number_text(n, "B") for n in (0, 12, 3456, 7.5e6, 2e9)] == [
        "-",
        "12 B",
        "3.46 kB",
        "7.5 MB",
        "2 GB",
    ]
    assert [picture.time_text(s) for s in (0.0004, 0.05, 1.26, 119, 600)] == [
        "0 ms",
        "50 ms",
        "1.3 s",
        "119.0 s",
        "10 min",
    ]
    assert picture.ranks_text([0, 1, 3, 4, 5, 9]) == "0, 1, 3-5, 9"


# ---- which job, where ranks descend from Slurm's daemon ------------------------------------------


# Numbers that no process has. On a small system, these tests may run in process 71.
ONE, TWO = "4194371", "4194372"


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Two jobs of Slurm, one of them in two steps: pids by step. The first one's srun is this process."""
    with socket.create_server(("127.0.0.1", 0)) as srun:
        port = srun.getsockname()[1]
        environment = {f"{ONE}.0": port, f"{TWO}.0": port + 1, f"{TWO}.1": port + 2}
        ranks = {
            step: subprocess.Popen(
                ["sleep", "60"],
                env={
                    "PATH": os.environ["PATH"],
                    "SLURM_JOB_ID": step.partition(".")[0],
                    "SLURM_STEP_ID": step.partition(".")[2],
                    "SLURM_SRUN_COMM_PORT": str(its),
                },
            )
            for step, its in environment.items()
        }
        while not all(jobs.environment_of(rank.pid) for rank in ranks.values()):  # the kernel is still starting one
            time.sleep(0.01)
        processes = [
            {"pid": rank.pid, "job": f"a{i}", "rank": 0, "ranks": 1, "host": "h", "command": "sleep"}
            for i, rank in enumerate(ranks.values())
        ]
        monkeypatch.setattr(jobs, "survey", lambda program: {"processes": processes, "refused": [], "denied": []})
        yield {step: rank.pid for step, rank in ranks.items()}
        for rank in ranks.values():
            rank.kill()
            rank.wait()


def test_a_job_is_found_by_slurms_number(steps: dict[str, int]) -> None:
    for number, step in ((ONE, f"{ONE}.0"), (f"{ONE}.0", f"{ONE}.0"), (f"{TWO}.1", f"{TWO}.1")):
        assert [p["pid"] for p in jobs.choose("", number)] == [steps[step]]
    for number in (TWO, ONE[:-1] + "9", f"{ONE}.1"):  # two steps; no such job; no such step
        with pytest.raises(typer.Exit):
            jobs.choose("", number)


def test_a_job_is_found_by_its_srun(steps: dict[str, int]) -> None:
    (found,) = [job for job in ([{"pid": pid}] for pid in steps.values()) if jobs.of_srun(job, os.getpid())]
    assert found[0]["pid"] == steps[f"{ONE}.0"]
    assert not jobs.of_srun([{"pid": steps[f"{ONE}.0"]}], steps[f"{TWO}.0"])
