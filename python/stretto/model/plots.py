# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the model: time against ranks, and time against the number of chains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stretto.core.plots import COLOURS, save, style
from stretto.core.units import format_size, format_time
from stretto.model import growth
from stretto.model.profile import Profile

LEAST_CHAINED = 6  # with fewer ranks, there is only one number of chains to draw


def plot_scale(curves: list[dict[str, Any]], title: str, profile: Profile, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7.5, 5))
    factor, unit = axis_unit(max(max(c["times"]) for c in curves), profile.unit)
    for i, curve in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        fit_ = curve["fit"]
        label = f"{curve['algorithm']}: {growth.formula(fit_, profile.unit)}" if fit_ else curve["algorithm"]
        axis.plot(
            curve["ranks"], [t * factor for t in curve["times"]], **{**style(i), "linestyle": "none"}, label=label
        )
        if fit_:
            axis.plot(
                curve["ranks"],
                [
                    factor * (fit_["constant"] + fit_["factor"] * growth.GROWTHS[fit_["growth"]](p))
                    for p in curve["ranks"]
                ],
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
    """Draws figure 7 of S4: the estimate as lines, the timer as points. Marks show the least
    estimate and the practical rule's k."""
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
    """Draws figure 8 of S4, but each length relative to its own best time. Otherwise curves of
    short vectors would lie on the axis."""
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
            label=f"P = {curve['ranks']}, {format_size(curve['bytes'])} bytes: {model_time(times[best], profile)} "
            f"at k = {best}",
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


def model_time(time: float, profile: Profile) -> str:
    return format_time(time, profile.unit)
