# SPDX-License-Identifier: BSD-3-Clause
"""The plots that pages show of the JSON of each command, for figures.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from figure_texts import Doc, mean, overlapped, size, title, unique

PLOTS: dict[str, Callable[[list[Doc], Any], None]] = {}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D1F")


def plot(schema: str) -> Callable[[Callable[[list[Doc], Any], None]], Callable[[list[Doc], Any], None]]:
    def add(function: Callable[[list[Doc], Any], None]) -> Callable[[list[Doc], Any], None]:
        PLOTS[schema] = function
        return function

    return add


def ranges(axis: Any, series: dict[str, dict[str, list[float]]]) -> None:
    """A row for each name: of each series a dot at the geometric mean and a line over all values."""
    names = unique(name for values in series.values() for name in values)
    for i, (label, values) in enumerate(series.items()):
        for name, ratios in values.items():
            row = names.index(name) + 0.7 * (i + 0.5) / len(series) - 0.35
            axis.plot([min(ratios), max(ratios)], [row, row], color=COLOURS[i], linewidth=2, alpha=0.35)
            axis.plot([mean(ratios)], [row], "o", markersize=4, linestyle="none", color=COLOURS[i])
        axis.plot([], [], "o", color=COLOURS[i], label=label)
    axis.grid(True, axis="x", color="#e4e4e4", linewidth=0.6)
    axis.axvline(1, color="#444444", linewidth=1)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)


BELOW_1 = "Stretto's time / the MPI's own, below 1: faster (dot: geometric mean, line: all sizes)"


@plot("stretto.bench")
def bench_plot(docs: list[Doc], axis: Any) -> None:
    """A row for each operation."""
    series: dict[str, dict[str, list[float]]] = {}
    for doc in docs:
        for r in doc["results"]:
            series.setdefault(f"beside {doc['mpi_title']}", {}).setdefault(r["op"], []).append(r["ratio"])
    ranges(axis, series)
    axis.set_xlim(left=0)
    sizes = [r["bytes"] for doc in docs for r in doc["results"] if r["bytes"]]
    axis.set_title(f"{docs[0]['np']} ranks, {size(min(sizes))} to {size(max(sizes))}", fontsize=10)
    axis.set_xlabel(BELOW_1)


@plot("stretto.nonblocking")
def nonblocking_plot(docs: list[Doc], axis: Any) -> None:
    """A row for each operation."""
    series: dict[str, dict[str, list[float]]] = {}
    for doc in docs:
        for r in doc["results"]:
            if "under_way" not in r:
                series.setdefault(title(doc), {}).setdefault(r["op"].capitalize(), []).append(r["ratio"])
    ranges(axis, series)
    axis.set_xscale("log")
    axis.set_xlabel(BELOW_1)


@plot("stretto.kind")
def kind_plot(docs: list[Doc], axis: Any) -> None:
    """A row for each pattern and number of ranks."""
    series: dict[str, dict[str, list[float]]] = {}
    for doc in docs:
        for r in doc["results"]:
            name = f"{r['pattern']}, {r['ranks']} ranks"
            series.setdefault(title(doc), {}).setdefault(name, []).append(r["auto_ratio"])
    ranges(axis, series)
    axis.set_xscale("log")
    axis.set_xlabel(BELOW_1)


@plot("stretto.overlap.bench")
def overlap_plot(docs: list[Doc], axis: Any) -> None:
    """A row for each set-up, a colour for each regime."""
    series: dict[str, dict[str, list[float]]] = {}
    for doc in docs:
        for r in doc["results"]:
            share = r["overlap_ms"] / r["bound_ms"]
            series.setdefault(f"regime {r['regime']}", {}).setdefault(overlapped(doc, r), []).append(share)
    ranges(axis, series)
    axis.set_xlim(left=0)
    axis.tick_params(axis="y", labelsize=7)
    axis.set_xlabel("what is hidden / the most that this order of blocks allows")


def curves(axis: Any, series: dict[str, list[tuple[int, float]]]) -> None:
    """A line over the length for each series. The second of a colour is dashed, the third dotted."""
    for i, (label, points) in enumerate(series.items()):
        style = ("-", "--", ":")[i // len(COLOURS) % 3]
        axis.plot(*zip(*points), style, marker=".", color=COLOURS[i % len(COLOURS)], linewidth=1.2, label=label)
    axis.set_xscale("log", base=2)
    axis.set_xlabel("bytes")


@plot("stretto.neighbors")
def neighbors_plot(docs: list[Doc], axis: Any) -> None:
    series: dict[str, list[tuple[int, float]]] = {}
    for doc in docs:
        for r in doc["results"]:
            series.setdefault(f"{title(doc)}, {r['np']} ranks", []).append((r["bytes"], r["ratio"]))
    curves(axis, series)
    axis.axhline(1, color="#444444", linewidth=1)
    axis.set_ylim(0, 2.2)  # the legend stands above
    axis.set_ylabel("Stretto's time / the MPI's own")


@plot("stretto.model.predict")
def predict_plot(docs: list[Doc], axis: Any) -> None:
    """The times of each algorithm among the most ranks."""
    (doc,) = docs
    ranks = max(p["ranks"] for p in doc["predictions"])
    series: dict[str, list[tuple[int, float]]] = {}
    for p in doc["predictions"]:
        if p["ranks"] == ranks:
            series.setdefault(p["algorithm"], []).append((p["bytes"], p["time"] / 1e3))
    curves(axis, series)
    axis.set_yscale("log")
    axis.set_title(f"{ranks} ranks", fontsize=10)
    axis.set_ylabel("predicted time, us")


@plot("stretto.cluster.simulate")
def simulate_plot(docs: list[Doc], axis: Any) -> None:
    """What was chosen, divided by what the other MPIs would choose."""
    (doc,) = docs
    series: dict[str, list[tuple[int, float]]] = {}
    for r in doc["results"]:
        for selector, mpi in (("ompi", "Open MPI"), ("mpich", "MPICH")):
            if r[f"{selector}_us"]:
                point = (r["bytes"], r["ours_us"] / r[f"{selector}_us"])
                series.setdefault(f"{r['op']}, beside {mpi}'s choice", []).append(point)
    curves(axis, series)
    axis.axhline(1, color="#444444", linewidth=1)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("simulated time / the other's")


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
