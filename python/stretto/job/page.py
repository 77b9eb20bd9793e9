# SPDX-License-Identifier: BSD-3-Clause
"""The page of a recorded job: its efficiencies, its places, and a timeline. One file that needs no network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from stretto import __version__
from stretto.core import html_pages
from stretto.job import hiding, recordings
from stretto.job.analysis import Analysis
from stretto.report.drawings import format_seconds

TEMPLATE = Path(__file__).with_name("page.html")
MOST_PLACES = 20
MOST_SPANS = 1_000_000
MOST_MESSAGES = 300_000
NAMES = {
    "load_balance": ("load balance", "ranks wait because others have more to compute"),
    "serialisation": ("serialisation", "ranks wait for each other in turn, although all compute for as long"),
    "transfer": ("transfer", "messages and collectives take time by themselves"),
}


def headline(found: Analysis) -> str:
    """The result in a sentence."""
    costs = found.efficiencies.costs()
    most = max(costs, key=lambda name: costs[name])
    share = costs[most] / found.efficiencies.seconds if found.efficiencies.seconds else 0
    return (
        f"{len(found.ranks)} ranks take {format_seconds(found.efficiencies.seconds)} and compute for "
        f"{found.efficiencies.parallel:.0%} of it; {NAMES[most][0]} costs most: {share:.0%}"
    )


def remarks(found: Analysis) -> list[str]:
    """What a reader must know before he trusts the figures."""
    said = []
    if not found.whole:
        lacking = sum(not rank["finished"] for rank in found.ranks)
        said.append(f"{lacking} ranks did not come to MPI_Finalize: what they did until they ended is here")
    if "failure" in found.ideal:
        said.append(f"the replay stops early, so serialisation counts as transfer: {found.ideal['failure']}")
    if found.lost_processor > 0.02:
        said.append(f"in {found.lost_processor:.0%} of the computation threads had no processor")
    return said


def timeline(files: Sequence[Path], found: Analysis) -> str:
    """What the page draws (tools/model/job_timeline.hpp), as JSON for a script; places are lines of source."""
    words = [str(MOST_SPANS), str(MOST_MESSAGES), *files]
    drawn = json.loads(recordings.ask("timeline", words, "drawing the timeline"))
    drawn["places"] = [found.line(place) for place in drawn["places"]]
    return json.dumps(drawn, separators=(",", ":")).replace("<", "\\u003c")


def write(path: Path, files: Sequence[Path], found: Analysis, early: hiding.Hiding) -> None:
    """`files`: those of the job. `early`: what would hide if its calls returned early."""
    values = found.efficiencies.json()
    text = html_pages.render(
        TEMPLATE,
        {"seconds": format_seconds, "percent": lambda part: f"{part:.1%}"},
        title=f"Stretto: {found.summary['program']}",
        headline=headline(found),
        remarks=remarks(found),
        found=found,
        rows=[(*NAMES[name], values[name], cost) for name, cost in found.efficiencies.costs().items()],
        places=found.places()[:MOST_PLACES],
        early=early,
        early_sites=early.shown()[:MOST_PLACES],
        critical=found.critical()[:MOST_PLACES],
        timeline=timeline(files, found),
        version=__version__,
    )
    html_pages.write(path, text)
