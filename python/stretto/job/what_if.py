# SPDX-License-Identifier: BSD-3-Clause
"""What a recorded job would take elsewhere: scenarios, and the replays that answer them."""

from __future__ import annotations

import copy
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stretto.cluster.plan import parse_rate
from stretto.core.console import fail
from stretto.job import efficiencies, recordings
from stretto.job.analysis import Analysis
from stretto.model import timer
from stretto.model.profile import Profile

OVERHEAD = ("send_overhead", "receive_overhead", "gap", "send_byte", "receive_byte", "handling", "handling_byte")
PARAMETERS = ("latency", "bandwidth", "overhead")
INSIDE = ("core", "l2", "l3", "numa", "socket", "node")  # levels whose messages cross no network
PLACES = ("slot", "node")
COLLECTIVES = ("recorded", "mpi", "stretto")
TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}  # nanoseconds
DEVIATIONS = 2  # of the error bar
RESAMPLES = ((1_000_000, 5), (5_000_000, 3))  # up to so many calls of all ranks, so many replays


# ---- Other networks ----


def factor(text: str, what: str) -> float:
    """`x0.5` or `0.5`."""
    try:
        value = float(text.removeprefix("x"))
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        fail(f"{what}: '{text}': a factor above 0 expected, as x0.5")
    return value


def _network(profile: Profile) -> list[dict[str, Any]]:
    """The paths that cross a network; all of them, where none does."""
    return [path for path in profile.paths if path["level"] not in INSIDE] or profile.paths


def _added_latency(text: str, profile: Profile) -> float | None:
    """What `20us`, or `+5us`, is more than the network's latency, that of short messages. None: it is no time."""
    match = re.fullmatch(r"(\+?)(\d+(?:\.\d+)?)(ns|us|ms|s)", text)
    if not match:
        return None
    now = min(_network(profile), key=lambda path: path.get("from_bytes", 0)).get("latency", 0)
    return float(match[2]) * TIMES[match[3]] - (0 if match[1] else now)


def _bandwidth(text: str, profile: Profile) -> float | None:
    """How many times the network's bandwidth, that of long messages, `2G` bits per second are. None: it is no rate."""
    longest = max(_network(profile), key=lambda path: path.get("from_bytes", 0))
    cards = [port for port in profile.ports if port["level"] == "node"]
    byte_gap = max(piece.get("byte_gap", 0) for piece in (longest, *cards))
    return parse_rate(text) * byte_gap / 8e9 if re.fullmatch(r"[\d.]+[KMG].*", text) and byte_gap > 0 else None


def changes(text: str, profile: Profile) -> dict[str, float]:
    """Factors, of `latency=x0.5,bandwidth=2G`. `added_latency` is in nanoseconds."""
    found = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in PARAMETERS or not value:
            fail(f"--set: '{part}': one of {', '.join(PARAMETERS)} expected, with a factor, as latency=x0.5")
        if name == "latency" and (added := _added_latency(value, profile)) is not None:
            found["added_latency"] = added
        elif name == "bandwidth" and (by := _bandwidth(value, profile)) is not None:
            found[name] = by
        else:
            found[name] = factor(value, f"--set {name}")
    return found


def changed(profile: Profile, by: dict[str, float]) -> Profile:
    """A machine with so many times the profile's network, and overheads."""
    made = copy.deepcopy(profile)
    for path in _network(made):
        path["latency"] = max(0, path.get("latency", 0) * by.get("latency", 1) + by.get("added_latency", 0))
    for piece in (*_network(made), *made.ports):
        piece["byte_gap"] = piece.get("byte_gap", 0) / by.get("bandwidth", 1)
    for piece in (*made.paths, *made.ports):
        for key in {*OVERHEAD} & piece.keys():
            piece[key] *= by.get("overhead", 1)
    return made


# ---- Scenarios ----


@dataclass(frozen=True)
class Scenario:
    """A replay and what it has that the recording had not."""

    name: str
    words: Sequence[str] = ()
    network: dict[str, float] = field(default_factory=dict)

    @property
    def changes(self) -> set[str]:
        """What is other than in the recording."""
        network = (name.replace("added_", "") for name in self.network)
        return {*network, *(word for word in self.words if word.startswith("--"))}


def compute(text: str) -> Scenario:
    by = factor(text, "--compute")
    return Scenario(f"compute x{by:g}", ["--compute", str(by)])


def collectives(text: str) -> Scenario:
    """By the recording, the MPI, Stretto, or a file of rules."""
    if text in COLLECTIVES:
        return Scenario(f"collectives: {text}", ["--collectives", text])
    if not Path(text).is_file():
        fail(f"--collectives: '{text}': one of {', '.join(COLLECTIVES)} or a file of rules expected")
    return Scenario(f"collectives: {text}", ["--collectives", "stretto", "--rules", text])


def place(text: str) -> Scenario:
    """Ranks one node after the other, in turn, or as a file says."""
    if text not in PLACES and not Path(text).is_file():
        fail(f"--place: '{text}': one of {', '.join(PLACES)} or a file of places expected")
    return Scenario(f"place by {text}", ["--place", text])


def noise(text: str) -> Scenario:
    """So many percent in the mean, or as the recording has."""
    if text == "recorded":
        return Scenario("noise as recorded", ["--noise", text])
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1
    if not 0 <= percent < float("inf"):
        fail(f"--noise: '{text}': percent expected, as 5, or recorded")
    return Scenario(f"noise {percent:g}%", ["--noise", str(percent / 100)])


def overlap(text: str) -> list[Scenario]:
    """A scenario, if it is on."""
    if text not in ("on", "off"):
        fail(f"--overlap: '{text}': on or off expected")
    return [Scenario("calls return early", ["--overlap"])] if text == "on" else []


def together(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """All in one, where there are several, and no two change the same."""
    names = [name for each in scenarios for name in each.changes]
    if len(scenarios) < 2 or len(names) != len(set(names)):
        return []
    network = {name: by for each in scenarios for name, by in each.network.items()}
    return [Scenario("all together", [word for each in scenarios for word in each.words], network)]


# ---- Answers ----


def _resamples(found: Analysis) -> int:
    calls = sum(place["calls"] for place in found.summary["places"])
    return next((count for most, count in RESAMPLES if calls <= most), 0)


def replayed(files: Sequence[Path], scenario: Scenario, costs: Profile, words: Sequence[str]) -> dict[str, Any]:
    """`words`: of all scenarios."""
    with timer.costs_file(costs) as was:
        differs = ["--was", was] if scenario.network or "--place" in scenario.words else []
        machine = changed(costs, scenario.network)
        answer = recordings.replay(files, [*words, *differs, *scenario.words], machine)
    if "failure" in answer:
        fail(f"the job cannot be replayed: {answer['failure']}")
    return answer


def _notes(answers: Sequence[dict[str, Any]]) -> list[str]:
    most = {name: max(answer["collectives"][name] for answer in answers) for name in answers[0]["collectives"]}
    said = {
        "in_memory": "take what they took: Stretto does them over shared memory, of which a profile knows nothing",
        "as_recorded": "take what they took: they are left to the MPI, or there is no schedule of theirs to time",
        "together": "take what they would if their ranks came at one time: all others have used up the timer's steps",
    }
    return [f"{most[name]} collectives {text}" for name, text in said.items() if most[name]]


def _row(found: Analysis, scenario: Scenario, answer: dict[str, Any], own: float) -> dict[str, Any]:
    scale = found.summary["seconds"] / own if own else 0
    seconds = answer["seconds"] * scale
    spread = DEVIATIONS * statistics.stdev(answer["resampled"]) * scale if len(answer["resampled"]) > 1 else None
    row = {
        "name": scenario.name,
        "replayed_s": answer["seconds"],
        "predicted_s": seconds,
        "low_s": None if spread is None else max(0, seconds - spread),
        "high_s": None if spread is None else seconds + spread,
        "efficiency": efficiencies.of(seconds, seconds, [rank["compute"] for rank in answer["ranks"]]).parallel,
    }
    if "--overlap" in scenario.words:
        row["sites"] = [
            {
                "call": site["call"],
                "place": found.line(site["place"]),
                "calls": site["calls"],
                "hidden_at_most_s": site["hidden"],
            }
            for site in sorted(answer["sites"], key=lambda site: site["hidden"], reverse=True)
        ]
    return row


def report(
    found: Analysis, files: Sequence[Path], scenarios: Sequence[Scenario], costs: Profile, words: Sequence[str]
) -> dict[str, Any]:
    """A replay's error on the recording's own machine corrects the others."""
    words = [*words, "--resamples", str(_resamples(found))]
    all_scenarios = [Scenario("as recorded"), *scenarios, *together(scenarios)]
    answers = [replayed(files, each, costs, words) for each in all_scenarios]
    own = answers[0]["seconds"]
    return {
        "ranks": len(found.ranks),
        "measured_s": found.summary["seconds"],
        "predicted_s": own,
        "efficiencies": found.efficiencies.json(),
        "what_if": [_row(found, each, answer, own) for each, answer in zip(all_scenarios, answers)],
        "notes": _notes(answers[1:]) if len(answers) > 1 else [],
    }
