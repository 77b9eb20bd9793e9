#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""Looks for differences between an MPI alone and with Stretto, by random sequences of MPI calls.

    dev/sequences.py --mpi mpich-5 -n 3 --count 1000 [--first SEED] [--setting NAME]... [--without FEATURE]

It prints each difference, shrunk to the shortest sequence. `--plain` also shrinks what stops the MPI
alone.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[1:1] = [str(ROOT / "tests" / "mpi"), str(ROOT / "python")]

import sequence_runs  # noqa: E402
from stretto.mpi import Mpi, finding  # noqa: E402


def mpis(start: str) -> list[Mpi]:
    found = [m for m in finding.find_abis() if m.mpicxx is not None and not m.is_standard and m.tag.startswith(start)]
    if not found:
        raise SystemExit(f"sequences: no MPI whose name starts with {start}")
    return found


def hunt(runner: sequence_runs.Runner, name: str, arguments: argparse.Namespace) -> int:
    """The number of sequences that differ."""
    wrong = 0
    for first in range(arguments.first, arguments.first + arguments.count, arguments.batch):
        for seed, found in runner.batch(first, arguments.batch):
            plain = found.startswith("plain ")
            wrong += not plain
            print(f"{runner.mpi.tag}, {runner.ranks} ranks, {name}, sequence {seed}: {found[:1500]}", flush=True)
            if arguments.shrink and (not plain or arguments.plain):
                print("shrunk:", runner.shrunk(seed, runner.stops_plain if plain else None), flush=True)
        print(f"{runner.mpi.tag}, {runner.ranks} ranks, {name}: {first + arguments.batch - 1}", flush=True)
    return wrong


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # then the harness ends the ranks
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mpi", default="", help="MPIs whose id starts so")
    parser.add_argument("-n", type=int, action="append", help="ranks (2, 3 and 5)")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="sequences for each MPI, ranks and setting")
    parser.add_argument("--batch", type=int, default=100, help="sequences of a launch")
    parser.add_argument("--setting", action="append", choices=[*sequence_runs.SETTINGS])
    parser.add_argument("--without", default="", help="features to leave out, with commas")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    parser.add_argument("--plain", action="store_true", help="shrink what stops the MPI alone, too")
    arguments = parser.parse_args()
    without = [w for w in arguments.without.split(",") if w]
    wrong = 0
    for mpi in mpis(arguments.mpi):
        for ranks in arguments.n or [2, 3, 5]:
            for name in arguments.setting or [*sequence_runs.SETTINGS]:
                runner = sequence_runs.Runner(mpi, ranks, sequence_runs.SETTINGS[name], without, cpu=["nice"])
                wrong += hunt(runner, name, arguments)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
