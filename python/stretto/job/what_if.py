# SPDX-License-Identifier: BSD-3-Clause
"""Other machines for a recorded job: a profile with changed parameters."""

from __future__ import annotations

import copy

from stretto.core.console import fail
from stretto.model.profile import Profile

LATENCY = ("latency",)
OVERHEAD = ("send_overhead", "receive_overhead", "gap", "send_byte", "receive_byte", "handling", "handling_byte")
PARAMETERS = ("latency", "bandwidth", "overhead")


def factor(text: str, what: str) -> float:
    """`x0.5` or `0.5`."""
    try:
        value = float(text.removeprefix("x"))
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        fail(f"{what}: '{text}': a factor above 0 expected, as x0.5")
    return value


def changes(text: str) -> dict[str, float]:
    """Of `latency=x0.5,bandwidth=x2`."""
    found = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in PARAMETERS or not value:
            fail(f"--set: '{part}': one of {', '.join(PARAMETERS)} expected, with a factor, as latency=x0.5")
        found[name] = factor(value, f"--set {name}")
    return found


def changed(profile: Profile, by: dict[str, float]) -> Profile:
    """A machine whose parameters are so many times those of the profile's."""
    made = copy.deepcopy(profile)
    for piece in (*made.paths, *made.ports):
        for key in piece:
            if key in LATENCY:
                piece[key] *= by.get("latency", 1)
            elif key in OVERHEAD:
                piece[key] *= by.get("overhead", 1)
            elif key == "byte_gap":
                piece[key] /= by.get("bandwidth", 1)
    return made
