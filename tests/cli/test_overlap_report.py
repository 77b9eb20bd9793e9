# SPDX-License-Identifier: BSD-3-Clause
"""stretto report --overlap: figures, sentences, the picture, and bad arguments."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from stretto.bench import overlap_report

Inside = Callable[..., "subprocess.CompletedProcess[str]"]
SAMPLE = Path(__file__).parents[1] / "fixtures/overlap_stats.json"


def sites() -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["op"], row["bytes"]): row for row in overlap_report.results(overlap_report.read(SAMPLE))}


def test_sites_of_several_ranks() -> None:
    """Two buffers of one length are one site. Lengths that ranks do not share are one site, too."""
    assert list(sites()) == [
        ("Alltoall", "3M"),
        ("Bcast", "1000000"),
        ("Alltoall", "700000-720000"),
        ("Allgather", "90000"),
        ("Bcast", "only sends"),
    ]
    assert {site: row["ranks"] for site, row in sites().items() if row["ranks"] != 3} == {
        ("Bcast", "1000000"): 2,
        ("Bcast", "only sends"): 1,
    }


def test_times_of_one_call() -> None:
    """By rank: 20, 21 and 30 ms until all data were there; 18, 18 and 27 of them hidden."""
    row = sites()["Alltoall", "3M"]
    assert (row["calls"], row["early"], row["early_of_all"]) == (4, 4, 12)
    assert (row["late_ms"], row["late_ms_maximum"]) == (21, 30)
    assert (row["hidden_ms"], row["hidden_ms_maximum"]) == (18, 27)
    assert (row["waited_ms"], row["waited_ms_maximum"]) == (3, 3)
    assert (row["in_call_ms"], row["in_call_ms_maximum"]) == (2, 10)
    waits = sites()["Alltoall", "700000-720000"]
    assert waits["hidden_ms"] == 0 and waits["waited_ms_maximum"] == 4, "waiting ends when all data are there"


def test_one_sentence_for_each_site() -> None:
    meanings = {site: row["meaning"] for site, row in sites().items()}
    assert meanings["Alltoall", "3M"] == "hides 18 ms of 21 ms"
    assert "touches the data at once" in meanings["Alltoall", "700000-720000"]
    assert meanings["Bcast", "1000000"] == "hides all 10 ms; 3 of 4 calls returned early"
    assert "what they send leaves" in meanings["Bcast", "only sends"]
    assert meanings["Allgather", "90000"] == "no call returned early: STRETTO_EXPLAIN=1 says why"


def test_a_call_that_waits_for_its_sources() -> None:
    times = {"in_call_ms": 30.0, "late_ms": 20.0, "hidden_ms": 10.0, "bytes": "1M"}
    said = overlap_report.meaning({**times, "early_of_all": 6, "calls_of_all": 6})
    assert said.startswith("hides 10 ms of 20 ms; but the call takes 30 ms")


def test_table_picture_and_json(inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap_report, "out", Console(width=180))
    picture, file = tmp_path / "sites.png", tmp_path / "sites.json"
    done = inside("report", "--overlap", "--from", SAMPLE, "--plot", picture)
    assert done.returncode == 0, done.stderr
    assert "21 ms / 30 ms" in done.stdout and "Alltoall, 3M: hides 18 ms of 21 ms" in done.stdout
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert inside("report", "--overlap", "--from", SAMPLE, "--json", file).returncode == 0
    assert len(json.loads(file.read_text())["results"]) == 5


def test_first_waits_and_the_timeline(tmp_path: Path) -> None:
    """The waits of one site, and its times in bins: ranks 0 and 1 have shorter ones than rank 2."""
    stats = overlap_report.read(SAMPLE)
    for rank in stats["per_rank"]:
        bin_ns = 10**6 if rank["rank"] < 2 else 2 * 10**6
        for site in rank["overlap"]:
            site |= {"waits": 2, "first_ns": 3 * 10**6 * (1 + rank["rank"])}
            site["timeline"] = {"bin_ns": bin_ns, "in_call_ns": [10**6], "late_ns": [0, 10**6], "waited_ns": [0, 10**5]}
    row = overlap_report.results(stats)[0]
    assert (row["op"], row["bytes"], row["waits"], row["first_ms"]) == ("Alltoall", "3M", 4, 3.0)
    timeline = row["timeline"]
    assert timeline["bin_ms"] == 2.0 and len(timeline["in_call"]) == 2
    assert timeline["in_call"] == pytest.approx([4 / 6, 0]), "rank 0 has two buffers"
    assert timeline["hidden"] == pytest.approx([2.7 / 6, 0.9 / 6])
    assert timeline["waited"] == pytest.approx([0.3 / 6, 0.1 / 6])
    picture = tmp_path / "timeline.svg"
    overlap_report.plot([row], "a program", picture)
    assert "parts of all ranks" in picture.read_text()


def test_sites_that_made_room_for_others() -> None:
    stats = overlap_report.read(SAMPLE)
    assert overlap_report.forgotten(stats) == 0
    stats["per_rank"][0]["communicators"][0]["collectives"]["alltoall"]["calls"]["deferred"] = 50
    assert overlap_report.forgotten(stats) == 50 - 8, "eight calls of rank 0 are at known sites"


def test_bars_are_the_call_and_what_comes_after_it() -> None:
    rows = list(sites().values())
    widths = dict(overlap_report.bars(rows))
    for i, row in enumerate(rows):
        assert sum(each[i] for each in widths.values()) == pytest.approx(row["in_call_ms"] + row["late_ms"], abs=1)


def stats_of(*communicators: dict[str, Any]) -> dict[str, Any]:
    rank = {"rank": 0, "communicators": list(communicators), "freed": []}
    return {"schema": "stretto.stats/1", "ranks": 1, "per_rank": [rank]}


@pytest.mark.parametrize(
    "communicators, message",
    [
        ([{"collectives": {"alltoall": {}}}], "All ranks of a communicator are on one node"),
        ([{"collectives": {"bcast": {}}, "declined": "one rank"}], "does not serve a communicator: one rank"),
        ([{"collectives": {"barrier": {}}}], "the program made no calls of allgather, "),
    ],
)
def test_no_call_that_might_return_early(
    communicators: list[dict[str, Any]], message: str, inside: Inside, tmp_path: Path
) -> None:
    file = tmp_path / "stats.json"
    file.write_text(json.dumps(stats_of(*communicators)))
    done = inside("report", "--overlap", "--from", file)
    assert done.returncode == 2 and message in " ".join(done.stderr.split()), done.stderr


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "not JSON"),
        ("[]", "not statistics of Stretto"),
        ('{"schema": "stretto.top/1"}', "not statistics of Strett"),
    ],
)
def test_files_of_something_else(text: str, message: str, inside: Inside, tmp_path: Path) -> None:
    file = tmp_path / "stats.json"
    file.write_text(text)
    done = inside("report", "--overlap", "--from", file)
    assert done.returncode == 2 and message in done.stderr, done.stderr


@pytest.mark.parametrize(
    "words, status, message",
    [
        ([], 2, "either a program or --from FILE is expected"),
        (["--from", SAMPLE, "--", "true"], 2, "expected, not both"),
        (["--from", "/nowhere/x.json"], 2, "cannot read /nowhere/x.json: No such file"),
        (["--from", SAMPLE, "--plot", "sites.gif"], 2, "cannot draw sites.gif"),
        (["--from", SAMPLE, "--json", "/nowhere/x.json"], 2, "cannot write /nowhere/x.json"),
        (["--", "./no-such-program"], 127, "no such program"),
        (["--name", "nobody", "--", "true"], 2, "nobody"),
        (["-s", "overlap", "--", "true"], 2, "expected NAME=VALUE"),
    ],
)
def test_bad_arguments(words: list[Any], status: int, message: str, inside: Inside) -> None:
    done = inside("report", "--overlap", *words)
    assert done.returncode == status and message in " ".join(done.stderr.split()), done.stderr


def test_programs_that_leave_no_statistics(stretto: Inside) -> None:
    done = stretto("report", "--overlap", "-n", "2", "--", "true")
    assert done.returncode == 1 and "true left no statistics" in done.stderr, done.stderr
    done = stretto("report", "--overlap", "-n", "1", "--", "sh", "-c", "exit 7")
    assert done.returncode == 7 and "sh ended with status 7: no report" in done.stderr, done.stderr
