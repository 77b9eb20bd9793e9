# SPDX-License-Identifier: BSD-3-Clause
"""What ratios of pairs of runs say: times with Stretto / times without."""

from __future__ import annotations

import statistics

NO_DIFFERENCE = "no clear difference"


def of_ratios(ratios: list[float]) -> tuple[str, str]:
    """Words and a colour. A difference counts if at least three quarters of the pairs show it."""
    ratios = sorted(ratios)
    low, high, ratio = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4], statistics.median(ratios)
    if high < 0.98:
        return f"{1 / ratio:.2f} times as fast", "green"
    if low > 1.02:
        return f"{ratio:.2f} times the time", "red"
    return NO_DIFFERENCE, "yellow"
