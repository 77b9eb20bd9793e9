# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on a run: a paragraph of sentences, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.report import cut_short
from stretto.report.drawings import format_bytes, format_seconds
from stretto.report.figures import OTHERS, Figures
from stretto.report.places import Place

LITTLE = 0.05  # part of a run that is not worth work
MOSTLY = 0.5
SMALL_BYTES = 1024

# What may be done about a reason why the MPI serves calls (docs/statistics.md).
ADVICE = {
    "left to the MPI until it is used more": "set STRETTO_AGREE=1, if these communicators are used often enough",
    "members are on different nodes": "run `stretto tune` on these nodes, or set STRETTO_<OP>=schedule",
    "a member's memory could not be attached": "see `stretto doctor`: containers or /proc are in the way",
    "a member's limit of address space": "raise `ulimit -v`",
    "left to the MPI by an option": "unset STRETTO_<OP>=mpi, if that was not meant",
    "chosen for some calls": "`stretto explain` says why a size goes to the MPI; `stretto tune` measures it",
}


@dataclass
class Verdict:
    headline: str
    sentences: list[str]
    next_step: str  # what to do, and how much it could gain
    gain: float  # seconds of the mean rank that the step could gain at most


def percent(part: float) -> str:
    return f"{100 * part:.0f}%" if part >= 0.095 or part == 0 else f"{100 * part:.1g}%"


def call_name(op: str) -> str:
    return "MPI_" + op.capitalize()


def place_text(place: Place) -> str:
    return f"{call_name(place.op)} at {place.short}"


def _late_sentence(figures: Figures) -> str:
    worst = figures.late[0]
    if worst.part < 1.5 / figures.ranks or (worst.part < MOSTLY and figures.ranks > 2):
        part = percent(worst.part)
        return f"No single rank holds the others up: the worst, rank {worst.rank}, causes {part} of the waiting."
    where = f", most of it where it comes late to {place_text(worst.places[0])}" if worst.places else ""
    return f"Rank {worst.rank} causes {percent(worst.part)} of the waiting{where}."


def _moving(place: Place) -> float:
    """Seconds of all ranks together."""
    return max(place.seconds - (place.waiting or 0.0), 0.0)


def _small_calls(figures: Figures) -> Place | None:
    """The place that spends most time in many small calls, if it takes a good part of the moving."""
    for place in figures.places[:3]:
        moved = _moving(place)
        small = place.op != "barrier" and place.calls and place.bytes / place.calls <= SMALL_BYTES
        if small and moved > 0.3 * figures.share.moving * figures.ranks and place.calls > 1000 * figures.ranks:
            return place
    return None


def _next_step(figures: Figures) -> tuple[str, float]:
    """What to do, and how many seconds of the mean rank it could gain at most."""
    share = figures.share
    if share.part < LITTLE:
        return "Look elsewhere: a faster collective cannot make this program much faster.", share.calls
    if figures.late and share.waiting_part >= MOSTLY:
        worst = figures.late[0]
        if worst.part >= MOSTLY and figures.ranks > 2 or worst.part > 0.75:
            step = (
                f"Find out what rank {worst.rank} does before that call: it has more work, or less of the machine. "
                "No faster collective removes this waiting. "
                "While the job runs, `stretto top` shows the rank and its line."
            )
            return step, worst.seconds / figures.ranks
        step = (
            "Balance the work, or let ranks come to collectives less often. If ranks are late by turns, look for noise "
            "of the system and for ranks that share processors."
        )
        return step, share.waiting or 0.0
    if figures.left and figures.left[0]["seconds"] > MOSTLY * share.calls * figures.ranks:
        reason = figures.left[0]["reason"]
        advice = next((text for start, text in ADVICE.items() if reason.startswith(start)), None)
        step = f"The MPI itself serves most of this time ({reason})"
        step = f"{step}: {advice}." if advice else f"{step}; docs/statistics.md says what the reason means."
        return step, figures.left[0]["seconds"] / figures.ranks * (1 - share.waiting_part)
    if place := _small_calls(figures):
        size = format_bytes(place.bytes / place.calls)
        step = (
            f"Combine calls: {place_text(place)} makes {place.calls // figures.ranks} calls of {size} on each rank, "
            "and each costs its latency."
        )
        return step, _moving(place) / figures.ranks
    if figures.places:
        step = (
            f"Start at {place_text(figures.places[0])}, which takes most of the time; `stretto explain` says how it is "
            "served, `stretto tune` whether this machine has something faster."
        )
        return step, _moving(figures.places[0]) / figures.ranks
    step = "`stretto explain` says how calls are served, `stretto tune` whether this machine has something faster."
    return step, share.moving


def _with_gain(step: str, gain: float, run: float) -> str:
    return f"{step} This can gain at most {format_seconds(gain)} of {format_seconds(run)}." if gain and run else step


def verdict(figures: Figures, off: Figures | None = None) -> Verdict:
    share = figures.share
    cut = figures.stats.get("cut_short")
    begin = f"Cut short after {format_seconds(cut['after_ns'] / 1e9)}" if cut else f"Run {format_seconds(share.run)}"
    headline = f"{begin}; collectives {format_seconds(share.calls)} ({percent(share.part)})" + (
        f", of which waiting {format_seconds(share.waiting)}" if share.waiting is not None else ""
    )
    of_mean = f"Collectives take {percent(share.part)} of the run on the mean of {figures.ranks} ranks."
    sentences = [of_mean, *cut_short.sentences(figures.stats)]
    if share.waiting is None:
        sentences.append("How much of it is waiting is not known: the ranks' arrivals were not compared.")
    elif share.calls:
        sentences.append(
            f"{percent(share.waiting_part)} of that is waiting for ranks that have not come yet, "
            f"{percent(1 - share.waiting_part)} is moving data."
        )
    if figures.late and share.waiting_part > LITTLE:
        sentences.append(_late_sentence(figures))
    if others := {kind: seconds for kind, seconds in share.others.items() if seconds > LITTLE * share.run}:
        kinds = ", ".join(f"{OTHERS[kind]} {percent(seconds / share.run)}" for kind, seconds in others.items())
        sentences.append(f"Beside collectives, calls of MPI take: {kinds} of the run.")
    if off is not None and share.run and off.share.run:
        sentences.append(
            f"Without Stretto the run took {format_seconds(off.share.run)}, "
            f"{off.share.run / share.run:.2f} times as long; "
            f"its collectives took {format_seconds(off.share.calls)}."
        )
    step, gain = _next_step(figures)
    return Verdict(headline, sentences, _with_gain(step, gain, share.run), gain)
