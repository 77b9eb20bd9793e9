# SPDX-License-Identifier: BSD-3-Clause
"""A job on another number of ranks, from recordings of it on two or three (tools/model/job_scale.hpp)."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stretto.core.console import fail
from stretto.job import efficiencies, recordings
from stretto.job.analysis import Analysis
from stretto.model.profile import Profile


@dataclass(frozen=True)
class Scaled:
    files: list[Path]  # a recording that nobody has made
    recorded: list[list[Path]]  # those that it is made from
    laws: dict[str, Any]

    def main_laws(self) -> list[dict[str, Any]]:
        """Of the calls before which ranks compute for longest, and of those that name ranks."""
        return sorted(self.laws["laws"], key=lambda law: law["seconds"], reverse=True)


def scaled(jobs: Sequence[Path], ranks: int) -> Scaled:
    """Makes the recording. Fails with the reason where the jobs follow no law."""
    if len(jobs) < 2:
        fail("-n: recordings of the job on two numbers of ranks are needed, as 4 and 8, better on three")
    recorded = [recordings.files_of(job) for job in jobs]
    made = recordings.temporary()
    words: list[str | Path] = [str(ranks), made]
    for files in recorded:
        words += ["--", *files]
    return Scaled([made], recorded, json.loads(recordings.ask("scale", words, "finding laws")))


def expected(found: Analysis, job: Scaled, costs: Profile, where: Sequence[str]) -> Analysis:
    """With the time that the job would take. Replays of the recordings say by how much replays are off."""
    own = recordings.replay(job.files, where, costs)
    if "failure" in own:
        fail(f"the job on {len(found.ranks)} ranks cannot be replayed: {own['failure']}")
    off = list(_errors(job.recorded, costs, where))
    seconds = own["seconds"] * statistics.geometric_mean(off)
    compute = [rank["compute"] for rank in found.ranks]
    ideal = min(found.ideal["seconds"], seconds)
    return replace(
        found, summary={**found.summary, "seconds": seconds}, efficiencies=efficiencies.of(seconds, ideal, compute)
    )


def _errors(recorded: Iterable[list[Path]], costs: Profile, where: Sequence[str]) -> Iterable[float]:
    """How many times as long as its replay each recording took."""
    for files in recorded:
        answer, measured = recordings.replay(files, where, costs), recordings.summary(files)["seconds"]
        if "failure" in answer:
            fail(f"{files[0]} cannot be replayed: {answer['failure']}")
        yield measured / answer["seconds"]


def ranks_of(job: Scaled) -> list[int]:
    """Of the recordings."""
    return sorted(len(recordings.summary(files)["ranks"]) for files in job.recorded)
