# SPDX-License-Identifier: BSD-3-Clause
"""tune --job: rules that make a recorded job fastest."""

from __future__ import annotations

import json
from pathlib import Path

import recorded
from recorded import Rank
from stretto.job import recordings, tuning
from stretto.model import timer
from stretto.model.profile import logp

MACHINE = logp("os=1000,or=1000,L=20000,g=0,G=1")  # nanoseconds
PLACE = ["--levels", "node:2"]


def job(folder: Path) -> list[Path]:
    """8 ranks: a long Bcast, short sums, and an Alltoallv, whose lengths not all ranks know."""
    ranks = [Rank(rank, 8) for rank in range(8)]
    for each in ranks:
        for _ in range(5):
            each.call("MPI_Bcast", 100, 50, comm=0, sends=4 << 20, root=0)
            each.call("MPI_Allreduce", 10, 50, comm=0, sends=8)
        each.call("MPI_Alltoallv", 10, 50, comm=0, sends_each=[8] * 8, receives_each=[8] * 8)
    return recorded.write(folder, ranks)


def test_no_rule_makes_the_job_slower(tmp_path: Path) -> None:
    files = job(tmp_path)
    found = tuning.tune(files, MACHINE, PLACE)
    assert {(kind.op, kind.ranks, kind.nodes, kind.calls) for kind in found.kinds} == {
        ("bcast", 8, 4, 5),
        ("allreduce", 8, 4, 5),
    }
    assert found.left == 1 and found.in_node == 0 and found.seconds <= found.built_in
    assert all(kind.rules for kind in found.kinds)
    rules = found.text("by a test")
    for kind in found.kinds:
        assert kind.kept == (kind.rules[0] in rules)
    with timer.text_file(rules) as file:
        answer = recordings.replay(files, [*PLACE, "--collectives", "stretto", "--rules", file], MACHINE)
    assert abs(answer["seconds"] - found.seconds) < 1e-9


def test_within_a_node_there_is_nothing_to_say(tmp_path: Path) -> None:
    found = tuning.tune(job(tmp_path), MACHINE, ["--levels", "node:8"])
    assert found.kinds == [] and found.in_node == 10 and found.text("x") == "# x\n"


LAUNCHED = """#!/bin/sh
echo "${STRETTO_RULES:-none}" >> "$0.log"
[ -z "$FAILS" ] || { echo sorry; exit 3; }
[ -n "$SILENT" ] || for rank in 0 1 2; do cp "${0%/*}/small/job.$rank" "$STRETTO_RECORD.$rank"; done
"""


def test_the_job_is_run_with_the_rules_and_without(tmp_path: Path, inside, monkeypatch) -> None:
    (tmp_path / "small").mkdir()
    recorded.small_job(tmp_path / "small")
    launch, rules = tmp_path / "launch", tmp_path / "x.rules"
    launch.write_text(LAUNCHED)
    launch.chmod(0o755)
    words = ("tune", "--job", tmp_path / "small/job", "-o", rules, "--runs", "2", "--json", "-", "--", launch)
    report = json.loads(inside(*words).stdout)
    took = report["measured_s"]
    assert report["runs"] == {"with_rules": [took] * 2, "without": [took] * 2} and took > 0
    assert (tmp_path / "launch.log").read_text().split() == ["none", str(rules), str(rules), "none"]
    for name, says in (("FAILS", "ends with status 3:\nsorry"), ("SILENT", "leaves no recording")):
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            done = inside(*words)
        assert done.returncode != 0 and says in done.stderr


def test_the_command(tmp_path: Path, inside) -> None:
    job(tmp_path)
    said = inside("tune", "--job", tmp_path / "job", "--levels", "node:2", "-o", tmp_path / "x.rules", "--json", "-")
    report = json.loads(said.stdout)
    assert report["schema"] == "stretto.tune.job/1" and len(report["kinds"]) == 2
    assert (tmp_path / "x.rules").read_text().startswith("# by stretto tune --job job\n")
