# SPDX-License-Identifier: BSD-3-Clause
"""Options that demand a way of serving calls, and cannot be obeyed: one line says why, once a job.

What was measured between two hosts holds for later jobs.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from harness import per_rank_script

pytestmark = pytest.mark.one_mpi
ALL = {"STRETTO_OVERLAP": "on", "STRETTO_TCP": "always", "STRETTO_NONBLOCKING": "on", "STRETTO_TIERS": "1"}
SLOWER = "the MPI moves long messages faster than connections of our own"


def refused(job) -> dict[str, str]:
    """The reason for each option. Each is said once, by rank 0, and nothing else is said."""
    found = [
        re.fullmatch(r"stretto: rank 0: warning: STRETTO_(\w+) has no effect(.*)", line) for line in job.messages()
    ]
    assert all(found), job.describe()
    reasons = {line[1]: line[2] for line in found}
    assert len(reasons) == len(found), job.describe()
    assert [r["wrong"] for r in job.results()] == [0] * len(job.results()) and job.results(), job.describe()
    return reasons


@pytest.fixture
def said(mpi, run_mpi, build_program):
    def run(env, ranks=2, before=(), words=()):
        line = [*before, build_program(mpi, "demands.c"), *words]
        return refused(run_mpi(mpi, ranks, line, env=env).ok())

    return run


def test_on_one_node(said):
    one_node = ": all ranks are on one node"
    assert said(ALL, ranks=3) == {"OVERLAP": one_node, "TCP": one_node}


def test_who_leaves_the_choice_hears_nothing(said):
    assert said({"STRETTO_OVERLAP": "auto", "STRETTO_NONBLOCKING": "auto", "STRETTO_TCP": "auto"}) == {}


def test_on_several_nodes(said, on_nodes):
    """These pretended nodes share memory: the MPI may be faster or slower than connections."""
    reasons = said(ALL, ranks=3, before=[on_nodes(1)])
    assert reasons.pop("OVERLAP", SLOWER).endswith(SLOWER)
    assert reasons == {
        "TIERS": " on a communicator of 3 ranks: its ranks are on several nodes, where calls go by schedules"
    }


def test_windows(said, on_nodes):
    assert said({"STRETTO_OVERLAP": "65536"}, before=[on_nodes(1)]) == {}
    reasons = said({"STRETTO_OVERLAP": "65536"}, before=[on_nodes(1)], words=["window"])
    assert reasons == {"OVERLAP": " on a communicator of 2 ranks: the program has windows of MPI"}


def test_another_rank_refuses(said, on_nodes, tmp_path):
    off = per_rank_script(tmp_path, {1: dict.fromkeys(ALL, "off")})
    assert said(ALL, before=[off]) == {
        "OVERLAP": ": all ranks are on one node",
        "TCP": ": all ranks are on one node",
        "NONBLOCKING": ": a rank has another value",
        "TIERS": " on a communicator of 2 ranks: a rank has another value, or no memory for tiers",
    }
    reasons = said(ALL, before=[on_nodes(1), off])
    assert reasons["OVERLAP"] == ": a rank has STRETTO_OVERLAP=off"
    assert reasons["TCP"] == ": a rank has STRETTO_TCP=off"


class Kept:
    """The file of what was measured between two hosts."""

    def __init__(self, cache: Path) -> None:
        (self.path,) = (cache / "stretto").iterdir()
        self.key, times = self.path.read_text().splitlines()
        self.seconds, self.ours, self.host = map(int, times.split())
        assert abs(self.seconds - time.time()) < 100 and self.ours > 0 and self.host > 0

    def write(self, ours: int, host: int, age: int = 0) -> None:
        self.path.write_text(f"{self.key}\n{self.seconds - age} {ours} {host}\n")


def test_times_of_long_messages_are_kept_for_a_day(said, on_nodes, tmp_path):
    def run() -> dict[str, str]:
        return said({"STRETTO_OVERLAP": "on", "XDG_CACHE_HOME": str(tmp_path)}, before=[on_nodes(1)])

    slower = {"OVERLAP": f" on a communicator of 2 ranks: {SLOWER}"}
    first = run()
    kept = Kept(tmp_path)
    assert kept.key.startswith("long messages ")
    assert first == (slower if kept.ours * 2 > kept.host * 3 else {})
    kept.write(9_000_000, 1_000_000)
    assert run() == slower
    kept.write(1_000_000, 9_000_000)
    assert run() == {}
    assert (Kept(tmp_path).ours, Kept(tmp_path).host) == (1_000_000, 9_000_000)
    kept.write(1_000_000, 9_000_000, age=100_000)
    run()
    assert Kept(tmp_path).ours != 1_000_000, "a day later it is measured anew"


def test_times_of_short_messages_are_kept(mpi, run_mpi, build_program, on_nodes, tmp_path):
    """Jobs ask for connections after some calls."""

    def explained() -> str:
        line = [on_nodes(1), build_program(mpi, "options_check.c"), 60, 8]
        env = {"STRETTO_EXPLAIN": "1", "XDG_CACHE_HOME": str(tmp_path)}
        job = run_mpi(mpi, 2, line, env=env).ok()
        (found,) = re.findall("short messages between nodes by (.*)", "\n".join(job.messages()))
        return found

    times = "there and back {:.1f} us by connections of our own, {:.1f} us by the MPI"
    first = explained()
    kept = Kept(tmp_path)
    assert first.endswith(times.format(kept.ours / 1000, kept.host / 1000)), first
    kept.write(10_000, 90_000)
    assert explained() == "connections of our own: " + times.format(10, 90)
    kept.write(90_000, 10_000)
    assert explained() == "the MPI: " + times.format(90, 10)
