# SPDX-License-Identifier: BSD-3-Clause
"""What a report says of a run that was stopped: when, by whose end, and who waited for whom at that moment."""

from __future__ import annotations

import signal
from typing import Any

from stretto.report.drawings import format_seconds

Row = dict[str, Any]
MOST_NAMED = 8


def names(ranks: list[int]) -> str:
    shown = ", ".join(map(str, ranks[:MOST_NAMED])) + (", ..." if len(ranks) > MOST_NAMED else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


def _end(text: str) -> str:
    kind, _, number = text.partition(" ")
    if kind == "signal" and number.isdigit():
        try:
            return f" by signal {number} ({signal.Signals(int(number)).name})"
        except ValueError:
            return f" by signal {number}"
    return f" with status {number}" if kind == "status" else " by MPI_Abort" if kind == "MPI_Abort" else ""


def _who(cut: Row, ranks: int) -> list[str]:
    """Who ended first, if it was not all at once."""
    first = cut["first"]
    if not first:
        return []
    if len(first) == ranks:
        ends = {each["end"] for each in first}
        return [f"All ranks ended together{_end(ends.pop()) if len(ends) == 1 else ''}."]
    said = [f"{names([each['rank']])} ended{_end(each['end'])}" for each in first[:MOST_NAMED]]
    return [f"First, {'; '.join(said)}."]


def sentences(stats: Row) -> list[str]:
    """Of a run that came to its end: none."""
    cut = stats.get("cut_short")
    if not cut:
        return []
    found = [f"The run was cut short after {format_seconds(cut['after_ns'] / 1e9)}: figures are those until then."]
    found += _who(cut, len(stats["per_rank"]))
    for call in sorted(cut["open"], key=lambda call: -call["ns"])[:2]:
        if call["late"]:
            found.append(
                f"At that moment {names(call['waiting'])} had waited {format_seconds(call['ns'] / 1e9)} in "
                f"MPI_{call['op'].capitalize()} for {names(call['late'])}."
            )
    if cut["not_read"]:
        found.append(f"There are no figures of {names(cut['not_read'])}, which could not be reached.")
    return found
