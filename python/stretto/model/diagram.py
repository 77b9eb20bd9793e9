# SPDX-License-Identifier: BSD-3-Clause
"""Space-time diagrams.

Each rank has a line, and time goes to the right. A diagram shows what processors do, the messages
between them, and the critical path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stretto.core.plots import save
from stretto.model import plots
from stretto.model.profile import Profile

# Colour-blind safe, and of different lightness for prints in grey.
COLOURS = {"send": "#0072B2", "receive": "#E69F00", "reduce": "#009E73", "copy": "#CC79A7"}
WIRE, CRITICAL, DONE = "#9a9a9a", "#C8102E", "#dddddd"
HEIGHT = 0.62  # of a bar, ranks being 1 apart
LEAST_WIDTH = 0.003  # least width of a bar, as a part of the whole time
MOST_RANKS = 256  # more lines could not be told apart


def bars_of(step: dict[str, Any]) -> list[tuple[str, float, float]]:
    """The bars of a step: name, begin, end. A recv_reduce receives, then reduces."""
    kind, begin, end = step["kind"], step["begin"], step["end"]
    received = begin + step["overhead"]
    bars = {
        "send": [("send", begin, end)],
        "recv": [("receive", begin, end)],
        "copy": [("copy", begin, end)],
        "reduce": [("reduce", begin, end)],
        "recv_reduce": [("receive", begin, received), ("reduce", received, end)],
    }[kind]
    return [bar for bar in bars if bar[2] > bar[1]]


def draw(job: dict[str, Any], profile: Profile, path: Path, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ranks = job["ranks"]
    factor, unit = plots.axis_unit(job["time"], profile.unit)
    steps = [{**s, **{key: s[key] * factor for key in ("begin", "end", "overhead", "wire")}} for s in job["steps"]]
    figure, axis = plt.subplots(figsize=(11, max(2.6, min(24, 1.6 + 0.32 * ranks))))
    drawn = draw_ranks(axis, steps, ranks, job["time"] * factor)
    draw_messages(axis, steps)
    draw_critical(axis, steps)
    axis.set_ylim(ranks - 0.4, -0.6)
    axis.set_xlim(0, job["time"] * factor * 1.01 or 1)
    axis.set_yticks(range(ranks), [str(r) for r in range(ranks)], fontsize=min(10, max(5, 320 / ranks)))
    axis.set_ylabel("rank")
    axis.set_xlabel("time" + (f" / {unit}" if unit else ""))
    axis.set_title(title, fontsize=11, loc="left")
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.tick_params(axis="y", length=0)
    legend(axis, drawn, any(s["kind"].startswith("recv") for s in steps))
    figure.tight_layout()
    save(figure, path)


def draw_ranks(axis: Any, steps: list[dict[str, Any]], ranks: int, end: float) -> list[str]:
    """Draws the ranks' lines and bars. Returns the names of the bars."""
    from matplotlib.collections import PolyCollection

    of_rank: list[list[dict[str, Any]]] = [[] for _ in range(ranks)]
    for step in steps:
        of_rank[step["rank"]].append(step)
    for rank, own in enumerate(of_rank):
        last = max((s["end"] for s in own), default=0)
        axis.plot([0, last], [rank, rank], color="#555555", linewidth=0.7, zorder=1)
        axis.plot([last, end], [rank, rank], color=DONE, linewidth=0.7, zorder=1)
    bars = [
        bar
        for rank, own in enumerate(of_rank)
        for bar in placed(rank, [bar for s in own for bar in bars_of(s)], LEAST_WIDTH * end)
    ]
    for name, colour in COLOURS.items():
        for edged in (True, False):  # each kind at once, because thousands of single patches take minutes
            corners = [corners_of(b) for b in bars if b[1] == name and b[4] == edged]
            axis.add_collection(
                PolyCollection(
                    corners,
                    facecolors=colour,
                    edgecolors="white" if edged else "none",
                    linewidths=0.4 if edged else 0,
                    zorder=3,
                )
            )
    return [name for name in COLOURS if any(b[1] == name for b in bars)]


def corners_of(bar: tuple[int, str, float, float, bool]) -> list[tuple[float, float]]:
    rank, _, left, width, _ = bar
    low, high = rank - HEIGHT / 2, rank + HEIGHT / 2
    return [(left, low), (left + width, low), (left + width, high), (left, high)]


def placed(rank: int, bars: list[tuple[str, float, float]], least: float) -> list[tuple[int, str, float, float, bool]]:
    """The bars of a rank: rank, name, left, width, and whether there is room for an edge. A bar
    that follows a widened one is moved to its right, by at most three least widths."""
    result, free = [], 0.0
    for name, begin, end in sorted(bars, key=lambda bar: bar[1:]):
        left = free if begin < free <= begin + 3 * least else begin
        result.append((rank, name, left, max(end - left, least), end - begin > 2 * least))
        free = left + max(end - left, least)
    return result


def message_line(steps: list[dict[str, Any]], receive: dict[str, Any]) -> tuple[list[float], list[float]]:
    """The line of a message: from the sender's end to the arrival, then along the receiver's line
    to where it is taken."""
    sent = steps[receive["partner"]]
    down = 1 if receive["rank"] > sent["rank"] else -1
    edge = HEIGHT / 2 * down
    arrival = min(sent["end"] + sent["wire"], receive["begin"])
    return [sent["end"], arrival], [sent["rank"] + edge, receive["rank"] - edge]


def draw_messages(axis: Any, steps: list[dict[str, Any]]) -> None:
    from matplotlib.collections import LineCollection

    receives = [s for s in steps if s["kind"].startswith("recv")]
    lines = [list(zip(*message_line(steps, s))) for s in receives]
    axis.add_collection(LineCollection(lines, colors=WIRE, linewidths=0.8 if len(lines) < 200 else 0.4, zorder=2))
    ends = [line[1] for line in lines]
    if len(lines) < 200:
        axis.plot(
            [e[0] for e in ends], [e[1] for e in ends], color=WIRE, marker=".", markersize=3, linestyle="none", zorder=2
        )


def draw_critical(axis: Any, steps: list[dict[str, Any]]) -> None:
    """Draws the critical path above and below the bars, so that narrow bars keep their colour, and
    along the messages."""
    from matplotlib.collections import LineCollection

    critical = [s for s in steps if s["critical"]]
    edges = [
        [(s["begin"], s["rank"] + side * HEIGHT / 2), (s["end"], s["rank"] + side * HEIGHT / 2)]
        for s in critical
        for side in (-1, 1)
    ]
    ways = [list(zip(*message_line(steps, s))) for s in critical if s["waited"]]
    axis.add_collection(LineCollection(edges + ways, colors=CRITICAL, linewidths=1.8, zorder=5))


def legend(axis: Any, drawn: list[str], messages: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Patch(facecolor=COLOURS[name], label=name) for name in drawn]
    handles += [Line2D([], [], color=WIRE, linewidth=1, label="on the wire")] if messages else []
    handles += [Line2D([], [], color=CRITICAL, linewidth=1.8, label="critical path")]
    below = 0.55 / max(axis.figure.get_figheight() - 1.2, 0.5)  # inches under the axis, for its numbers and its label
    axis.legend(
        handles=handles,
        frameon=False,
        fontsize=9,
        ncols=len(handles),
        loc="upper left",
        bbox_to_anchor=(0, -below),
        borderaxespad=0,
    )
