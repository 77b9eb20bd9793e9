# SPDX-License-Identifier: BSD-3-Clause
"""Curves of the model: time against ranks with fitted growth, time against the number of chains."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stretto.plot import COLOURS, save, style
from stretto.bench import print_size
from stretto.profile import Profile

LEAST_POINTS = 3
LEAST_CHAINED = 6  # ranks, for more than one number of chains to be drawn
GROWTHS: dict[str, Callable[[float], float]] = {"log P": math.log2, "sqrt P": math.sqrt, "P": float}


def curves_of(predictions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One curve for each algorithm, in the order of ranks, with its fit."""
    curves = []
    for name in dict.fromkeys(p["algorithm"] for p in predictions):
        points = sorted((p for p in predictions if p["algorithm"] == name), key=lambda p: p["ranks"])
        curve = {"algorithm": name, "ranks": [p["ranks"] for p in points], "times": [p["time"] for p in points]}
        curves.append({**curve, "fit": fit(curve["ranks"], curve["times"])})
    return curves


def fit(ranks: Sequence[int], times: Sequence[float]) -> dict[str, Any] | None:
    """The growth c0 + c1 f(P) that is off least, in the mean of squares of what each point is off by relatively. None: of too few points everything
    can be said."""
    if len(set(ranks)) < LEAST_POINTS or not all(times):
        return None
    fits = [_fit_one(name, growth, ranks, times) for name, growth in GROWTHS.items()]
    return min(fits, key=lambda each: each["error"])


def _fit_one(
    name: str, growth: Callable[[float], float], ranks: Sequence[int], times: Sequence[float]
) -> dict[str, Any]:
    import numpy as np

    target = np.array(times, float)
    columns = np.array([[1.0, growth(p)] for p in ranks]) / target[:, None]
    (constant, factor), *_ = np.linalg.lstsq(columns, np.ones(len(target)), rcond=None)
    off = columns @ [constant, factor] - 1
    return {
        "growth": name,
        "constant": float(constant),
        "factor": float(factor),
        "error": float(np.sqrt(np.mean(off**2))),
        "worst": float(np.max(np.abs(off))),
    }


def formula(fit_: dict[str, Any], unit: str) -> str:
    from stretto.model import print_time

    grows = f"{print_time(fit_['factor'], unit)} {fit_['growth']}"
    if abs(fit_["constant"]) < 1e-6 * abs(fit_["factor"]):
        return grows
    return f"{grows} {'-' if fit_['constant'] < 0 else '+'} {print_time(abs(fit_['constant']), unit)}"


def plot_scale(curves: list[dict[str, Any]], title: str, profile: Profile, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.5, 5))
    factor, unit = axis_unit(max(max(c["times"]) for c in curves), profile.unit)
    for i, curve in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        fit_ = curve["fit"]
        label = f"{curve['algorithm']}: {formula(fit_, profile.unit)}" if fit_ else curve["algorithm"]
        axis.plot(
            curve["ranks"], [t * factor for t in curve["times"]], **{**style(i), "linestyle": "none"}, label=label
        )
        if fit_:
            axis.plot(
                curve["ranks"],
                [factor * (fit_["constant"] + fit_["factor"] * GROWTHS[fit_["growth"]](p)) for p in curve["ranks"]],
                color=colour,
                linewidth=1.2,
            )
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xlabel("ranks P")
    axis.set_ylabel("time" + (f" / {unit}" if unit else ""))
    axis.set_title(title, fontsize=11)
    finish(figure, axis, profile, path)


def plot_chains(curves: list[dict[str, Any]], profile: Profile, path: Path) -> None:
    """As figure 7 of S4: the estimate as lines, the timer as points; the least and the practical rule's k marked."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 5.2))
    shown = 3 * max(c["practical_k"] for c in curves)
    factor, unit = axis_unit(max(c["estimate_least"] for c in curves), profile.unit)
    for i, curve in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        points = [p for p in curve["points"] if 2 <= p["k"] <= shown]
        estimate = {p["k"]: p["estimate"] * factor for p in points}
        axis.plot(list(estimate), list(estimate.values()), color=colour, linewidth=1.4)
        axis.plot(
            [p["k"] for p in points],
            [p["time"] * factor for p in points],
            color=colour,
            linestyle="none",
            marker=".",
            markersize=3,
        )
        best, practical = curve["estimate_best_k"], curve["practical_k"]
        axis.plot(
            [best],
            [estimate[best]],
            color=colour,
            marker="o",
            markersize=8,
            linestyle="none",
            label=f"P = {curve['ranks']}: least at k = {best}, practical rule k = {practical}",
        )
        axis.plot(
            [practical],
            [estimate[practical]],
            color=colour,
            marker="s",
            markersize=7,
            fillstyle="none",
            linestyle="none",
        )
    axis.set_ylim(0, 2.2 * factor * max(c["estimate_least"] for c in curves))
    axis.set_xlim(0, shown + 1)
    axis.set_xlabel("chains k")
    axis.set_ylabel("time" + (f" / {unit}" if unit else ""))
    axis.set_title(
        "Reduce by k chains: estimate (lines; discs: least, squares: practical rule) and timer (dots)", fontsize=10
    )
    finish(figure, axis, profile, path)


def plot_chains_of_lengths(curves: list[dict[str, Any]], profile: Profile, path: Path) -> None:
    """As figure 8 of S4, but each length against its own best: beside a long vector a short one's curve would lie on the axis."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(8, 5.2))
    for i, curve in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        times = {p["k"]: p["time"] for p in curve["points"] if 2 <= p["k"] <= curve["ranks"] // 2 - 1}
        best = min(times, key=lambda k: times[k])
        axis.plot(
            list(times),
            [t / times[best] for t in times.values()],
            color=colour,
            marker=".",
            markersize=5,
            linewidth=1.2,
            label=f"P = {curve['ranks']}, {print_size(curve['bytes'])} bytes: {model_time(times[best], profile)} at k = {best}",
        )
        axis.plot(
            [curve["practical_k"]],
            [times[curve["practical_k"]] / times[best]],
            color=colour,
            marker="s",
            markersize=8,
            fillstyle="none",
        )
    axis.set_ylim(0.9, 3.2)
    axis.set_xlabel("chains k")
    axis.set_ylabel("time, of the least")
    axis.set_title("Reduce by k chains (squares: practical rule)", fontsize=10)
    finish(figure, axis, profile, path)


def model_time(time: float, profile: Profile) -> str:
    from stretto.model import print_time

    return print_time(time, profile.unit)


def axis_unit(longest: float, unit: str) -> tuple[float, str]:
    if unit != "ns":
        return 1, unit
    for limit, factor, name in ((1e4, 1, "ns"), (1e7, 1e-3, "us"), (1e10, 1e-6, "ms")):
        if longest < limit:
            return factor, name
    return 1e-9, "s"


def finish(figure: Any, axis: Any, profile: Profile, path: Path) -> None:
    axis.grid(True, axis="y", color="#e4e4e4", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.legend(frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.text(
        0.5,
        0.015,
        f"profile: {profile.about.get('name', 'without a name')}",
        ha="center",
        va="bottom",
        fontsize=8,
        color="#555555",
    )
    save(figure, path)
