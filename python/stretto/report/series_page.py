# SPDX-License-Identifier: BSD-3-Clause
"""The HTML page of several runs over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stretto import __version__
from stretto.core import html_pages
from stretto.report import drawings
from stretto.report.drawings import Chart, format_seconds
from stretto.report.page import FILTERS
from stretto.report.series import Change, Run, Slower, differences, options
from stretto.report.verdict import call_name

TEMPLATE = Path(__file__).with_name("series.html")
MOST_CHANGES = 12  # of a kind


def chart(runs: Sequence[Run]) -> Chart:
    """A column for each run: seconds of the mean rank outside collectives, moving and waiting."""
    stacks = []
    for run in runs:
        share = run.figures.share
        parts = (("outside", share.outside), ("moving", share.moving), ("waiting", share.waiting or 0.0))
        stacks.append([(kind, part, f"{run.name}: {kind} {format_seconds(part)}") for kind, part in parts])
    top = drawings.nice(max(sum(part for _, part, _ in stack) for stack in stacks))
    svg = drawings.columns(stacks, "Time of each run", top)
    return Chart(svg, drawings.scale(top, format_seconds), [run.name for run in runs])


def named(change: Change) -> str:
    """Words for what changed."""
    if change.op is None:
        return change.what
    name = call_name(change.op)
    return name if change.what == change.op else f"{name} at {change.what}"


def headline(runs: Sequence[Run]) -> str:
    """How long the latest run took beside those before."""
    before = [run.figures.share.run for run in runs[:-1]]
    now = runs[-1].figures.share.run
    low, high = format_seconds(min(before)), format_seconds(max(before))
    return f"{runs[-1].name}: {format_seconds(now)}; before {low if low == high else f'{low} to {high}'}"


def verdict(found: Slower) -> str:
    """What of the latest run lost most, as a sentence."""
    worst = (found["places"] or found["collectives"] or found["parts"])[:1]
    if not worst:
        return "Nothing is slower than in each run before."
    (change,) = worst
    if change.ratio is None:
        return f"New: {named(change)}, {format_seconds(change.now)} a rank."
    return (
        f"{named(change)} takes {change.ratio:.2f} times as long: {format_seconds(change.now)} a rank, "
        f"before at most {format_seconds(change.before[1])}."
    )


def render(runs: Sequence[Run], found: Slower) -> str:
    return html_pages.render(
        TEMPLATE,
        FILTERS | {"named": named, "options": options},
        title=f"Stretto: {len(runs)} runs of {runs[-1].figures.command}",
        version=__version__,
        runs=runs,
        headline=headline(runs),
        verdict=verdict(found),
        chart=chart(runs),
        slower={kind: changes[:MOST_CHANGES] for kind, changes in found.items()},
        differences=differences(runs),
    )


def write(path: Path, runs: Sequence[Run], found: Slower) -> None:
    html_pages.write(path, render(runs, found))
