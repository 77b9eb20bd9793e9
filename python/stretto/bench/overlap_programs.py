# SPDX-License-Identifier: BSD-3-Clause
"""Measures whole programs on a cluster with each value of STRETTO_OVERLAP, by turns, and what the calls of
one job cost where they may return early."""

from __future__ import annotations

import operator
import re
import shlex
import shutil
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
        name = next(iter(shlex.split(text)), "")
        if name not in examples() and not shutil.which(name):
            raise ValueError(f"'{text}': neither an executable nor one of {', '.join(examples())}")
    return tuple(texts)


def examples() -> list[str]:
    """The programs of examples/ that an MPI's compiler makes."""
    return [name for name, each in programs.programs().items() if each.sources[0].startswith("examples/")]


def argv_of(mpi: Mpi, words: str) -> list[str]:
    name, *arguments = shlex.split(words)
    return [str(programs.compiled(mpi, name)) if name in examples() else name, *arguments]


def parse_values(text: str) -> tuple[str, ...]:
    """`off` comes first: the others are divided by it."""
    others = dict.fromkeys(value for part in text.split(",") if (value := part.strip()) and value != "off")
    return ("off", *others)


def times_of(output: str, whole_job: float) -> Row:
    """What a program says that it took, else what its job took: of one transform, sort, product or step. Where it
    says what it took in collectives, `best_ratio` is of a run that hides all of that, or all else, whichever is
    less."""
    if line := re.search(r"^seconds per \w+:? *(.*)$", output, re.MULTILINE):
        parts = line[1].partition(", of which in ")
        seconds = sum(float(number) for number in re.findall(r"\d+\.\d+", parts[0]))
        inside = re.search(r"(\d+\.\d+)$", parts[2]) or re.search(r"\bexchange (\d+\.\d+)", parts[0])
        calls = float(inside[1]) if inside else 0.0
        return {"seconds": seconds, "best_ratio": max(calls, seconds - calls) / seconds if calls else None}
    if line := re.search(r"\bright, +(\d+\.\d+) s\b|^Loop time of (\d+\.\d+)", output, re.MULTILINE):
        return {"seconds": float(line[1] or line[2])}
    return {"seconds": whole_job}


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
    file = cluster.directory / "programs.json"
    file.unlink(missing_ok=True)
    env = environments.rank_environment(library, {**options, "STRETTO_STATS": f"json:{file}"})
    job = jobs.run(cluster, mpi, argv_of(mpi, words), where=request.where, env=env, timeout=PATIENCE_S)
    if job.returncode:
        fail(f"{words} ended with status {job.returncode}\n{job.stdout[-2000:]}{job.stderr[-2000:]}", 1)
    costs = costs_of(overlap_report.read(file))
    file.unlink()
    return {**times_of(job.stdout, job.seconds), **costs}


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
    names = [name for name in runs[0] if all(each.get(name) is not None for each in runs)]
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
    for name in (
        "ms",
        "/ off",
        "at best",
        "calls",
        "early",
        *(name.replace("_ms", ", ms").replace("_", " ") for name in columns),
    ):
        table.add_column(name, justify="right")
    for r in doc["results"]:
        shown = [f"{r[name]:.1f}" if name in r else "-" for name in columns]
        best = f"{r['best_ratio']:.3f}" if "best_ratio" in r else "-"
        head = [f"{1e3 * r['seconds']:.2f}", f"{r['ratio']:.3f}", best, f"{r['calls']:.0f}", f"{r['early']:.0f}"]
        table.add_row(r["program"], r["value"], *head, *shown)
    out.print(table)
