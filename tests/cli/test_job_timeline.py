# SPDX-License-Identifier: BSD-3-Clause
"""What the page of a recorded job draws: spans, messages, and the critical path as it was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import recorded
from recorded import Rank, peer
from stretto.job import recordings

NEAR = 0.02
US = 1000  # nanoseconds


def drawn(files: list[Path], spans: int = 1000, messages: int = 1000) -> dict[str, Any]:
    return json.loads(recordings.ask("timeline", [str(spans), str(messages), *files]))


def rows(flat: list[float], width: int) -> list[list[float]]:
    return [flat[at : at + width] for at in range(0, len(flat), width)]


def three_ranks(folder: Path) -> list[Path]:
    """Rank 1 waits for rank 0, which has waited for nobody; then all wait for rank 1 in a Barrier."""
    a, b, c = (Rank(rank, 3) for rank in range(3))
    for each in (a, b, c):
        each.define(2, recorded.varint(4) + b"solve.c:12 in step")
    a.call("MPI_Isend", 700, 1, comm=0, destination=peer(1), send_tag=3, sends=800, made=0)
    a.call("MPI_Wait", 99, 1, waited=0)
    b.call("MPI_Recv", 100, 610, comm=0, source=peer(-1), receive_tag=3, receives=800, place=4)
    c.call("MPI_Send", 900, 10, comm=0, destination=peer(-2), send_tag=3, sends=8)
    a.call("MPI_Recv", 10, 110, comm=0, source=peer(2), receive_tag=3, receives=8)
    for each, gap, wait in ((a, 79, 220), (b, 490, 20), (c, 40, 270)):
        each.call("MPI_Barrier", gap, wait, comm=0)
    return recorded.write(folder, [a, b, c])


def test_messages_go_from_their_send_to_their_wait(tmp_path: Path) -> None:
    found = drawn(three_ranks(tmp_path))
    assert found["messages"]["number"] == 2
    first, second = rows(found["messages"]["drawn"], 5)
    assert first == pytest.approx([0, 1, 700 * US, 10 * US, 800], rel=0.3)
    assert second == pytest.approx([2, 0, 900 * US, 21 * US, 8], rel=0.5)


def test_the_path_is_of_those_that_others_wait_for(tmp_path: Path) -> None:
    path = rows(drawn(three_ranks(tmp_path))["critical"], 3)
    assert [part[0] for part in path[:-1]] == [0, 1]
    assert path[0] == pytest.approx([0, 0, 700 * US], rel=NEAR)
    assert path[1] == pytest.approx([1, 700 * US, 500 * US], rel=NEAR)
    assert sum(part[2] for part in path) == pytest.approx(1220 * US, rel=NEAR), "without a hole"


def test_spans_have_functions_and_places(tmp_path: Path) -> None:
    found = drawn(three_ranks(tmp_path))
    kind = found["kinds"][rows(found["ranks"][1], 3)[0][2]]
    assert found["functions"][kind[0]] == "MPI_Recv" and found["places"][kind[1]] == "solve.c:12 in step"


def test_there_are_no_more_than_asked_for(tmp_path: Path) -> None:
    found = drawn(three_ranks(tmp_path), spans=4, messages=1)
    assert sum(len(spans) // 3 for spans in found["ranks"]) <= 4
    assert found["messages"]["number"] == 2 and found["messages"]["drawn"][4] == 800, "that with most bytes"


def test_the_page_has_them(tmp_path: Path, inside) -> None:
    three_ranks(tmp_path)
    inside("report", tmp_path / "job", "-o", tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    job = json.loads(re.search(r"const job = (\{.*\});", page)[1])
    assert job["messages"]["number"] == 2 and job["critical"] and "solve.c:12 in step" in job["places"]


def test_several_recordings_are_compared(tmp_path: Path, inside) -> None:
    """Twice as many ranks compute 1.25 times as much in all."""
    for ranks, gap in ((2, 1000), (4, 625)):
        folder = tmp_path / str(ranks)
        folder.mkdir()
        made = [Rank(rank, ranks) for rank in range(ranks)]
        for each in made:
            each.call("MPI_Barrier", gap, 125, comm=0)
        recorded.write(folder, made)
    said = inside("report", tmp_path / "4/job.0", tmp_path / "2/job.0")
    lines = [line.split() for line in said.stdout.splitlines() if re.match(r"\s*[24] ", line)]
    assert [line[0] for line in lines] == ["2", "4"] and 79 < float(lines[1][-1][:-1]) < 81
    assert "2 ranks are the reference" in said.stderr
