# SPDX-License-Identifier: BSD-3-Clause
"""The picture of the demo: a panel for each part, all with titles of one style."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stretto.core.units import format_time

Panel = Callable[[Any], None]  # draws on the axes of matplotlib that it gets
GREY, GREEN, PALE = "#9aa5b1", "#2f7d4f", "#f3f5f7"
COLUMNS = ("without", "with Stretto")
TEXT_COLUMNS = 60  # of a text in a panel


def entitle(axis: Any, title: str) -> None:
    axis.set_title(title, fontsize=11, fontweight="bold", loc="left")


def bars(axis: Any, title: str, columns: dict[str, list[float]], endless: tuple[str, ...] = ()) -> None:
    """A bar for the median of each list of seconds, and a dot for each run. Runs of `endless` were ended."""
    for i, (name, values) in enumerate(columns.items()):
        middle = statistics.median(values)
        hatch = "//" if name in endless else None
        axis.bar(i, middle, 0.6, color=(GREY, GREEN)[i], hatch=hatch, edgecolor="white")
        axis.scatter([i] * len(values), values, s=8, color="#333333", zorder=3)
        time = format_time(1e9 * middle)
        label = f"more than {time}" if name in endless else time
        axis.annotate(label, (i, max(values)), (0, 3), textcoords="offset points", ha="center", fontsize=10)
    axis.set_xticks(range(len(columns)), list(columns), fontsize=10)
    axis.set_ylabel("seconds")
    axis.margins(y=0.15)
    axis.spines[["top", "right"]].set_visible(False)
    entitle(axis, title)


def words(axis: Any, title: str, text: str) -> None:
    """A panel that is a text."""
    axis.set_xticks([]), axis.set_yticks([])
    axis.set_facecolor(PALE)
    axis.spines[:].set_visible(False)
    entitle(axis, title)
    wrapped = "\n".join(textwrap.fill(line, TEXT_COLUMNS, subsequent_indent="  ") for line in text.splitlines())
    axis.text(0.03, 0.5, wrapped, va="center", ha="left", fontsize=10, linespacing=1.4, transform=axis.transAxes)


def draw(path: Path, title: str, panels: list[Panel]) -> None:
    """One picture of all parts."""
    import matplotlib

    from stretto.core.plots import save

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(6 * min(len(panels), 2), 4 * -(-len(panels) // 2) + 0.5))
    for panel, place in zip(panels, _places(figure, len(panels))):
        panel(figure.add_subplot(place))
    figure.text(0.5, 0.01, title, ha="center", fontsize=8, color="#555555")
    figure.tight_layout(rect=(0, 0.06, 1, 1), h_pad=2)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)


def _places(figure: Any, count: int) -> Iterator[Any]:
    """Two panels in a row. The last one of an odd number has a row of its own."""
    grid = figure.add_gridspec(-(-count // 2), min(count, 2))
    for i in range(count):
        row, column = divmod(i, 2)
        yield grid[row, :] if i == count - 1 and column == 0 else grid[row, column]
