# SPDX-License-Identifier: BSD-3-Clause
"""Draws the panels of an entry, for an HTML page."""

from __future__ import annotations

from typing import Any

from stretto.core.plots import COLOURS, GRID, TEXT, inline_svg, label_sizes, style
from stretto.papers.entry import PAPER, Row

SIZE = (5.2, 3.6)  # inches; a page of 400 pixels shows an inch as about 72 of them
FONT = 11
FEW_DECADES = 1000
TICKS = [part * 10**power for power in range(-3, 9) for part in (1, 2, 5)]


def draw(panel: Row, name: str) -> str:
    """The panel as SVG."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    lines = 0.24 * -(-len(panel["series"]) // columns(panel))
    colours = {f"{part}.{of}": TEXT for part in ("xtick", "ytick") for of in ("color", "labelcolor")}
    colours |= {"text.color": TEXT, "axes.labelcolor": TEXT, "axes.edgecolor": TEXT, "font.size": FONT}
    with plt.rc_context(colours):
        figure, axis = plt.subplots(figsize=(SIZE[0], SIZE[1] + lines), layout="constrained")
        draw_series(axis, panel)
        draw_levels(axis, panel)
        set_axes(axis, panel)
        figure.legend(loc="outside lower center", ncols=columns(panel), frameon=False, fontsize=FONT - 1.5)
        return inline_svg(figure, name)


def columns(panel: Row) -> int:
    """Of the legend: long names have one."""
    return 1 if any(len(series["name"]) > 26 for series in panel["series"]) else 2


def draw_series(axis: Any, panel: Row) -> None:
    """Published curves are dashed. Where there is one for each of ours, both have one colour."""
    of_paper = [series for series in panel["series"] if series["of"] == PAPER]
    ours = [series for series in panel["series"] if series["of"] != PAPER]
    paired = len(of_paper) == len(ours)
    for number, series in enumerate([*ours, *of_paper]):
        published = number >= len(ours)
        look = style(number - len(ours) * (published and paired))
        if published:
            look |= {"linestyle": "--", "fillstyle": "none", "marker": "" if paired else look["marker"]}
            look["color"] = look["color"] if paired else (TEXT, *COLOURS)[number - len(ours)]
        if panel["x"]["names"]:
            look |= {"linestyle": "none", "markersize": 7}
        axis.plot(*zip(*series["points"]), **look, linewidth=1.4, label=series["name"])


def draw_levels(axis: Any, panel: Row) -> None:
    if panel["baseline"] is not None:
        axis.axhline(panel["baseline"], color=TEXT, linewidth=0.8)
    for name, value, (first, last) in panel["levels"]:
        if first == last:
            axis.axvline(first, color=TEXT, linestyle=":", linewidth=1.4)
        else:
            axis.plot([first, last], [value, value], color=TEXT, linestyle=":", linewidth=2)
        axis.annotate(name, (first, value), xytext=(2, 4), textcoords="offset points", fontsize=FONT - 1)


def set_axes(axis: Any, panel: Row) -> None:
    x, y = panel["x"], panel["y"]
    values = sorted({point[0] for series in panel["series"] for point in series["points"]})
    axis.set_xlabel(x["label"])
    axis.set_ylabel(y["label"])
    if x["scale"] == "log2":
        axis.set_xscale("log", base=2)
    if y["scale"] == "log10":
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        if high < FEW_DECADES * low:
            axis.set_yticks([tick for tick in TICKS if low <= tick <= high])
            axis.yaxis.set_major_formatter("{x:g}")
            axis.minorticks_off()
    else:
        axis.set_ylim(bottom=0)
    if x["names"]:
        axis.set_xticks(range(len(x["names"])), x["names"])
        axis.set_xlim(-0.5, len(x["names"]) - 0.5)
    elif x["unit"] == "bytes":
        label_sizes(axis, values[:: max(1, len(values) // 6)])
    elif x["scale"] == "log2":
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.minorticks_off()
    axis.grid(True, axis="y", color=GRID, linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
