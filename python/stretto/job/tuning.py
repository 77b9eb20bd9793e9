# SPDX-License-Identifier: BSD-3-Clause
"""The rules that make a recorded job fastest: schedules by the timer, judged by the job's replay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.core.console import fail
from stretto.job import recordings
from stretto.model import timer
from stretto.model.profile import Profile
from stretto.rules import stretto_rules

Call = dict[str, Any]  # of tools/model/job_tune.hpp


@dataclass(frozen=True)
class Kind:
    """Calls of a collective on communicators of so many ranks on so many nodes, and the rules for them."""

    op: str
    ranks: int
    nodes: int
    calls: int
    rules: list[str]
    seconds: float  # of the job, with the rules of all kinds that were kept before, and with these
    kept: bool


@dataclass(frozen=True)
class Tuned:
    built_in: float  # seconds of the job by Stretto's own choices
    mpi: float  # by the algorithms that an MPI takes
    seconds: float  # by the rules
    kinds: list[Kind]
    in_node: int
    left: int

    def text(self, about: str) -> str:
        """The file of rules."""
        return stretto_rules.whole_text((rule for kind in self.kinds if kind.kept for rule in kind.rules), about)


def tune(files: Sequence[Path], costs: Profile, where: Sequence[str]) -> Tuned:
    """Adds the rules of one kind of calls after the other, and keeps those with which the replay is faster."""
    with timer.costs_file(costs) as machine:
        said = json.loads(
            recordings.ask("tune", [*where, "--costs", machine, "--", *files], "timing the job's collectives")
        )
    built_in = now = _replayed(files, costs, where, [])
    kinds: list[Kind] = []
    for (op, ranks, nodes), calls in _by_kind(said["calls"]).items():
        rules = stretto_rules.reaching(op, ranks, nodes, _fastest(calls))
        kept = [rule for kind in kinds if kind.kept for rule in kind.rules]
        seconds = _replayed(files, costs, where, [*kept, *rules])
        kinds.append(Kind(op, ranks, nodes, sum(call["count"] for call in calls), rules, seconds, seconds < now))
        now = min(now, seconds)
    mpi = _answer(files, costs, [*where, "--collectives", "mpi"])
    return Tuned(built_in, mpi, now, kinds, said["in_node"], said["left"])


def _by_kind(calls: Sequence[Call]) -> dict[tuple[str, int, int], list[Call]]:
    kinds: dict[tuple[str, int, int], list[Call]] = {}
    for call in calls:
        if call["candidates"]:
            kinds.setdefault((call["op"], call["ranks"], call["nodes"]), []).append(call)
    # What is called most decides first.
    return dict(sorted(kinds.items(), key=lambda kind: -sum(call["count"] for call in kind[1])))


def _fastest(calls: Sequence[Call]) -> dict[int, str]:
    """By length: the schedule that is fastest for all calls of that length together."""
    times: dict[int, dict[str, float]] = {}
    for call in sorted(calls, key=lambda call: call["whole"]):
        of_length = times.setdefault(call["whole"], {})
        slowest = call["candidates"][-1]["time"]
        said = {stretto_rules.server(each, call["whole"]): each["time"] for each in call["candidates"]}
        for name in {*said, *of_length}:
            of_length[name] = of_length.get(name, 0) + call["count"] * said.get(name, slowest)
    return {whole: min(of_length, key=lambda name: of_length[name]) for whole, of_length in times.items()}


def _replayed(files: Sequence[Path], costs: Profile, where: Sequence[str], rules: Sequence[str]) -> float:
    with timer.text_file("\n".join([*rules, ""])) as file:
        return _answer(files, costs, [*where, "--collectives", "stretto", *(["--rules", file] if rules else [])])


def _answer(files: Sequence[Path], costs: Profile, words: Sequence[str]) -> float:
    answer = recordings.replay(files, words, costs)
    if "failure" in answer:
        fail(f"the job cannot be replayed: {answer['failure']}")
    return answer["seconds"]
