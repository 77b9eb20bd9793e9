# SPDX-License-Identifier: BSD-3-Clause
"""Pictures as in paper S1: the time relative to the MPI's own, against the size of one rank's
block."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from stretto.core.console import fail
from stretto.core.plots import IN_AXES, label_sizes, save, style


def plot_ratios(doc: dict[str, Any], path: Path) -> None:
    """Draws a panel for each number of ranks, with a line for each operation and a dotted one for
    its bound."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ranks = doc["np"] if isinstance(doc["np"], list) else [doc["np"]]
    rows = [r for r in doc["results"] if r["bytes"] > 0]
    if not rows:
        fail("nothing to draw: no operation with data was measured")
    beside = 2.5 if len({r["op"] for r in rows}) > IN_AXES else 0  # inches for the legend
    figure, axes = plt.subplots(
        1, len(ranks), figsize=(max(7.5, 5.5 * len(ranks)) + beside, 5.2), sharey=True, squeeze=False
    )
    for axis, np in zip(axes[0], ranks):
        draw_panel(axis, [r for r in rows if r.get("np", np) == np], f"{np} ranks")
    axes[0][0].set_ylabel(f"time / {doc['mpi_title']}'s own\n(below 1: faster)")
    legend(axes[0][-1])
    caption(figure, doc)
    save(figure, path)


def draw_panel(axis: Any, rows: list[dict[str, Any]], title: str) -> None:
    ops = list(dict.fromkeys(r["op"] for r in rows))
    for i, op in enumerate(ops):
        points = sorted((r["bytes"], r["ratio"], r["bound_us"] / max(r["mpi_us"], 1e-3)) for r in rows if r["op"] == op)
        sizes = [p[0] for p in points]
        (drawn,) = axis.plot(sizes, [p[1] for p in points], **style(i), linewidth=1.6, label=op)
        axis.plot(sizes, [p[2] for p in points], color=drawn.get_color(), linestyle=":", linewidth=0.9)
    axis.axhline(1, color="#777777", linewidth=0.8)
    axis.set_xscale("log", base=2)
    label_sizes(axis, sorted({r["bytes"] for r in rows}))
    axis.set_ylim(bottom=0)
    axis.grid(True, axis="y", color="#e4e4e4", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.set_xlabel("bytes of one rank's block")
    axis.set_title(title, fontsize=11)


def legend(axis: Any) -> None:
    from matplotlib.lines import Line2D

    handles, labels = axis.get_legend_handles_labels()
    handles.append(Line2D([], [], color="#444444", linestyle=":", linewidth=0.9))
    place = (
        {"ncols": 2}
        if len(labels) <= IN_AXES
        else {"loc": "center left", "bbox_to_anchor": (1, 0.5), "handlelength": 4}
    )
    axis.legend(handles, [*labels, "bound of two copies"], frameon=False, fontsize=9, **place)


def caption(figure: Any, doc: dict[str, Any]) -> None:
    root = "rotating root" if doc["root_shift"] else "root 0"
    spread = f", blocks of v-operations ±{doc['spread']:.0%}" if doc["spread"] else ""
    command = "\n".join(textwrap.wrap(doc["command"], 110))
    text = (
        f"{doc['mpi_title']}, method {doc['method']}, {root}{spread}, {doc['runs']} run(s)\n{doc['machine']}\n{command}"
    )
    figure.tight_layout(rect=(0, 0.045 * (text.count("\n") + 1), 1, 1))
    figure.text(0.5, 0.015, text, ha="center", va="bottom", fontsize=8, color="#555555")
