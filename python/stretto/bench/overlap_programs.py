# SPDX-License-Identifier: BSD-3-Clause
"""Measures whole programs of examples/ on a cluster with each value of STRETTO_OVERLAP, by turns, and
what the calls of one job cost where they may return early."""

from __future__ import annotations

import operator
import re
import shlex
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from stretto.bench import overlap_report
from stretto.bench.program import Row
from stretto.bench.provenance import provenance
from stretto.cluster import jobs
from stretto.cluster.cluster import Cluster
from stretto.core.console import fail, note, out
from stretto.core.turns import in_turn
from stretto.mpi import Mpi, environments
from stretto.native import programs

EXAMPLES = ("fft3d", "sample_sort")  # what each prints is read by seconds_of
VALUES = ("off", "on", "auto")
PATIENCE_S = 180  # until a job counts as hanging
# Of a rank's calls of one kind, in milliseconds of one call: statistics of the library
TIMES = {"in_call": "in_call_ns", "late": "late_ns", "waited": "waited_ns", "driver": "driver_ns"}
COUNTS = ("faults", "hurries", "publishes")


@dataclass(frozen=True)
class Request:
    programs: tuple[str, ...]  # with their arguments
    values: tuple[str, ...]
    runs: int
    where: str


def parse_programs(texts: Sequence[str]) -> tuple[str, ...]:
    for text in texts:
        if not text.split() or text.split()[0] not in EXAMPLES:
            raise ValueError(f"'{text}': one of {', '.join(EXAMPLES)}, and its arguments")
    return tuple(texts)


def parse_values(text: str) -> tuple[str, ...]:
    """`off` comes first: the others are divided by it."""
    others = dict.fromkeys(value for part in text.split(",") if (value := part.strip()) and value != "off")
    return ("off", *others)


def seconds_of(output: str) -> float:
    """Of one transform, or the sum of the phases of one sort."""
    line = re.search(r"^seconds per (?:transform|sort):?(.*)$", output, re.MULTILINE)
    if line is None:
        fail(f"the program does not say how long it took\n{output[-2000:]}", 1)
    return sum(float(number) for number in re.findall(r"\d+\.\d+", line[1].partition(", of which")[0]))


def costs_of(stats: Row) -> Row:
    """Counts of all calls, and medians over ranks of one call's times, in ms. Of calls that went over
    Stretto's connections, whatever their length."""
    ranks = [rank["overlap"] for rank in stats["per_rank"] if rank.get("overlap")]
    sums = [{key: sum(site.get(key, 0) for site in sites) for key in ("calls", "early", *COUNTS, *TIMES.values())}
            for sites in ranks]  # fmt: skip
    if not sums:
        return {"calls": 0, "early": 0}
    of_one = {
        f"{name}_ms": statistics.median(each[key] / max(each["calls"], 1) / 1e6 for each in sums)
        for name, key in TIMES.items()
    }
    counts = {name: statistics.median(each[name] / max(each["calls"], 1) for each in sums) for name in COUNTS}
    return (
        {"calls": max(each["calls"] for each in sums), "early": max(each["early"] for each in sums)} | of_one | counts
    )


Runner = Callable[[str, str], Row]  # program, value of STRETTO_OVERLAP -> seconds, and what its calls cost


def runner(request: Request, cluster: Cluster, mpi: Mpi, library: Path, options: dict[str, str]) -> Runner:
    return lambda words, value: run(request, cluster, mpi, library, words, {**options, "STRETTO_OVERLAP": value})


def run(request: Request, cluster: Cluster, mpi: Mpi, library: Path, words: str, options: dict[str, str]) -> Row:
    """One job."""
    name, *arguments = shlex.split(words)
    file = cluster.directory / "programs.json"
    file.unlink(missing_ok=True)
    env = environments.rank_environment(library, {**options, "STRETTO_STATS": f"json:{file}"})
    argv = [programs.compiled(mpi, name), *arguments]
    job = jobs.run(cluster, mpi, argv, where=request.where, env=env, timeout=PATIENCE_S)
    if job.returncode:
        fail(f"{words} ended with status {job.returncode}\n{job.stdout[-2000:]}{job.stderr[-2000:]}", 1)
    costs = costs_of(overlap_report.read(file))
    file.unlink()
    return {"seconds": seconds_of(job.stdout), **costs}


def measure(request: Request, job: Runner) -> list[Row]:
    """Medians of the runs, by program and value."""
    rows = []
    for words in request.programs:
        found: dict[str, list[Row]] = {value: [] for value in request.values}
        for turn in range(request.runs):
            note(f"measuring {words}, run {turn + 1} of {request.runs}")
            for value in in_turn(request.values, turn):
                found[value].append(job(words, value))
        rows += [row_of(words, value, found[value], found["off"]) for value in request.values]
    return rows


def row_of(words: str, value: str, runs: list[Row], off: list[Row]) -> Row:
    """`ratio` is the median of the ratios of neighbouring runs."""
    seconds = [each["seconds"] for each in runs]
    ratios = list(map(operator.truediv, seconds, (each["seconds"] for each in off)))
    names = [name for name in runs[0] if all(name in each for each in runs)]
    return {
        "program": words,
        "value": value,
        **{name: statistics.median(each[name] for each in runs) for name in names},
        "ratio": statistics.median(ratios),
        "least_ratio": min(seconds) / min(each["seconds"] for each in off),
    }


def document(cluster: Cluster, mpi: Mpi, request: Request, rows: list[Row]) -> Row:
    return {**provenance(mpi, cluster), "runs": request.runs, "map": request.where, "results": rows}


def show(doc: Row) -> Any:
    table = Table(title=f"{doc['mpi_title']} on cluster {doc['cluster']['name']}", title_justify="left")
    for name in ("program", "STRETTO_OVERLAP"):
        table.add_column(name)
    columns = ("in_call_ms", "late_ms", "waited_ms", "driver_ms", *COUNTS)
    for name in ("ms", "/ off", "calls", "early", *(name.replace("_ms", ", ms").replace("_", " ") for name in columns)):
        table.add_column(name, justify="right")
    for r in doc["results"]:
        shown = [f"{r[name]:.1f}" if name in r else "-" for name in columns]
        head = [f"{1e3 * r['seconds']:.2f}", f"{r['ratio']:.3f}", f"{r['calls']:.0f}", f"{r['early']:.0f}"]
        table.add_row(r["program"], r["value"], *head, *shown)
    out.print(table)
