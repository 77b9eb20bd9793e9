# SPDX-License-Identifier: BSD-3-Clause
"""stretto bench --suite overlap: its program, its two jobs, its figures, and bad arguments."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from stretto.bench import overlap
from stretto.cluster import Plan
from stretto.mpi import Mpi, finding, launching
from stretto.native import build, programs

Inside = Callable[..., "subprocess.CompletedProcess[str]"]
PLAN = Plan("x", leaves=1, hosts_per_leaf=4, ranks_per_host=2)


def request(**more: Any) -> overlap.Request:
    usual = {"ops": ("alltoall",), "least": 1 << 20, "most": 1 << 20, "maps": ("block",), "order": "rank"}
    return overlap.Request(**{**usual, "compute": "sleep", "regimes": "c", "repeat": 3, **more})


def row(comm: float, total: float, init: float, **more: Any) -> dict[str, Any]:
    return {
        "event": "row",
        "op": "alltoall",
        "bytes": 1 << 20,
        "regime": "c",
        "pieces": 16,
        "curc_us": 0.0,
        "crc_us": 40000.0,
        "comm_us": comm,
        "comp_us": 80000.0,
        "total_us": total,
        "init_us": init,
        "cpu_us": 4000.0,
        "cpu_of_all_us": 32000.0,
        **more,
    }


# ---- the program ---------------------------------------------------------------------------------


def run(found: Mpi, np: int, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return launching.capture(found, found.command(np, [programs.compiled(found, "overlap"), *arguments], env or {}))


@pytest.mark.parametrize(
    "order, compute", [("own", "sleep"), ("rank", "work"), ("alike", "work"), ("reverse", "sleep")]
)
def test_the_program_measures_every_operation(order: str, compute: str) -> None:
    calls = [f"{op}:{size}" for op in overlap.OPS for size in (8, 20_000)]
    done = run(finding.find(), 3, "--order", order, "--compute", compute, "--regimes", "bd", "--repeat", "1", *calls)
    assert done.returncode == 0, done.stderr
    plan, *rows, end = [json.loads(line) for line in done.stdout.splitlines()]
    assert plan["ranks"] == 3 and (plan["rate"] > 0) == (compute == "work") and end == {"event": "done"}
    assert [(r["op"], r["bytes"], r["regime"]) for r in rows] == [
        (*call.split(":")[:1], int(call.split(":")[1]), regime) for call in calls for regime in "bd"
    ]
    for r in rows:
        assert r["total_us"] >= r["init_us"] > 0 and r["curc_us"] + r["crc_us"] > 0
        assert r["pieces"] == (1 if r["bytes"] == 8 else 4)


def test_the_program_computes_for_the_time_that_it_is_given() -> None:
    done = run(finding.find(), 2, "--regimes", "c", "--repeat", "1", "bcast:80:40000")
    (result,) = [json.loads(line) for line in done.stdout.splitlines() if '"row"' in line]
    assert result["crc_us"] == pytest.approx(0.65 * 40000)
    assert result["comp_us"] >= 26000 and result["total_us"] >= 26000 > result["comm_us"] / 2


@pytest.mark.parametrize("op", ["alltoall", "alltoallv"])
def test_the_program_finds_wrong_data(op: str) -> None:
    found = finding.find()
    spoil = build.compile_program(
        found, "tests/cli/programs/spoilt_collectives.c", "spoilt_collectives.so", flags=["-shared", "-fPIC"]
    )
    done = run(found, 2, "--regimes", "b", "--repeat", "1", f"{op}:4096", env={"LD_PRELOAD": str(spoil)})
    assert done.returncode != 0 and f"overlap: {op}: rank 1: " in done.stderr and "wrong words" in done.stderr


@pytest.mark.parametrize("words", [["alltoall:12"], ["alltoall"], ["scan:8"], ["--order", "odd", "bcast:8"]])
def test_the_program_refuses(words: list[str]) -> None:
    done = run(finding.find(), 2, *words)
    assert done.returncode != 0 and done.stderr.count("overlap: ") == 1


# ---- two jobs ------------------------------------------------------------------------------------


def test_the_second_job_does_the_work_of_the_first() -> None:
    jobs: list[tuple[str, list[str], dict[str, str]]] = []

    def played(where: str, words: list[str], env: dict[str, str]) -> Iterator[str]:
        jobs.append((where, words, env))
        yield json.dumps({"event": "plan", "ranks": 8, "rate": 321.5})
        yield "a line of somebody else"
        yield json.dumps(row(100_000.0, 165_000.0, 1_000.0))
        yield json.dumps({"event": "done"})

    measured = overlap.measure(request(maps=("block", "cyclic")), played, {"A": "1"}, {"B": "2"})
    assert [len(pairs) for pairs in measured.values()] == [1, 1] and list(measured) == ["block", "cyclic"]
    assert [(where, env) for where, _, env in jobs] == [
        (where, env) for where in ("block", "cyclic") for env in ({"A": "1"}, {"B": "2"})
    ]
    options = ["--order", "rank", "--compute", "sleep", "--regimes", "c", "--repeat", "3"]
    assert jobs[0][1] == [*options, "alltoall:1048576"]
    assert jobs[1][1] == [*options, "--rate", "321.5", "alltoall:1048576:100000.0"]


EARLY, BLOCKING = row(100_000.0, 162_000.0, 2_000.0), row(110_000.0, 191_000.0, 110_000.0)


def test_figures_of_a_pair() -> None:
    """8 ranks on 4 hosts in blocks, in rank order: two blocks of eight hide, piece by piece. Figures
    go by the time that computing really took."""
    cluster: Any = SimpleNamespace(plan=PLAN)
    levels = overlap.levels_of(cluster, "block")
    assert [level.of_ranks[2] for level in levels] == ["x-1", "leaf0"]
    result = overlap.result_of("block", request(), levels, EARLY, BLOCKING)
    assert result["overlap_ms"] == 18.0 and result["gain_ms"] == 29.0 and result["early"]
    assert result["formula_ms"] == pytest.approx(80 - 2) and result["crc_ms"] == 80
    assert result["bound_ms"] == pytest.approx(80 * 2 / 8, abs=80 / 8 / 16)
    assert (result["comm_ms"], result["blocking_comm_ms"], result["init_ms"]) == (100.0, 110.0, 2.0)
    late = overlap.result_of("block", request(), levels, row(100_000.0, 180_000.0, 100_000.0), BLOCKING)
    assert not late["early"] and late["overlap_ms"] == late["bound_ms"] == late["formula_ms"] == 0


def test_working_ranks_leave_less_to_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster: Any = SimpleNamespace(plan=PLAN)
    monkeypatch.setattr(overlap.os, "sched_getaffinity", lambda _: {0, 1})
    pair = row(20_000.0, 85_000.0, 0.0), row(20_000.0, 100_000.0, 20_000.0)
    bounds = [
        overlap.result_of("cyclic", request(order="own", compute=how), overlap.levels_of(cluster, "cyclic"), *pair)
        for how in ("sleep", "work")
    ]
    assert bounds[0]["bound_ms"] == pytest.approx(20)
    assert bounds[1]["bound_ms"] == pytest.approx(20 - 32 / 2), "all processes, on two processors"


def test_a_document_and_its_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cluster: Any = SimpleNamespace(plan=PLAN)
    late = row(9_000.0, 74_000.0, 9_000.0, op="bcast")
    doc = overlap.document(cluster, finding.find(), request(), {"block": [(EARLY, BLOCKING), (late, late)]})
    needed = {"op", "regime", "overlap_ms", "formula_ms", "init_ms", "comm_ms", "bound_ms", "map", "order", "bytes"}
    assert all(needed <= set(result) for result in doc["results"]) and len(doc["results"]) == 2
    monkeypatch.setattr(overlap, "out", Console(width=180))
    overlap.show(doc)
    said = capsys.readouterr()
    assert "map block, order rank" in said.out and "0.23" in said.out, "18 of 78 ms"
    assert "no early return, so nothing is hidden: bcast" in said.err


def test_one_sentence_about_blocks_in_rank_order() -> None:
    said = overlap.advice(request(), ranks=8, per_host=2)
    assert said and "C (M-1)/N = 1/8 C" in said and "2/8 C piece by piece" in said
    assert overlap.advice(request(order="own"), 8, 2) is None
    assert overlap.advice(request(maps=("cyclic",)), 8, 2) is None


# ---- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words, message",
    [
        (["--op", "scan"], "--op: no such operation: 'scan': one of alltoall, alltoallv, bcast"),
        (["--op", ","], "--op: no such operation: ''"),
        (["--map", "slot"], "--map: no such map: 'slot': one of block, cyclic"),
        (["--regimes", "bx"], "--regimes: 'bx': letters of abcde"),
        (["--sizes", "20"], "--sizes 20: a multiple of 8 bytes"),
        (["--sizes", "4M:1M"], "--sizes: '4M:1M': sizes go from"),
        (["--order", "odd"], "'odd' is not one of"),
        (["--json", "/nowhere/x.json"], "cannot write /nowhere/x.json"),
        (["--name", "nobody"], "nobody"),
    ],
)
def test_bad_arguments(words: list[str], message: str, inside: Inside) -> None:
    done = inside("bench", "--suite", "overlap", *words)
    assert done.returncode == 2 and message in " ".join(done.stderr.split()), done.stderr


def test_lists_of_names() -> None:
    assert overlap.parse_ops("all") == overlap.OPS and overlap.parse_ops("Bcast, reduce,bcast") == ("bcast", "reduce")
    assert overlap.parse_regimes("c,a") == "ac"
    assert request(least=8, most=32, maps=("block", "cyclic"), regimes="ab").rows() == 2 * 2 * 3 * 2


def test_python_and_the_program_know_the_same_operations() -> None:
    text = (Path(__file__).parents[2] / "bench/exchange.hpp").read_text()
    assert [op for op in overlap.OPS if f'{{"{op}", ' not in text] == [] and text.count("return MPI_") == len(
        overlap.OPS
    )
