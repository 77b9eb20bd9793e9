# SPDX-License-Identifier: BSD-3-Clause
"""info --topology: the groups of every rank, in text, JSON and pictures."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as xml
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stretto.commands import topology_plot

Tool = Callable[..., "subprocess.CompletedProcess[str]"]


def placed(tmp_path: Path, text: str) -> dict[str, str]:
    (tmp_path / "placement").write_text(text + "\n")
    return {"STRETTO_PLACEMENT": str(tmp_path / "placement")}


def group(level: str, root: int, *parts: Any) -> dict[str, Any]:
    """Of groups, or of ranks."""
    groups = [p for p in parts if isinstance(p, dict)]
    ranks = [r for g in groups for r in g["ranks"]] or list(parts)
    members = [g["leader"] for g in groups] or ranks
    return {
        "level": level,
        "leader": root if root in ranks else ranks[0],
        "members": members,
        "ranks": ranks,
        "groups": groups,
    }


def texts(picture: Path) -> list[str]:
    return [
        text
        for e in xml.parse(picture).iter("{http://www.w3.org/2000/svg}text")
        if (text := "".join(e.itertext()).strip())
    ]


def test_large_cluster_stays_readable(stretto: Tool, tmp_path: Path) -> None:
    """64 nodes of 2 x 18 processors, 16 to a leaf switch: what is alike is drawn once, what holds the root is drawn."""
    picture = tmp_path / "tree.svg"
    done = stretto(
        "info",
        "--topology",
        "-n",
        "2304",
        "--root",
        "700",
        "--plot",
        str(picture),
        "--json",
        str(tmp_path / "tree.json"),
        env=placed(tmp_path, "all: leaf:4 node:16 socket:2 core:18"),
    )
    assert done.returncode == 0, done.stderr
    groups = json.loads((tmp_path / "tree.json").read_text())["groups_of_ranks"]
    assert groups[700] == [
        list(range(684, 702)),
        [700, 702],
        [576, 612, 648, 700, *range(720, 1152, 36)],
        [0, 700, 1152, 1728],
    ]
    assert groups[18] == [list(range(18, 36)), [0, 18]] and groups[1] == [list(range(18))]
    said = texts(picture)
    assert {
        "15 more like it: 36-575",
        "2 more like it: 1152-2303",
        "14 more like it: 612-683,720-1151",
        "socket: 684-701",
    } <= set(said), said
    assert said.count("700") == 4 and len(said) < 100


def test_switches_have_their_names(stretto: Tool, tmp_path: Path) -> None:
    (tmp_path / "network").write_text("a west spine\nb west spine\nc east spine\nd east spine\n")
    done = stretto(
        "info", "--topology", "--plot", str(tmp_path / "tree.svg"), env={"STRETTO_TOPOLOGY": str(tmp_path / "network")}
    )
    assert done.returncode == 0, done.stderr
    assert "leaf west: 0-1  led by 0" in done.stdout and "rank 2: {2-3}  {0,2}" in done.stdout
    assert {"leaf west: 0-1", "leaf east: 2-3"} <= set(texts(tmp_path / "tree.svg"))


def test_carriers_where_cards_are_known(stretto: Tool, tmp_path: Path) -> None:
    done = stretto(
        "info",
        "--topology",
        "-n",
        "16",
        env=placed(tmp_path, "all: node:2 socket:2 core:4\n0-3,8-11: nic=0\n4-7: nic=1\n"),
    )
    assert done.returncode == 0, done.stderr
    lines = [re.sub(r"^[ │├└─]*", "", line) for line in done.stdout.splitlines()]
    assert (
        "node: 0-7  led by 0, leaders 0,4, carriers 0,4" in lines
        and "node: 8-15  led by 8, leaders 8,12, carriers 8" in lines
    ), done.stdout
    done = stretto("info", "--topology", "-n", "16", env=placed(tmp_path, "all: node:2 core:8"))
    assert done.returncode == 0 and "carriers" not in done.stdout


def test_plot_needs_topology(stretto: Tool, tmp_path: Path) -> None:
    done = stretto("info", "--plot", str(tmp_path / "x.svg"))
    assert done.returncode == 2 and "--topology" in done.stderr and not (tmp_path / "x.svg").exists()
    done = stretto("info", "--topology", "--plot", str(tmp_path / "x.doc"))
    assert done.returncode == 2 and "cannot draw" in done.stderr


def test_a_rank_that_is_not_there_is_told_with_those_that_are(stretto: Tool, tmp_path: Path) -> None:
    placement = placed(tmp_path, "all: node:2 core:2")
    done = stretto("info", "--topology", "-n", "4", "--root", "9", env=placement)
    assert done.returncode == 2 and "--root 9" in done.stderr and "0 to 3" in done.stderr
    (tmp_path / "network").write_text("a west\nb west\n")
    done = stretto("info", "--topology", "-n", "4", env={"STRETTO_TOPOLOGY": str(tmp_path / "network")})
    assert done.returncode == 0 and "-n 4: only 2 have a place" in done.stderr


def test_groups_that_differ_are_not_folded() -> None:
    pair, triple = group("node", 0, 2, 3), group("node", 0, 4, 5, 6)
    nodes = [group("node", 0, 0, 1), pair, triple, group("node", 0, 7, 8)]
    boxes = topology_plot.box_of(group("top", 0, *nodes), 0, fold=True).below
    assert [b.title for b in boxes] == ["node: 0-1", "2 more like it: 2-3,7-8", "node: 4-6"] and [
        b.more for b in boxes
    ] == [0, 2, 0]


@pytest.mark.parametrize("root", [0, 5, 63])
def test_boxes_lie_apart(root: int) -> None:
    def built(level: int, first: int) -> dict[str, Any]:
        if level == 0:
            return group("node", root, *range(first, first + 4))
        return group(f"switch{level}", root, *(built(level - 1, first + i * 4**level) for i in range(4)))

    top = topology_plot.box_of(built(2, 0), root, fold=False)
    columns, height = topology_plot.place(top)
    boxes = list(top.all())
    assert len(boxes) == 1 + 4 + 16 and len(columns) == 4
    for one in boxes:
        assert one.y + topology_plot.BOX / 2 <= height and one.x + one.width <= columns[-1]
        for other in boxes:
            apart = (
                abs(one.y - other.y) >= topology_plot.BOX
                or one.x + one.width < other.x
                or other.x + other.width < one.x
            )
            assert one is other or apart, (one.title, other.title)
    assert sum(kind == "root" for box in boxes for _, kind in box.chips) == 3, (
        "the root leads every group that it is in"
    )


def test_many_members_are_shortened() -> None:
    chips = topology_plot.chips_of(group("node", 20, *range(36)), 20)
    assert [text for text, _ in chips] == ["0", "1", "2", "…", "20", "…", "35"]
    assert dict(chips)["20"] == "root" and re.fullmatch("member", dict(chips)["35"])
