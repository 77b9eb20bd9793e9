# SPDX-License-Identifier: BSD-3-Clause
"""Files for STRETTO_RULES: checked, and asked what they force on a call. Algorithms over shared memory are tuned."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
RULES = """# by hand
bcast: chain segment=1K   # a comment
bcast bytes=100K-: shm:board
allreduce nodes=1 bytes=64-4K: shm:slices
allreduce nodes=2- bytes=9K-: hierarchy by=ring
allgather nodes=3- bytes=9K-: mpi
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "bcast: chain\nallreduce: shm:ring\n",
            "2:12: an algorithm over shared memory was expected: shm:flat or shm:root or shm:s",
        ),
        ("gatherv: shm:flat\n", "1:10: an algorithm over shared memory was expected: shm:channels"),
        ("broadcast: chain\n", "1:1: a collective was expected"),
        ("bcast: shm:board k=2\n", "1:18: text after the end of the rule"),
    ],
)
def test_a_mistake_is_said_with_its_place(stretto: Tool, tmp_path: Path, text: str, says: str) -> None:
    """`model rules --check` and `explain --rules` say the same."""
    file = tmp_path / "rules"
    file.write_text(text)
    for line in (["model", "rules", "--check", file], ["explain", "--op", "bcast", "--rules", file]):
        done = stretto(*line)
        assert done.returncode == 2 and f"{file}:{says}" in " ".join(done.stderr.split()), done.stderr


def test_a_good_file_is_counted(stretto: Tool, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text(RULES)
    done = stretto("model", "rules", "--check", tmp_path / "rules")
    assert done.returncode == 0 and done.stdout.strip().endswith("rules: 5 rules"), done.stdout + done.stderr
    (tmp_path / "none").write_text("# nothing\n")
    assert stretto("model", "rules", "--check", tmp_path / "none").stdout.strip().endswith("none: 0 rules")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (["--op", "bcast", "--bytes", "4096"], ("chain segment=1K (line 2)", "chain", 4)),
        (["--op", "bcast", "--bytes", "1M"], ("shm:board (line 3)", None, 1)),
        (["--op", "allreduce", "--bytes", "64"], ("shm:slices (line 4)", None, 1)),
        (["--op", "allreduce", "--bytes", "63"], None),
        (["--op", "allreduce", "--bytes", "64", "--levels", "node:3"], None),
        (
            ["--op", "allreduce", "--bytes", "9K", "--levels", "node:5"],
            ("hierarchy by=ring (line 5)", "hierarchy by=ring", 1),
        ),
        (["--op", "allgather", "--bytes", "1K", "--levels", "node:3"], ("mpi (line 6)", None, 1)),
        (["--op", "allgather", "--bytes", "1023", "--levels", "node:3"], None),
    ],
)
def test_explain_takes_what_our_rules_force(
    stretto: Tool, tmp_path: Path, call: list[str], expected: tuple[str, str | None, int] | None
) -> None:
    (tmp_path / "rules").write_text(RULES)
    done = stretto("explain", *call, "-n", "9", "--rules", tmp_path / "rules", "--json", "-")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    forced = found["forced"]
    assert (forced and (forced["says"], forced["algorithm"], forced["segments"])) == expected
    if expected and expected[1]:
        assert (found["candidates"][0]["algorithm"], found["candidates"][0]["segments"]) == expected[1:]


def test_what_is_no_schedule_is_said(stretto: Tool, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text(RULES)
    done = stretto("explain", "--op", "bcast", "-n", "9", "--bytes", "1M", "--rules", tmp_path / "rules")
    assert "asks for shm:board (line 3), which is no schedule. By the profile:" in " ".join(done.stdout.split())


# ---- tune ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "bytes_", "others"),
    [
        ("allreduce", "64", ["shm:root", "shm:slices"]),
        ("allreduce", "1M", ["shm:flat", "shm:root"]),
        ("reduce", "64", ["shm:slices"]),
        ("bcast", "64", []),
    ],
)
def test_the_model_names_what_is_not_built_in(stretto: Tool, op: str, bytes_: str, others: list[str]) -> None:
    from stretto.model import profile_file, timer

    call = timer.ask_json(
        "explain", profile_file.load(profile_file.EXAMPLE), timer.shape(op, [], [3], [int_of(bytes_)])
    )
    assert call["calls"][0]["shared_memory"] == others


def int_of(size: str) -> int:
    from stretto.core.units import parse_size

    return parse_size(size)


def call(op: str = "allreduce") -> dict[str, Any]:
    candidates = [{"algorithm": "ring", "k": 0, "segments": 1, "name": "ring", "time": 100.0}]
    return {"op": op, "ranks": 4, "place": "", "bytes": 64, "candidates": candidates, "shared_memory": ["shm:slices"]}


def tuned(times: dict[str, float]) -> tuple[Any, list[str]]:
    """A profile tuned on a machine that takes these times, and what was measured on it."""
    from stretto.model import tuning
    from stretto.model.profile import Profile

    asked = []

    def machine(ranks: int, jobs: Any) -> Any:
        for _, candidate in jobs:
            asked.append(candidate["algorithm"])
            time = times[candidate["algorithm"]]
            yield {"time": time, "low": time - 1, "high": time + 1}

    profile = Profile({"name": "a test's"}, [{"level": "top", "from_bytes": 0}], [], [])
    tuning.tune(profile, [call()], machine, lambda p: None, lambda decided, made: None, 0.3)
    tuning.confirm(profile, [call()], machine, lambda p: None)
    return profile, asked


def test_algorithms_over_shared_memory_are_tried_and_chosen() -> None:
    """The model knows no time of theirs, so they are always measured, and correct no prediction."""
    from stretto.model import tuning_report
    from stretto.rules import measurements, stretto_rules

    profile, asked = tuned({"ring": 120.0, "builtin": 50.0, "mpi": 90.0, "shm:slices": 40.0})
    assert asked[:4] == ["ring", "builtin", "mpi", "shm:slices"] and asked.count("shm:slices") > 1
    assert stretto_rules.text(profile.measured, "").splitlines()[1:] == [
        "allreduce ranks=4 nodes=1 bytes=0-: shm:slices"
    ]
    assert tuning_report.summary(profile, [call()])["rows"][0]["choice"] == "shm:slices"
    assert measurements.corrected(profile.measured, "allreduce", call())[0]["expected"] == 120
    assert "allreduce ranks=4 nodes=1 bytes=64-64: shm:slices" in stretto_rules.forcing(
        [(call(), {"algorithm": "shm:slices", "k": 0, "segments": 1})]
    )
    profile, _ = tuned({"ring": 120.0, "builtin": 50.0, "mpi": 90.0, "shm:slices": 60.0})
    assert stretto_rules.text(profile.measured, "").splitlines()[1:] == []


def test_what_was_measured_over_shared_memory_must_be_beaten() -> None:
    """Ring is expected to take 100, at best 77. So a time of 70 leaves nothing to measure beside the favourite."""
    from stretto.model import tuning

    rows = [
        {"op": "allreduce", "ranks": 4, "place": "", "bytes": 64, "algorithm": name, "k": 0, "segments": 1}
        | {"time": time, "predicted": 0.0, "turns": 0}
        for name, time in (("builtin", 200.0), ("mpi", 200.0), ("shm:slices", 70.0))
    ]
    assert tuning.contenders(rows, call(), 0.3, 8) == []
    assert [c["algorithm"] for c in tuning.contenders(rows[:2], call(), 0.3, 8)] == ["ring"]
