# SPDX-License-Identifier: BSD-3-Clause
"""What the statistics of a run say: who waited for whom and where, sizes, places and times. And the
report that is made of them."""

from __future__ import annotations

import json
import re

import harness
import pytest
from stretto.core import source_lines
from stretto.report import figures, page
from stretto.report.verdict import verdict

ROUNDS, PART_S, NORMS = 8, 0.030, 40
LATE = ("unbalanced.c", "// the late call")


def late_line() -> str:
    lines = (harness.PROGRAMS / LATE[0]).read_text().splitlines()
    return f"unbalanced.c:{next(i for i, line in enumerate(lines, 1) if line.endswith(LATE[1]))} in sweep"


def statistics(mpi, run_mpi, build_program, folder, ranks, *arguments, **options):
    program = build_program(mpi, "unbalanced.c")
    file = folder / "stats.json"
    run_mpi(mpi, ranks, [program, *arguments], env={"STRETTO_STATS": f"json:{file}", **options}).ok()
    return json.loads(file.read_text())


@pytest.mark.skipif(source_lines.tool() is None, reason="no addr2line")
@pytest.mark.parametrize("served", ["stretto", "mpi"])
def test_the_report_names_the_late_rank_and_the_line(mpi, run_mpi, build_program, tmp_path, served):
    """The same whoever serves the calls."""
    options = {"STRETTO_AGREE": "1"} if served == "stretto" else {"STRETTO_ALLREDUCE": "mpi"}
    stats = statistics(mpi, run_mpi, build_program, tmp_path, 3, "sweep", **options)
    run = figures.figures(stats)
    assert run.late[0].rank == 2 and run.late[0].part > 0.5
    assert late_line() in run.late[0].places[0].at
    assert run.share.waiting > 0.5 * ROUNDS * PART_S * 2 / 3
    assert max(run.waited, key=run.waited.get)[1] == 2
    allreduce = next(op for op in run.operations if op.name == "allreduce")
    assert (allreduce.by_host == allreduce.calls) == (served == "mpi")
    found = verdict(run)
    assert "Rank 2" in found.sentences[2] and late_line() in found.sentences[2] and "rank 2" in found.next_step
    html = page.render(stats)
    assert late_line() in html and "Rank 2 causes" in html


@pytest.mark.one_mpi
def test_what_a_rank_learns_of_its_calls(mpi, run_mpi, build_program, tmp_path):
    ranks = 5
    stats = statistics(mpi, run_mpi, build_program, tmp_path, ranks, STRETTO_WAIT="nap")
    assert "unbalanced" in stats["command"] and stats["mpi"] and stats["ended_s"] > 1_700_000_000
    assert {"name": "STRETTO_WAIT", "value": "nap", "origin": "environment"} in stats["options"]
    assert [rank["rank"] for rank in stats["per_rank"]] == list(range(ranks))
    whole = stats["collectives"]["allreduce"]
    assert whole["calls"] == ROUNDS * (1 + NORMS) * ranks and whole["least"]["ns"] <= whole["most"]["ns"] <= whole["ns"]
    for rank in stats["per_rank"]:
        counts = {"allreduce": ROUNDS * (1 + NORMS), "alltoall": 3 * ROUNDS, "bcast": ROUNDS}
        assert {op: each["calls"] for op, each in rank["compared"].items()} == counts
        sizes = {op: [[least, calls] for least, calls, _ in each] for op, each in rank["sizes"].items()}
        assert sizes == {
            "allreduce": [[8, counts["allreduce"]]],
            "alltoall": [[1024, ROUNDS], [4096, ROUNDS], [16384, ROUNDS]],
            "bcast": [[256, ROUNDS]],
        }
        assert rank["waiting_ns"] <= rank["in_calls_ns"] <= rank["run_ns"]
        assert sum(rank["timeline"]["in_call_ns"]) <= rank["in_calls_ns"]
        assert len(rank["timeline"]["in_call_ns"]) <= 200
        sites = sorted((site["op"], site["calls"]) for site in rank["sites"])
        assert sites == [("allreduce", 8), ("allreduce", 320), ("alltoall", 24), ("bcast", 8)]
        assert rank["host"] and re.fullmatch(r"[\d,-]+", rank["cpus"])


@pytest.mark.one_mpi
def test_the_text_ends_with_the_run(mpi, run_mpi, build_program):
    program = build_program(mpi, "unbalanced.c")
    job = run_mpi(mpi, 3, [program], env={"STRETTO_STATS": "text"}).ok()
    last = [line for line in job.stderr.splitlines() if line.startswith("run ")][-1]
    assert re.fullmatch(r"run [\d.]+ \w+; collectives [\d.]+ \w+ \(\d+%\), of which waiting [\d.]+ \w+", last)
    assert re.search(r"allreduce .* on rank \d to .* on rank \d\n", job.stderr)


@pytest.mark.one_mpi
@pytest.mark.skipif(source_lines.tool() is None, reason="no addr2line")
def test_sizes_of_every_collective(mpi, run_mpi, build_program, tmp_path):
    """Also of those that the MPI serves, of derived types, in place, and with requests."""
    program = build_program(mpi, "interpose_families.c")
    file = tmp_path / "stats.json"
    run_mpi(mpi, 3, [program], env={"STRETTO_STATS": f"json:{file}"}).ok()
    for rank in json.loads(file.read_text())["per_rank"]:
        counted = {
            op: sum(
                sum(c["collectives"][op]["calls"].values())
                for c in rank["communicators"] + rank["freed"]
                if op in c["collectives"]
            )
            for op in rank["sizes"]
        }
        assert {op: sum(calls for _, calls, _ in sizes) for op, sizes in rank["sizes"].items()} == counted


@pytest.mark.every
def test_calls_that_are_no_collectives_have_their_time(mpi, run_mpi, build_program, tmp_path):
    """What the MPI calls itself, as messages of its windows and files, is not counted again."""
    program, file = build_program(mpi, "other_calls.c"), tmp_path / "stats.json"
    run_mpi(mpi, 3, [program, tmp_path / "written"], env={"STRETTO_STATS": f"json:{file}"}).ok()
    ranks = json.loads(file.read_text())["per_rank"]
    for rank in ranks:
        calls = {kind: counts["calls"] for kind, counts in rank["other_calls"].items()}
        # Of the window: allocate, fence, put, fence, free. Of the file: open, write, close.
        assert calls == {"messages": 9, "one_sided": 5, "files": 3, "communicators": 1}, rank["rank"]
    assert all(rank["other_calls"]["messages"]["ns"] > 150e6 for rank in ranks[1:])
    share = figures.mean([figures.share_of(rank) for rank in ranks])
    assert share.others["messages"] > 0.1 and 0 < share.rest < share.outside
