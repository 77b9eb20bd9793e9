# SPDX-License-Identifier: BSD-3-Clause
"""How far fitted parameters are off, and whether they can be right."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from stretto.model import fit, loggp

# Beyond these, another program had the processors: the latency between two ranks of one machine,
# and the errors of fits and repetitions.
MOST_LATENCY_NS = 100_000
MOST_OFF = 0.3


def doubts(
    found: Sequence[dict[str, Any]], quality_: dict[str, float], works: dict[str, list[dict[str, Any]]] | None = None
) -> list[str]:
    """Why parameters within a machine cannot be right, in words. Empty: nothing speaks against
    them. `works` has pieces of work on long blocks, by their names in words."""
    latency = max(p["latency"] for p in found if p["from_bytes"] <= fit.SHORT_BYTES)
    reasons = (
        [f"a latency of {latency / 1e3:.0f} us, where less than {MOST_LATENCY_NS / 1e3:.0f} is to be expected"]
        if latency > MOST_LATENCY_NS
        else []
    )
    if quality_["message_error"] > MOST_OFF:
        reasons.append(f"a fit that is off by {quality_['message_error']:.0%} in the median")
    if quality_["spread"] > MOST_OFF:
        reasons.append(f"repetitions that differ by {quality_['spread']:.0%} in the median")
    reasons += [
        f"{name} that take as long with more bytes"
        for name, of_work in (works or {}).items()
        if not of_work[-1]["per_byte"]
    ]
    return reasons


def quality(
    rows: Sequence[fit.Row], found: Sequence[dict[str, Any]], port_: dict[str, Any] | None = None
) -> dict[str, float]:
    """Median errors of the parameters for one message and for two at once, and the spread of the
    measurements."""

    def error(measured: Callable[[fit.Row], float], model: Callable[..., float]) -> float:
        return statistics.median(
            abs(model(loggp.piece_at(found, r["bytes"]), r["bytes"], port_) / measured(r) - 1) for r in rows
        )

    spread = statistics.median(float(r["oneway"][1]) / fit.value(r, "oneway") for r in rows)
    return {
        "message_error": round(error(fit.passage, loggp.one_way), 4),
        "exchange_error": round(error(lambda r: fit.value(r, "exchange"), loggp.exchange), 4),
        "spread": round(spread, 4),
    }
