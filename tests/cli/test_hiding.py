# SPDX-License-Identifier: BSD-3-Clause
"""What calls that return early could hide, as reports and `stretto model job` say it before they are switched on."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import recorded
from recorded import Rank
from stretto.job import hiding
from stretto.report import early, figures, page

NEAR = 0.02  # times of a recording lie on a scale
APART = ("--levels", "node:1")
LONG = 1_000_000
STATISTICS = Path(__file__).parents[1] / "fixtures/report/on.json"


def job(ranks: int) -> list[Rank]:
    return [Rank(rank, ranks) for rank in range(ranks)]


def found(folder: Path, ranks: list[Rank], *words: str) -> hiding.Hiding:
    return hiding.of(recorded.write(folder, ranks), str, words or APART)


def test_of_moving_and_computing_the_shorter_is_hidden(tmp_path: Path) -> None:
    """Rank 1 comes 500 us late: rank 0 waits that long, and both move for 1500 us. What they compute behind the first
    call is shorter, behind the second it is longer."""
    ranks = job(2)
    for each in ranks:
        late = 500 * each.rank
        each.call("MPI_Alltoall", 10 + late, 2000 - late, comm=0, sends=LONG)
        each.call("MPI_Alltoall", 700, 2000, comm=0, sends=LONG)
        each.call("MPI_Barrier", 3000, comm=0)
    said = found(tmp_path, ranks)
    (alltoall,) = (site for site in said.sites if site.call == "MPI_Alltoall")
    assert (alltoall.calls, alltoall.early) == (4, 4)
    assert alltoall.moving_s == pytest.approx(3500e-6, rel=NEAR)
    assert alltoall.computing_s == pytest.approx(3700e-6, rel=NEAR)
    assert alltoall.hidden_at_most_s == pytest.approx(2700e-6, rel=NEAR) == said.hidden_s
    assert said.part == pytest.approx(2700 / 7710, rel=NEAR)
    assert said.advice().startswith("STRETTO_OVERLAP=auto could hide at most 35.") and "MPI_Alltoall" in said.advice()


def test_who_waits_for_the_root_alone(tmp_path: Path) -> None:
    """The root of a Bcast comes 400 us after rank 1, and moves for 100 us; rank 2, later still, moves for 50."""
    ranks = job(3)
    for each, gap, took in zip(ranks, (410, 10, 460), (100, 500, 50)):
        each.call("MPI_Bcast", gap, took, comm=0, sends=LONG, root=0)
        each.call("MPI_Barrier", 1000, comm=0)
    (bcast,) = (site for site in found(tmp_path, ranks).sites if site.call == "MPI_Bcast")
    assert bcast.hidden_at_most_s == pytest.approx(100e-6, rel=0.05)


@pytest.mark.parametrize(
    ("call", "words", "places", "reason"),
    [
        ("MPI_Alltoall", {"sends": LONG}, ("--levels", "node:2"), "all ranks are on one node"),
        ("MPI_Allreduce", {"sends": 8}, APART, "MPI_Allreduce: a rank receives less than 256K"),
        ("MPI_Alltoallv", {"sends_each": [1, 1], "receives_each": [1, 1]}, APART, "receives less than 256K"),
        ("MPI_Barrier", {}, APART, "MPI_Barrier: such calls never return early"),
        ("MPI_Alltoall", {"sends": LONG}, APART, "moves data for 1 ms, and the next calls come after computing for"),
        ("MPI_Wait", {"waited": []}, APART, "there are no blocking collectives"),
    ],
)
def test_who_gains_nothing(tmp_path: Path, call: str, words: dict[str, Any], places: Any, reason: str) -> None:
    ranks = job(2)
    for each in ranks:
        common = {} if call == "MPI_Wait" else {"comm": 0}
        each.call(call, 10, 1000, **common, **words)
        each.call("MPI_Wait", 1, waited=[])
    said = found(tmp_path, ranks, *places).advice()
    assert said.startswith("STRETTO_OVERLAP=auto gains next to nothing: ") and reason in said


def test_both_commands_say_it(tmp_path: Path, inside) -> None:
    ranks = job(2)
    for each in ranks:
        each.call("MPI_Alltoall", 10, 2000, comm=0, sends=LONG)
        each.call("MPI_Barrier", 1000, comm=0)
    recorded.write(tmp_path, ranks)
    told = " ".join(inside("model", "job", tmp_path / "job", *APART).stdout.split())
    assert "could hide at most 33" in told and "MPI_Alltoall 2 2.01 ms" in told
    answer = json.loads(inside("model", "job", tmp_path / "job", *APART, "--json", "-").stdout)
    assert answer["early"]["hidden_at_most_s"] == pytest.approx(1e-3, rel=NEAR)
    assert [site["call"] for site in answer["early"]["sites"]] == ["MPI_Alltoall"]
    told = " ".join(inside("report", tmp_path / "job", "-o", tmp_path / "x.html").stdout.split())
    assert "gains next to nothing: all ranks are on one node" in told
    assert "If calls returned early" in (tmp_path / "x.html").read_text()


def statistics(hosts: int, length: int, outside: float, **options: str) -> dict[str, Any]:
    """Of two ranks that spend one second in Alltoalls, 0.2 of it waiting, and `outside` seconds elsewhere."""
    stats = copy.deepcopy(json.loads(STATISTICS.read_text()))
    site = {"site": 1, "op": "alltoall", "at": "a.c:7 in step", "calls": 10, "host": 0, "bytes": 10 * length,
            "ns": 10**9, "longest_ns": 10**8, "compared_calls": 10, "compared_ns": 10**9,
            "waiting_ns": 2 * 10**8}  # fmt: skip
    times = {"run_ns": int(1e9 * (1 + outside)), "in_calls_ns": 10**9, "sites": [site], "waited_for": []}
    ranks = stats["per_rank"][:2]
    stats["per_rank"] = [{**rank, **times, "rank": r, "host": f"h{r % hosts}"} for r, rank in enumerate(ranks)]
    stats["options"] = [{"name": name, "value": value, "origin": "environment"} for name, value in options.items()]
    return stats


@pytest.mark.parametrize(
    ("hosts", "length", "outside", "says"),
    [
        (2, LONG, 1.0, "could hide at most 40% of the run"),
        (2, LONG, 0.25, "could hide at most 20% of the run"),
        (2, LONG, 0.0, "the program computes next to nothing"),
        (2, 1000, 1.0, "MPI_Alltoall at a.c:7 in step: it has"),
        (1, LONG, 1.0, "all ranks are on one node"),
    ],
)
def test_statistics_bound_it_by_what_moves_and_by_what_is_outside(
    hosts: int, length: int, outside: float, says: str
) -> None:
    stats = statistics(hosts, length, outside)
    said = early.advice(figures.figures(stats))
    assert said is not None and says in said
    assert 'id="early"' in page.render(stats)


def test_nothing_is_said_of_a_run_that_had_it(tmp_path: Path) -> None:
    stats = statistics(2, LONG, 1.0, STRETTO_OVERLAP="auto")
    assert early.advice(figures.figures(stats)) is None
    assert 'id="early"' not in page.render(stats)
