# SPDX-License-Identifier: BSD-3-Clause
"""A picture of the tree of groups: a column for each level, and a box with the members of each
group.

In a large tree, groups of equal structure are drawn once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto.commands.topology import title
from stretto.core.plots import COLOURS, save
from stretto.core.units import ranges

ROOT, LEADER, EDGE, DIM = COLOURS[1], COLOURS[0], "#8a8a8a", "#666666"
IN_FULL = 24  # with more lowest groups, groups of equal structure are drawn once
CHIPS = 9  # the most members of a group that are all shown

# In points, as the coordinates of the drawing are.
TITLE, NUMBER = 8.5, 8.0
WIDE = 0.64  # width of a digit, and nearly that of a letter, as a part of the font size
CHIP, GAP, PAD, BETWEEN, ROW = 14, 3, 6, 34, 10
BOX = 12 + CHIP + 2 * PAD


@dataclass
class Box:
    """A group. With `more`, a stack of that many groups like the one before it."""

    title: str
    chips: list[tuple[str, str]]  # text, and its kind: root, leader, member or gap
    more: int = 0
    below: list["Box"] = field(default_factory=list)
    x: float = 0
    y: float = 0  # of its middle

    @property
    def width(self) -> float:
        chips = sum(chip_width(text) + GAP for text, _ in self.chips) - GAP
        return 2 * PAD + max(chips, len(self.title) * TITLE * WIDE)

    def all(self) -> Iterator["Box"]:
        yield self
        for box in self.below:
            yield from box.all()


def chip_width(text: str) -> float:
    return max(CHIP, len(text) * NUMBER * WIDE + 5)


def shape(group: dict[str, Any]) -> tuple:
    """The structure of a group, without the numbers of its ranks."""
    return (
        group["level"],
        len(group["members"]),
        group["members"].index(group["leader"]),
        tuple(shape(g) for g in group["groups"]),
    )


def lowest_groups(group: dict[str, Any]) -> int:
    return sum(lowest_groups(g) for g in group["groups"]) or 1


def chips_of(group: dict[str, Any], root: int) -> list[tuple[str, str]]:
    """The members of a group. Of many, the first three, the leader and the last."""
    members, leader = group["members"], group["leader"]
    shown = {0, 1, 2, members.index(leader), len(members) - 1} if len(members) > CHIPS else set(range(len(members)))
    chips: list[tuple[str, str]] = []
    for i, before in zip(sorted(shown), [-1, *sorted(shown)]):
        if i > before + 1:
            chips.append(("…", "gap"))
        chips.append(
            (str(members[i]), "root" if members[i] == root else "leader" if members[i] == leader else "member")
        )
    return chips


def shorten(text: str, most: int = 30) -> str:
    return text if len(text) <= most else text[:most].rsplit(",", 1)[0] + ", …"


def box_of(group: dict[str, Any], root: int, fold: bool) -> Box:
    box = Box(f"{title(group)}: {shorten(ranges(group['ranks']))}", chips_of(group, root))
    kinds: dict[Any, list[dict[str, Any]]] = {}
    for number, below in enumerate(group["groups"]):
        kinds.setdefault(shape(below) if fold else number, []).append(below)
    for alike in kinds.values():
        first = next((g for g in alike if root in g["ranks"]), alike[0])
        others = [g for g in alike if g is not first]
        box.below.append(box_of(first, root, fold))
        if len(others) == 1 and not others[0]["groups"]:
            box.below.append(box_of(others[0], root, fold))
        elif others:
            box.below.append(folded(others))
    return box


def folded(others: list[dict[str, Any]]) -> Box:
    leaders = [g["leader"] for g in others]
    ends = [*leaders[:3], *(["…"] if len(leaders) > 4 else []), *leaders[3:][-1:]]
    ranks = sorted(rank for g in others for rank in g["ranks"])
    return Box(
        f"{len(others)} more like it: {shorten(ranges(ranks))}",
        [(str(e), "gap" if e == "…" else "leader") for e in ends],
        len(others),
    )


def place(top: Box) -> tuple[list[float], float]:
    """Places every box. Returns where the columns begin, and the height."""
    columns: list[list[Box]] = []
    row = 0.0

    def visit(box: Box, depth: int) -> None:
        nonlocal row
        if depth == len(columns):
            columns.append([])
        columns[depth].append(box)
        for below in box.below:
            visit(below, depth + 1)
        if box.below:
            box.y = (box.below[0].y + box.below[-1].y) / 2
        else:
            box.y = row + BOX / 2
            row += BOX + ROW

    visit(top, 0)
    begins, x = [], 0.0
    for boxes in columns:
        begins.append(x)
        for box in boxes:
            box.x = x
        x += max(box.width for box in boxes) + BETWEEN
    return [*begins, x - BETWEEN], row - ROW


def plot(facts: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tree, root = facts["tree"], facts["root"]
    top = box_of(tree, root, lowest_groups(tree) > IN_FULL)
    begins, height = place(top)
    margin, head, foot = 14, 44, 34
    width = max(begins[-1], 380)
    figure = plt.figure(figsize=((width + 2 * margin) / 72, (height + head + foot) / 72))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set_xlim(-margin, width + margin)
    axis.set_ylim(height + foot, -head)
    axis.axis("off")
    axis.text(
        0,
        -head + 16,
        f"{facts['ranks']} ranks, root {root}: {len(begins) - 1} level{'s' if len(begins) > 2 else ''} of groups",
        fontsize=11,
        weight="bold",
    )
    for begin, level in zip(begins, levels(tree)):
        axis.text(begin, -8, level, fontsize=9, color=DIM)
    for box in top.all():
        draw_edges(axis, box)
    for box in top.all():
        draw_box(axis, box)
    legend(axis, height + foot - 12)
    save(figure, path)


def levels(group: dict[str, Any]) -> list[str]:
    return [group["level"], *(levels(group["groups"][0]) if group["groups"] else [])]


def draw_edges(axis: Any, box: Box) -> None:
    """Draws lines to the groups below, with a thick one to the group of the root."""
    end = box.x + box.width
    for below in box.below:
        to_root = any(kind == "root" for _, kind in below.chips)
        bend = below.x - BETWEEN / 2
        axis.plot(
            [end, bend, bend, below.x],
            [box.y, box.y, below.y, below.y],
            color=ROOT if to_root else EDGE,
            linewidth=1.8 if to_root else 0.8,
            zorder=2 if to_root else 1,
        )


def draw_box(axis: Any, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = {"boxstyle": "round,pad=0,rounding_size=3", "linewidth": 0.8, "edgecolor": EDGE}
    for behind in (5, 2.5) if box.more else ():  # a stack
        axis.add_patch(
            FancyBboxPatch(
                (box.x + behind, box.y - BOX / 2 + behind), box.width, BOX, facecolor="#f3f3f3", zorder=3, **style
            )
        )
    axis.add_patch(
        FancyBboxPatch(
            (box.x, box.y - BOX / 2), box.width, BOX, facecolor="#f3f3f3" if box.more else "white", zorder=4, **style
        )
    )
    axis.text(
        box.x + PAD,
        box.y - BOX / 2 + PAD + 4,
        box.title,
        fontsize=TITLE,
        va="center",
        color=DIM if box.more else "black",
        zorder=5,
    )
    x = box.x + PAD
    for text, kind in box.chips:
        width = chip_width(text)
        draw_chip(axis, x, box.y + BOX / 2 - PAD - CHIP / 2, width, text, kind)
        x += width + GAP


def draw_chip(axis: Any, x: float, y: float, width: float, text: str, kind: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    filled = {"root": ROOT, "leader": LEADER}.get(kind)
    if kind != "gap":
        axis.add_patch(
            FancyBboxPatch(
                (x, y - CHIP / 2),
                width,
                CHIP,
                boxstyle="round,pad=0,rounding_size=4",
                linewidth=0.8,
                facecolor=filled or "white",
                edgecolor=filled or EDGE,
                zorder=5,
            )
        )
    axis.text(
        x + width / 2,
        y,
        text,
        fontsize=NUMBER,
        ha="center",
        va="center_baseline",
        color="white" if filled else "black",
        zorder=6,
    )


def legend(axis: Any, y: float) -> None:
    x = 0.0
    for kind, words in (
        ("root", "root of the call"),
        ("leader", "leads its group, and is a member above"),
        ("member", "member"),
    ):
        draw_chip(axis, x, y, CHIP, "", kind)
        axis.text(x + CHIP + 4, y, words, fontsize=NUMBER, va="center", color=DIM)
        x += CHIP + 4 + len(words) * NUMBER * 0.58 + 14
