# SPDX-License-Identifier: BSD-3-Clause
"""The plots that pages show of the JSON of each command, for figures.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from figure_texts import Doc, mean, size, unique

PLOTS: dict[str, Callable[[list[Doc], Any], None]] = {}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")


def plot(schema: str) -> Callable[[Callable[[list[Doc], Any], None]], Callable[[list[Doc], Any], None]]:
    def add(function: Callable[[list[Doc], Any], None]) -> Callable[[list[Doc], Any], None]:
        PLOTS[schema] = function
        return function

    return add


@plot("stretto.bench")
def bench_plot(docs: list[Doc], axis: Any) -> None:
    """A row for each operation: the mean of the ratios to each MPI, and the range over the sizes."""
    ops = unique(r["op"] for doc in docs for r in doc["results"])
    for i, doc in enumerate(docs):
        for at, op in enumerate(ops):
            ratios = [r["ratio"] for r in doc["results"] if r["op"] == op]
            row = at + 0.36 * (i - (len(docs) - 1) / 2)
            axis.plot([min(ratios), max(ratios)], [row, row], color=COLOURS[i], linewidth=2, alpha=0.35)
            label = f"beside {doc['mpi_title']}" if at == 0 else None
            axis.plot([mean(ratios)], [row], "o", markersize=5, linestyle="none", color=COLOURS[i], label=label)
    axis.grid(True, axis="x", color="#e4e4e4", linewidth=0.6)
    axis.axvline(1, color="#444444", linewidth=1)
    axis.set_yticks(range(len(ops)), ops)
    axis.set_ylim(len(ops) - 0.4, -0.6)
    axis.set_xlim(left=0)
    sizes = [r["bytes"] for doc in docs for r in doc["results"] if r["bytes"]]
    axis.set_title(f"{docs[0]['np']} ranks, {size(min(sizes))} to {size(max(sizes))}", fontsize=10)
    axis.set_xlabel("Stretto's time / the MPI's own, below 1: faster (dot: geometric mean, line: all sizes)")


@plot("stretto.model.chains")
def chains_plot(docs: list[Doc], axis: Any) -> None:
    """One length: times, beside the estimate. Several: times of the least."""
    (doc,) = docs
    one = len({curve["bytes"] for curve in doc["curves"]}) == 1
    for i, curve in enumerate(doc["curves"]):
        points = [p for p in curve["points"] if 2 <= p["k"] <= curve["ranks"] // 2 - 1]
        least = 1 if one else min(p["time"] for p in points)
        ks, colour = [p["k"] for p in points], COLOURS[i]
        name = f"P = {curve['ranks']}" if one else f"{curve['bytes']:,} bytes"
        axis.plot(
            ks,
            [p["time"] / least for p in points],
            ".",
            markersize=4,
            linestyle="none" if one else "-",
            color=colour,
            label=name,
        )
        if one:
            axis.plot(ks, [p["estimate"] for p in points], linewidth=1.2, color=colour)
    axis.set_xlabel("chains k")
    axis.set_ylabel("time (dots: timer, lines: estimate)" if one else "time, of the least")
    axis.set_ylim(0, 2.2 * max(c["estimate_least"] for c in doc["curves"]) if one else 3.2)
    axis.set_xlim(0, 3 * max(c["practical_k"] for c in doc["curves"]) + 1)
