# SPDX-License-Identifier: BSD-3-Clause
"""When calls that may return early took their time: what statistics say of it, a line of text and a
strip of a picture.

Each rank cuts its run into bins of one length, which is a power of two of some milliseconds. Here a
bin has the part of the ranks' time that was spent in the call, hidden behind computation, or waited
for data.
"""

from __future__ import annotations

from typing import Any

from rich.text import Text

from stretto.bench.program import Row
from stretto.core.plots import COLOURS

TIMES = ("in_call_ns", "late_ns", "waited_ns")
SHOWN = {"in_call": "in the call", "hidden": "hidden", "waited": "waited for data"}
SIGNS = {"in_call": ("▓", "blue"), "hidden": ("═", "green"), "waited": ("w", "red")}
NONE, LEAST = "·", 0.1  # less of a column's time shows as nothing


def folded(bins: list[int], factor: int) -> list[int]:
    """Sums of so many bins each."""
    return [sum(bins[i : i + factor]) for i in range(0, len(bins), factor)]


def merged(timelines: list[Row]) -> Row | None:
    """The sum of timelines, in bins of the longest ones. None: there are none."""
    timelines = [each for each in timelines if each]
    if not timelines:
        return None
    bin_ns = max(each["bin_ns"] for each in timelines)
    coarse = [{name: folded(each[name], bin_ns // each["bin_ns"]) for name in TIMES} for each in timelines]
    length = max(len(bins) for each in coarse for bins in each.values())
    sums: Row = {"bin_ns": bin_ns}
    for name in TIMES:
        sums[name] = [sum(each[name][i] for each in coarse if i < len(each[name])) for i in range(length)]
    return sums


def shares(timeline: Row | None, ranks: int) -> Row | None:
    """Parts of the time of one rank, an average. Calls may overlap, so that parts exceed 1."""
    if timeline is None:
        return None
    whole = timeline["bin_ns"] * ranks
    late, waited = timeline["late_ns"], timeline["waited_ns"]
    return {
        "bin_ms": timeline["bin_ns"] / 1e6,
        "in_call": [ns / whole for ns in timeline["in_call_ns"]],
        "hidden": [max(a - b, 0) / whole for a, b in zip(late, waited)],
        "waited": [ns / whole for ns in waited],
    }


def columns(row: Row, bins: int, most: int) -> list[str]:
    """What there was most of in each column, as a name of SIGNS; '': nothing. Of `bins` bins in all."""
    each = -(-bins // most)
    names = []
    for at in range(0, bins, each):
        parts = {name: sum(row[name][at : at + each]) / each for name in SIGNS}
        first = max(parts, key=lambda name: parts[name])
        names.append(first if parts[first] >= LEAST else "")
    return names


def lines(rows: list[Row], titles: list[str], width: int) -> list[Text]:
    """A line for each site, all over the same time."""
    drawn = [(row["timeline"], title) for row, title in zip(rows, titles) if row["timeline"]]
    if not drawn:
        return []
    drawn = rebinned(drawn)
    label = max(len(title) for _, title in drawn) + 2
    bins = max(len(row[name]) for row, _ in drawn for name in SIGNS)
    made = []
    for row, title in drawn:
        line = Text(title.ljust(label))
        for name in columns(row, bins, max(width - label, 10)):
            sign, colour = SIGNS.get(name, (NONE, "bright_black"))
            line.append(sign, style=colour)
        made.append(line)
    seconds = bins * drawn[0][0]["bin_ms"] / 1e3
    legend = "   ".join(f"{SIGNS[name][0]} {said}" for name, said in SHOWN.items())
    return [Text(f"{seconds:.3g} s from left to right, all ranks together: {legend}   {NONE} else"), *made]


def rebinned(drawn: list[tuple[Row, Any]]) -> list[tuple[Row, Any]]:
    """All in bins of the longest ones."""
    bin_ms = max(row["bin_ms"] for row, _ in drawn)
    made = []
    for row, title in drawn:
        factor = round(bin_ms / row["bin_ms"])
        parts = {
            name: [sum(row[name][i : i + factor]) / factor for i in range(0, len(row[name]), factor)] for name in SIGNS
        }
        made.append(({"bin_ms": bin_ms, **parts}, title))
    return made


def draw(axis: Any, rows: list[Row], titles: list[str]) -> None:
    """A strip for each site: in each bin the parts stand on one another."""
    for at, row in enumerate(rows):
        timeline = row["timeline"]
        if not timeline:
            continue
        begins = [i * timeline["bin_ms"] / 1e3 for i in range(len(timeline["in_call"]))]
        widths = timeline["bin_ms"] / 1e3
        below = [float(at) + 0.4] * len(begins)
        for name, colour in zip(SIGNS, (COLOURS[0], COLOURS[2], COLOURS[4])):
            heights = [-0.8 * min(part, 1.0) for part in timeline[name]]
            heights = [max(height, at - 0.4 - bottom) for height, bottom in zip(heights, below)]
            axis.bar(begins, heights, widths, below, align="edge", color=colour, linewidth=0)
            below = [bottom + height for bottom, height in zip(below, heights)]
    axis.set_yticks(range(len(rows)), titles)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xlabel("s since calls might return early, parts of all ranks' time")
