# SPDX-License-Identifier: BSD-3-Clause
"""Reports of the model in words."""

from __future__ import annotations

from stretto.core.console import out
from stretto.core.units import format_size
from stretto.model.profile import Profile

PARTS = ("latency", "bytes", "overhead", "reduce", "copy", "gap", "port", "crowd")


def format_parts(critical: dict[str, float], most: int = 3) -> str:
    """The parts of a critical path's time, the largest first."""
    total = sum(critical[part] for part in PARTS) or 1
    parts = sorted(PARTS, key=lambda part: -critical[part])[:most]
    return ", ".join(f"{part} {critical[part] / total:.0%}" for part in parts if critical[part] / total >= 0.005)


def call_text(op: str, bytes_: int) -> str:
    """A call in words. A barrier has no length."""
    return op if op == "barrier" else f"{op}, {format_size(bytes_)} bytes"


def ranks_text(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def say_profile(profile: Profile) -> None:
    """Prints the name of the profile."""
    name = profile.about.get("name", "without a name")
    if profile.is_example:
        out.print(
            f"profile: an example, not this machine: {name}; `stretto model measure` writes this machine's own",
            markup=False,
            style="yellow",
        )
    else:
        out.print(f"profile: {name}", markup=False, style="dim")
