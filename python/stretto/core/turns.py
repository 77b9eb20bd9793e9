# SPDX-License-Identifier: BSD-3-Clause
"""Measures several ways by turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Way = TypeVar("Way")


def in_turn(ways: Sequence[Way], turn: int) -> Sequence[Way]:
    """The ways in the order of this turn. Every other turn goes backwards, so that a drift of the machine favours
    none."""
    return ways if turn % 2 == 0 else ways[::-1]
