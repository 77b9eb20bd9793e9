# SPDX-License-Identifier: BSD-3-Clause
"""stretto bench --suite programs: what is read of programs and statistics, and bad arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stretto.bench import overlap_programs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("said", "seconds", "best"),
    [
        ("size 64\nseconds per transform 0.050000, of which in Alltoall 0.043000\n", 0.05, 0.86),
        ("seconds per sort: sort 0.025000, split 0.003000, exchange 0.020000, merge 0.002000\n", 0.05, 0.6),
        ("sgd: 5 steps, 9 features, 2 ranks: right, 0.250 s (97% of the tested samples)\n", 0.25, None),
        ("Loop time of 1.50 on 2 procs for 100 steps\n", 1.5, None),
        ("nothing about time\n", 9.0, None),
    ],
)
def test_times_that_programs_print(said: str, seconds: float, best: float | None) -> None:
    times = overlap_programs.times_of(said, 9.0)
    assert times["seconds"] == pytest.approx(seconds)
    assert times.get("best_ratio") == (best and pytest.approx(best))


def test_costs_are_of_one_call_on_the_median_rank() -> None:
    stats = json.loads((ROOT / "tests/fixtures/overlap_stats.json").read_text())
    costs = overlap_programs.costs_of(stats)
    assert (costs["calls"], costs["early"]) == (13, 8)
    assert costs["in_call_ms"] == pytest.approx(17 / 13) and costs["faults"] == 0
    assert overlap_programs.costs_of({"per_rank": [{}]}) == {"calls": 0, "early": 0}


def test_turns_go_forth_and_back_and_neighbours_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    request = overlap_programs.Request(("fft3d",), overlap_programs.parse_values("on,off"), 2, "slot")
    order: list[str] = []

    def job(words: str, value: str) -> dict[str, Any]:
        order.append(value)
        return {"seconds": {"off": 1.0, "on": 1.5}[value] * len(order), "calls": 1, "early": 0}

    rows = overlap_programs.measure(request, job)
    assert order == ["off", "on", "on", "off"]
    assert [row["value"] for row in rows] == ["off", "on"]
    assert rows[1]["ratio"] == pytest.approx((3.0 / 1.0 + 4.5 / 4.0) / 2)


def test_another_program_is_refused() -> None:
    with pytest.raises(ValueError, match="'fft4d 3': neither an executable nor one of .*fft3d"):
        overlap_programs.parse_programs(["fft3d --size 8", "true", "fft4d 3"])
