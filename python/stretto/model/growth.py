# SPDX-License-Identifier: BSD-3-Clause
"""How the time of a collective grows with the number of ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from stretto.core.units import format_time

LEAST_POINTS = 3
GROWTHS: dict[str, Callable[[float], float]] = {"log P": math.log2, "sqrt P": math.sqrt, "P": float}


def curves_of(predictions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A curve for each algorithm, in the order of ranks, with its fit."""
    curves = []
    for name in dict.fromkeys(p["algorithm"] for p in predictions):
        points = sorted((p for p in predictions if p["algorithm"] == name), key=lambda p: p["ranks"])
        curve = {"algorithm": name, "ranks": [p["ranks"] for p in points], "times": [p["time"] for p in points]}
        curves.append({**curve, "fit": fit(curve["ranks"], curve["times"])})
    return curves


def fit(ranks: Sequence[int], times: Sequence[float]) -> dict[str, Any] | None:
    """The growth c0 + c1 f(P) with the least mean square of relative errors. None: there are too
    few points."""
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
    """A growth in words."""
    grows = f"{format_time(fit_['factor'], unit)} {fit_['growth']}"
    if abs(fit_["constant"]) < 1e-6 * abs(fit_["factor"]):
        return grows
    return f"{grows} {'-' if fit_['constant'] < 0 else '+'} {format_time(abs(fit_['constant']), unit)}"
