# SPDX-License-Identifier: BSD-3-Clause
"""Targets of measuring jobs: the domains of their ranks, as text for programs and as a name for a
profile, and medians over runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


def test_domains_of_a_cluster() -> None:
    from stretto.cluster import Plan, levels
    from stretto.cluster.plan import domains_of_plan, placement_text

    plan = Plan("c", leaves=2, hosts_per_leaf=2, ranks_per_host=2)
    filled = domains_of_plan(plan, [h.name for h in plan.hosts for _ in range(2)])
    assert filled == {"node": [0, 0, 1, 1, 2, 2, 3, 3], "leaf": [0, 0, 0, 0, 1, 1, 1, 1], "switch2": [0] * 8}
    assert levels.levels_of_domains(filled) == "node:2,leaf:2,switch2:2"
    dealt = domains_of_plan(plan, [plan.hosts[r % 4].name for r in range(8)])
    assert levels.levels_of_domains(dealt) is None
    assert placement_text(dealt).splitlines()[:2] == ["0: node=0 leaf=0 switch2=0", "1: node=1 leaf=0 switch2=0"]
    assert list(domains_of_plan(Plan("c", leaves=1), ["c-0", "c-1"])) == ["node", "leaf"]


@pytest.mark.parametrize("levels", ["node:2", "node:2,leaf:2,switch2:2", "numa:1,node:8", "node:3,leaf:5"])
def test_levels_and_back(levels: str) -> None:
    from stretto.cluster.levels import domains_of_levels, levels_of_domains

    assert levels_of_domains(domains_of_levels(levels, 30)) == levels


def test_peers_on_every_level() -> None:
    """The nearest rank across each level, and none where a level has nobody new."""
    from stretto.cluster.target import Target
    from stretto.model import exercises

    where = Target(None, levels="node:2,leaf:2,switch2:2")  # type: ignore[arg-type]
    assert exercises.peers_of(where, 8) == {"node": 1, "leaf": 2, "switch2": 4}
    alone = Target(None, levels="node:1,leaf:2,switch2:2")  # type: ignore[arg-type]
    assert exercises.peers_of(alone, 4) == {"leaf": 1, "switch2": 2}


def test_medians_over_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run does its share of the repetitions, all jobs in each; one that was slow throughout does not count."""
    from stretto.cluster import target
    from stretto.cluster.target import Target

    asked: list[list[Any]] = []

    def run(_: Any, ranks: int, argv: list[Any], timeout: float) -> list[dict[str, Any]]:
        asked.append(argv)
        slow = 3.0 if len(asked) == 2 else 1.0
        return [
            {"job": name, **{key: slow * (10 * i + len(asked)) for key in target.TIMES}}
            for i, name in enumerate(argv[3:], 1)
        ]

    monkeypatch.setattr(Target, "_rows", run)
    found = Target(SimpleNamespace()).timed(2, Path("p"), ["--x"], 12, ["a", "b"], 1)  # type: ignore[arg-type]
    assert asked == [[Path("p"), "--x", "3", "a", "b"]] * 5
    assert [(r["job"], r["time"], r["low"]) for r in found] == [("a", 14, 14), ("b", 24, 24)]
