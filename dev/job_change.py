#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""A job whose replay says what two changes would gain, and what they gain: examples/triangle.c.

    dev/job_change.py --json FILE [--runs N] [--rate RATE]

It makes a cluster of two hosts, one rank on each, and measures a profile. It records the program as it is: rows by
blocks, collectives of the MPI. `stretto model job` predicts balance, Stretto, and both. Then rows go by turns, Stretto
serves the collectives, and both. Each is run several times, by turns, and medians are compared.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import job_accuracy
from job_accuracy import Doc, Program, Setting
from stretto.core import machine
from stretto.core.console import note

ARGUMENTS = ("1000", "1500")  # rows, steps
# What the replay is asked, and what was changed: rows by turns, served by Stretto.
CHANGES = {
    "rows by turns": (("--balance",), True, False),
    "Stretto": (("--collectives", "stretto"), False, True),
    "both": (("--balance", "--collectives", "stretto"), True, True),
}


def run(by_turns: bool, served: bool, on: str, folder: Path, rate: str) -> Path:
    program: Program = job_accuracy.example("triangle", "turns" if by_turns else "blocks", *ARGUMENTS)
    return job_accuracy.record(program, on, folder, Setting(rate, served))


def measured(on: str, runs: int, rate: str, folder: Path) -> Doc:
    ways = {"as it is": (False, False), **{name: (turns, served) for name, (_, turns, served) in CHANGES.items()}}
    jobs: dict[str, list[Path]] = {name: [] for name in ways}
    for number in range(runs):
        for name, way in ways.items():
            jobs[name].append(run(*way, on, folder / f"{name}-{number}", rate))
    seconds = {
        name: statistics.median(job_accuracy.replayed(job, folder / "profile", [])["measured_s"] for job in of_way)
        for name, of_way in jobs.items()
    }
    first = [job_accuracy.replayed(job, folder / "profile", []) for job in jobs["as it is"]]
    rows = []
    for name, (words, *_) in CHANGES.items():
        answers = [job_accuracy.replayed(job, folder / "profile", words) for job in jobs["as it is"]]
        predicted = statistics.median(answer["what_if"][-1]["predicted_s"] for answer in answers)
        rows.append({"change": name, "words": " ".join(words), "predicted_s": predicted, "measured_s": seconds[name]})
        note(f"{name}: predicted {predicted:.3f} s, measured {seconds[name]:.3f} s, before {seconds['as it is']:.3f} s")
    efficiencies = {
        key: statistics.median(each["efficiencies"][key] for each in first) for key in first[0]["efficiencies"]
    }
    return {"before_s": seconds["as it is"], "efficiencies": efficiencies, "changes": rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rate", default="1G")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="stretto-change-") as made,
        job_accuracy.cluster(options.rate, 2, False) as on,
    ):
        folder = Path(made)
        job_accuracy.profile_of(on, folder / "profile")
        found = measured(on, options.runs, options.rate, folder)
    document = {
        "schema": "stretto.job_change/1",
        "machine": machine.one_line(),
        "program": " ".join(("triangle blocks", *ARGUMENTS)),
        "command": " ".join(["dev/job_change.py", *sys.argv[1:]]),
        **found,
    }
    options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
