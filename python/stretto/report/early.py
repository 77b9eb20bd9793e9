# SPDX-License-Identifier: BSD-3-Clause
"""What calls that return early (STRETTO_OVERLAP) could hide at most in a run that had none.

Statistics do not have the computing behind each call. So of a place at most its moving counts, and of the whole run no
more than the time outside of collectives. A recording knows more (stretto.job.hiding).
"""

from __future__ import annotations

from stretto.core import early
from stretto.report.figures import Figures
from stretto.report.places import Place
from stretto.report.verdict import percent, place_text


def is_on(run: Figures) -> bool:
    options = {option["name"]: option["value"].lower() for option in run.stats.get("options", [])}
    return options.get("STRETTO_OVERLAP", "off") not in ("", "off", "0", "no", "false")


def judged(run: Figures, place: Place) -> early.Early:
    """By the mean length of its calls."""
    return early.judge(place.op, int(place.bytes / max(place.calls, 1)), run.ranks, len(run.hosts), "on")


def advice(run: Figures) -> str | None:
    """A sentence. None: the run had such calls already, or no rank's calls are known."""
    if is_on(run) or not run.share.run or not run.places:
        return None
    times = [(place, (place.seconds - (place.waiting or 0.0)) / run.ranks) for place in run.places]
    may = [(place, moving) for place, moving in times if judged(run, place).may]
    hidden = min(sum(moving for _, moving in may), run.share.outside)
    if hidden < early.WORTH * run.share.run:
        return f"{early.gains_nothing(_why_nothing(run, may))}."
    most = sorted(may, key=lambda of: of[1], reverse=True)[: early.MOST_NAMED]
    named = ", ".join(f"{place_text(place)} {percent(moving / run.share.run)}" for place, moving in most)
    places = f", if it computes between these calls and the use of their data: {named}"
    sentence = early.could_hide(percent(hidden / run.share.run), places)
    return f"{sentence}. A recording (`stretto run --record`) says how much it computes there."


def _why_nothing(run: Figures, may: list[tuple[Place, float]]) -> str:
    if len(run.hosts) < 2:
        return "all ranks are on one node"
    if may and run.share.outside < early.WORTH * run.share.run:
        return "the program computes next to nothing"
    if may:
        return "collectives that may return early move data for a small part of the run"
    return f"{place_text(run.places[0])}: {judged(run, run.places[0]).why}"
