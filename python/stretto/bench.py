# SPDX-License-Identifier: BSD-3-Clause
"""bench: our collectives, the MPI's own and the physical bound, in turn within one run of one program.

The measuring is done by bench/*.cpp, which prints one JSON object per line; docs/measuring.md says what the figures mean.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from stretto import build, launch, machine
from stretto.arguments import MOST_PER_CPU, check_crowd
from stretto.console import err, fail, note, out, working, write_json
from stretto.job import launched
from stretto.mpi import Mpi
from stretto.outputs import check_outputs

OPS = (
    "barrier",
    "bcast",
    "scatter",
    "scatterv",
    "gather",
    "gatherv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
)
V_OPS = ("scatterv", "gatherv", "allgatherv", "alltoallv", "alltoallw")
SMALL_BYTES = 64 << 10
# Paper S1's claims against Open MPI 4.1.2 at 8 and 16 ranks on 16 cores, blocks of at most 64 KiB.
S1_CLAIMS = {"scatterv": 0.4, "gatherv": 0.1, "allgatherv": 0.3}
LOST_ABOVE = {"openmpi": 1.1, "mpich": 1.1, "impi": 1.2}
BUSY_FLAG = 8  # a flag between any two processors takes at most so many times as long as between the nearest two
CONTENDERS = ("ours", "mpi", "bound")
CHAINS = {"bcast": "8-byte Bcast", "barrier": "Barrier", "allreduce": "8-byte Allreduce"}  # bench/latency.hpp
# Long calls beside the same work on private data (bench/collectives.cpp): what that is, and how much longer we may take.
LONG = {"bcast": ("memcpy by one rank", 1 / 0.9), "allreduce": ("c = a + b by every rank", 1.3)}
SOURCES = ("bound", "collectives", "latency", "measure", "ops", "team")  # of the measuring program, in bench/

Row = dict[str, Any]


class Method(str, Enum):
    imb = "imb"
    warm = "warm"
    used = "used"
    live = "live"


@dataclass(frozen=True)
class Request:
    """What is to be measured; everything a run of the program depends on beside the MPI and the number of ranks."""

    ops: tuple[str, ...]
    min_bytes: int
    max_bytes: int
    method: str = "imb"
    root_shift: int = 1
    spread: float = 0.0
    repeat: int = 0
    budget_s: float = 0.4
    latency: bool = False
    off: bool = False

    def arguments(self) -> list[str]:
        line = [
            "--min",
            str(self.min_bytes),
            "--max",
            str(self.max_bytes),
            "--root-shift",
            str(self.root_shift),
            "--spread",
            str(self.spread),
            "--calls",
            str(self.repeat),
            "--budget",
            str(self.budget_s),
        ]
        line += ["--ops", ",".join(self.ops)] if self.ops else []
        line += ["--method", self.method]
        return line + (["--latency"] if self.latency else [])

    def rows(self) -> int:
        sizes = len(sizes_between(self.min_bytes, self.max_bytes))
        return sum(1 if op == "barrier" else sizes for op in self.ops) + self.latency * (1 + len(CHAINS) + len(LONG))


# ---- what the user types ---------------------------------------------------------------------------------------------


def parse_size(text: str) -> int:
    """8, 64K, 1M (powers of 1024)."""
    match = re.fullmatch(r"(\d+)\s*([kKmMgG]?)(?:i?[bB])?", text.strip())
    if not match:
        raise ValueError(f"'{text}' is no size: a number, K, M or G may follow")
    return int(match.group(1)) << {"": 0, "k": 10, "m": 20, "g": 30}[match.group(2).lower()]


def parse_sizes(text: str) -> tuple[int, int]:
    """64:1M, or one size."""
    low, colon, high = text.partition(":")
    least, most = parse_size(low), parse_size(high if colon else low)
    if not 0 < least <= most <= 1 << 28:
        raise ValueError(f"'{text}': sizes go from 1 byte to 256M, the smaller first")
    return least, most


def sizes_between(least: int, most: int) -> list[int]:
    sizes = [least]
    while sizes[-1] * 2 <= most:
        sizes.append(sizes[-1] * 2)
    return sizes


def parse_ops(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(n.strip().lower() for n in text.split(",") if n.strip()))
    if names == ("all",):
        return OPS
    for name in names:
        if name not in OPS:
            raise ValueError(f"--op: unknown operation '{name}': one of {', '.join(OPS)}, or all")
    if not names:
        raise ValueError(f"--op: an operation is missing: one of {', '.join(OPS)}, or all")
    return names


def parse_ranks(text: str) -> tuple[int, ...]:
    numbers = tuple(int(n) for n in text.split(",") if n.strip().isdigit())
    if not numbers or len(numbers) != len(text.split(",")) or min(numbers) < 2:
        raise ValueError(f"-n '{text}': numbers of ranks are 2 or more, for example 2 or 4,8,16")
    return numbers


def print_size(bytes_: int) -> str:
    for shift, unit in ((20, "M"), (10, "K")):
        if bytes_ >= 1 << shift and bytes_ % (1 << shift) == 0:
            return f"{bytes_ >> shift}{unit}"
    return str(bytes_)


# ---- running the program ---------------------------------------------------------------------------------------------


def program(mpi: Mpi) -> Path:
    sources = [build.root() / "bench" / f"{name}.cpp" for name in SOURCES]
    if not sources[0].exists():
        fail(f"{build.root()} has no bench/: the measuring program's sources are missing")
    flags = ("-std=c++20", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-I", str(build.root() / "src"), "-ldl")
    try:
        with working("building the measuring program"):
            return build.compile_program(mpi, sources, "collectives", "c++", flags)
    except build.BuildError as error:
        fail(f"the measuring program cannot be built\n{error}")


def run_program(mpi: Mpi, np: int, request: Request, on_row: Callable[[Row], None]) -> list[Row]:
    """One run; every event the program prints, in order."""
    env = {} if request.off else launch.rank_environment(launch.library_for(mpi.abi), launch.SERVED_AT_ONCE)
    line = mpi.command(np, [program(mpi), *request.arguments()], env)
    with tempfile.TemporaryFile("w+") as errors:
        with (
            suppress(subprocess.TimeoutExpired),
            launched(
                line,
                env=launching_environment(mpi),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as process,
        ):
            events = collect(process.stdout, on_row)
            process.wait(timeout=60)
        errors.seek(0)
        judge(line, events, process.returncode, errors.read())
    return events


def collect(output: Iterable[str], on_row: Callable[[Row], None]) -> list[Row]:
    """The events in what a program prints, as they come."""
    events: list[Row] = []
    for text in output:
        if event := parse_event(text):
            events.append(event)
            if event["event"] in ("row", "flag", "chain", "long"):
                on_row(event)
    return events


def judge(line: Sequence[str], events: Sequence[Row], status: int, said: str) -> None:
    """Leaves with an error if a run did not come to its end; shows what the library had to say."""
    if status or not events or events[-1]["event"] != "done":
        fail(f"$ {shlex.join(line)}\n{said.rstrip()[-4000:]}\nexit status {status}", 1)
    for text in said.splitlines():
        if "stretto" in text.lower():
            note(text)


def launching_environment(mpi: Mpi) -> dict[str, str]:
    return {**{k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}, **mpi.environment()}


def parse_event(text: str) -> Row | None:
    if not text.startswith('{"event"'):
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return None


def run_all(mpi: Mpi, ranks: Sequence[int], request: Request, runs: int) -> list[list[Row]]:
    """The events of every run, each with its number of ranks."""
    path = program(mpi)  # building shows a progress of its own
    if not request.off:
        launch.library_for(mpi.abi)
    assert path
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    measured: list[list[Row]] = []
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task("starting", total=request.rows() * len(ranks) * runs)

        def show(np: int, run: int, row: Row) -> None:
            where = f"{row.get('op', 'flag')} {print_size(row.get('bytes', 0))}, {np} ranks"
            progress.update(task, advance=1, description=where + (f", run {run + 1} of {runs}" if runs > 1 else ""))

        for run in range(runs):
            events: list[Row] = []
            for np in ranks:
                if not err.is_terminal:
                    note(f"measuring {mpi.title}, {np} ranks" + (f", run {run + 1} of {runs}" if runs > 1 else ""))
                events += [{**e, "np": np} for e in run_program(mpi, np, request, lambda row: show(np, run, row))]
            measured.append(events)
    return measured


# ---- figures ---------------------------------------------------------------------------------------------------------


def geomean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(math.log(v) for v in values)) if values else math.nan


def ratio(a: float, b: float) -> float:
    """Times below the clock's resolution count as one nanosecond."""
    return max(a, 0.001) / max(b, 0.001)


def results_of(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """One row per number of ranks, operation and size: medians over the runs."""
    groups: dict[tuple[int, str, int], list[Row]] = {}
    for events in runs:
        for e in events:
            if e["event"] == "row":
                groups.setdefault((e["np"], e["op"], e["bytes"]), []).append(e)
    results = []
    for (np, op, size), rows in groups.items():
        times = {f"{c}_us": statistics.median(r[f"{c}_us"] for r in rows) for c in CONTENDERS}
        results.append(
            {
                "np": np,
                "op": op,
                "bytes": size,
                "ours_us": times["ours_us"],
                "mpi_us": times["mpi_us"],
                "ratio": statistics.median(ratio(r["ours_us"], r["mpi_us"]) for r in rows),
                "bound_us": times["bound_us"],
                "path": rows[-1]["path"],
                "flag_ns": statistics.median(r["flag_ns"] for r in rows),
                "bound_ratio": statistics.median(ratio(r["ours_us"], r["bound_us"]) for r in rows),
                "ratios": [ratio(r["ours_us"], r["mpi_us"]) for r in rows],
            }
        )
    return results


def geomeans(results: Sequence[Row], most_bytes: int | None = None) -> dict[str, float]:
    by_op: dict[str, list[float]] = {}
    for r in results:
        if most_bytes is None or r["bytes"] <= most_bytes:
            by_op.setdefault(r["op"], []).append(r["ratio"])
    return {op: geomean(values) for op, values in by_op.items()}


def lost_sizes(results: Sequence[Row], above: float) -> list[Row]:
    """Slower than the MPI's own by more than the machine's noise, in all of the runs."""
    return [r for r in results if all(value > above for value in r["ratios"])]


def latency_of(runs: Sequence[Sequence[Row]]) -> Row | None:
    """The one-way times and the long calls, medians over the runs, with the ratios that are claimed: each run's own."""

    def all_of(kind: str, op: str = "") -> list[Row]:
        return [e for run in runs for e in run if e["event"] == kind and e.get("op", "") == op]

    def times(events: Sequence[Row], name: str, unit: str) -> Row:
        return {f"{c}_{unit}": statistics.median(e[name][i] for e in events) for i, c in enumerate(CONTENDERS)}

    flags = all_of("flag")
    if not flags:
        return None
    result: Row = {"flag_ns": statistics.median(e["ns"] for e in flags), "chains": [], "long": []}
    for op in CHAINS:
        events = all_of("chain", op)
        per_flag = statistics.median(ratio(e["ns"][0], flag["ns"]) for e, flag in zip(events, flags))
        result["chains"].append({"op": op, **times(events, "ns", "ns"), "per_flag": per_flag})
    for op in LONG:
        events = all_of("long", op)
        per_plain = statistics.median(ratio(e["us"][0], e["plain_us"]) for e in events)
        result["long"].append(
            {
                "op": op,
                "bytes": events[0]["bytes"],
                **times(events, "us", "us"),
                "path": events[0]["path"],
                "plain_us": statistics.median(e["plain_us"] for e in events),
                "per_plain": per_plain,
            }
        )
    return result


def document(
    mpi: Mpi,
    ranks: Sequence[int],
    request: Request,
    runs: list[list[Row]],
    lost_above: float,
    bound_above: float | None,
) -> Row:
    results = results_of(runs)
    several = len(ranks) > 1
    shown = ("op", "bytes", "ours_us", "mpi_us", "ratio", "bound_us", "path")
    plans = [e for run in runs for e in run if e["event"] == "plan"]

    def brief(row: Row) -> Row:
        return {**({"np": row["np"]} if several else {}), **{k: row[k] for k in shown}}

    doc: Row = {
        "mpi": mpi.kind,
        "mpi_version": mpi.version,
        "mpi_title": mpi.title,
        "np": list(ranks) if several else ranks[0],
        "method": request.method,
        "machine": machine.one_line(),
        "machine_details": machine.describe(),
        "root_shift": request.root_shift,
        "spread": request.spread,
        "runs": len(runs),
        "command": shlex.join(["stretto", *sys.argv[1:]]),
        "preloaded": all(p["preloaded"] for p in plans),
        "results": [brief(r) for r in results],
        "flag_ns": [r["flag_ns"] for r in results],
        "geomean": geomeans(results),
        "geomean_to_64k": geomeans(results, SMALL_BYTES),
        "lost_above": lost_above,
        "lost": [{**brief(r), "ratios": r["ratios"]} for r in lost_sizes(results, lost_above)],
        "bound_ratio_max": {op: max(r["bound_ratio"] for r in results if r["op"] == op) for op in request.ops},
    }
    if bound_above is not None:
        doc["over_bound"] = [
            {**brief(r), "bound_ratio": r["bound_ratio"]} for r in results if r["bound_ratio"] > bound_above
        ]
    if latency := latency_of(runs):
        doc["latency"] = latency
    return doc


# ---- showing them ------------------------------------------------------------------------------------------------------


def colour(value: float, good: float, bad: float, digits: int = 2) -> str:
    style = "green" if value <= good else "red" if value > bad else "yellow"
    return f"[{style}]{value:.{digits}f}[/]"


def time_us(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


TEXTS = ("", "operation", "path", "which work")  # columns that are no numbers


def show_table(title: str, names: list[str], rows: list[list[str]], *dispensable: str) -> None:
    """Columns that there is no room for are left out, in this order: numbers that are cut would be others."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in names:
        table.add_column(name, justify="left" if name in TEXTS else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    if dispensable and Measurement.get(out, out.options.update_width(1000), table).maximum > out.width:
        i = names.index(dispensable[0])
        return show_table(title, names[:i] + names[i + 1 :], [row[:i] + row[i + 1 :] for row in rows], *dispensable[1:])
    out.print(table)


def show_rows(doc: Row) -> None:
    several = isinstance(doc["np"], list)
    names = (["ranks"] if several else []) + [
        "operation",
        "bytes",
        "ours",
        "MPI's",
        "ratio",
        "bound",
        "ours/bound",
        "path",
    ]
    rows: list[list[str]] = []
    previous = None
    for r in doc["results"]:
        if previous not in (None, r["op"]):
            rows.append([])
        previous = r["op"]
        cells = [str(r["np"])] if several else []
        cells += [
            r["op"],
            print_size(r["bytes"]),
            time_us(r["ours_us"]),
            time_us(r["mpi_us"]),
            colour(r["ratio"], 1.0, doc["lost_above"]),
            time_us(r["bound_us"]),
            colour(ratio(r["ours_us"], r["bound_us"]), 1.25, 1.5),
            r["path"],
        ]
        rows.append(cells)
    show_table(
        f"{doc['mpi_title']}, method {doc['method']}: times in us of the slowest rank",
        names,
        rows,
        "path",
        "bound",
        "ours/bound",
        "MPI's",
    )


def show_summary(doc: Row) -> None:
    claims = any(op in S1_CLAIMS for op in doc["geomean"]) and out.width >= 80
    names = ["operation", "all sizes", "to 64K", *(["published, to 64K *"] if claims else []), "worst ours/bound"]
    rows = []
    for op, value in doc["geomean"].items():
        small = doc["geomean_to_64k"].get(op)
        rows.append(
            [
                op,
                colour(value, 1.0, doc["lost_above"]),
                "" if small is None else f"{small:.2f}",
                *([str(S1_CLAIMS.get(op, ""))] if claims else []),
                f"{doc['bound_ratio_max'][op]:.2f}",
            ]
        )
    show_table("time / the MPI's own: geometric means (below 1: faster)", names, rows)
    if claims:
        out.print(
            "* Romanyuta and Kurnosov's figures (paper S1 of docs/measuring.md), against Open MPI 4.1.2 with 8 and 16 ranks on 16 cores"
        )
    if text := flags_text(doc):
        out.print(text)
    for r in doc["lost"]:
        where = f"{r['op']} {print_size(r['bytes'])}" + (f", {r['np']} ranks" if "np" in r else "")
        out.print(
            f"[red]lost[/] (above {doc['lost_above']} in all of {doc['runs']} run(s)): {where}: "
            + ", ".join(f"{v:.2f}" for v in r["ratios"])
        )
    for r in doc.get("over_bound", []):
        out.print(
            f"[red]over the bound[/]: {r['op']} {print_size(r['bytes'])}: {r['bound_ratio']:.2f} times {time_us(r['bound_us'])} us"
        )


def flags_text(doc: Row) -> str | None:
    """Why a bare flag was not always as fast, where ranks have a processor each."""
    nearest, farthest = min(doc["flag_ns"]), max(doc["flag_ns"])
    if not isinstance(doc["np"], int) or doc["np"] > doc["machine_details"]["cpus_usable"] or farthest <= 1.5 * nearest:
        return None
    why = (
        "the machine was busy, and ranks had to wait for a processor: figures may be worth little"
        if farthest > BUSY_FLAG * nearest
        else "the processors were nearer to each other for some rows than for others, or the machine was busy"
    )
    return f"A bare flag took {nearest:.0f} to {farthest:.0f} ns: {why}."


def show_latency(doc: Row) -> None:
    latency = doc["latency"]
    rows = [["flag transfer", "", "", f"{latency['flag_ns']:.0f} ns", "1.00"]]
    for row in latency["chains"]:
        rows.append(
            [CHAINS[row["op"]], *(f"{row[f'{c}_ns']:.0f} ns" for c in CONTENDERS), colour(row["per_flag"], 2.0, 2.0)]
        )
    show_table(
        f"{doc['mpi_title']}, {doc['np']} ranks: one way, chained calls",
        ["", "ours", "MPI's", "bound", "ours / flag"],
        rows,
        "MPI's",
    )
    names = ["", "ours", "MPI's", "bound", "private data", "ours / that", "which work"]
    rows = []
    for row in latency["long"]:
        what, limit = LONG[row["op"]]
        rows.append(
            [
                f"{row['op']} {print_size(row['bytes'])}",
                *(time_us(row[f"{c}_us"]) for c in CONTENDERS),
                time_us(row["plain_us"]),
                colour(row["per_plain"], limit, limit),
                what,
            ]
        )
    show_table("Long calls beside the same work on private data, us", names, rows, "which work", "bound", "MPI's")


def show(doc: Row) -> None:
    if doc["results"]:
        show_rows(doc)
        show_summary(doc)
    if "latency" in doc:
        show_latency(doc)


# ---- the command -------------------------------------------------------------------------------------------------------


def checked(parse: Callable[[str], Any], text: str, option: str = "") -> Any:
    try:
        return parse(text)
    except ValueError as error:
        fail(f"{option}: {error}" if option else str(error))


def command(
    op: Annotated[
        str, typer.Option("--op", metavar="LIST", help="Operations, with commas: " + ", ".join(OPS) + "; or all.")
    ] = "all",
    np: Annotated[
        str, typer.Option("-n", "--ranks", "--np", metavar="LIST", help="Number of ranks; several with commas.")
    ] = "2",
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="A:B", help="Bytes of one rank's block: the powers of two from A to B.")
    ] = "64:1M",
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="imb: a buffer out of the cache at each call. warm: the same buffers. used: as imb, and what is received is read, too. live: the same buffers, and what is sent is written before, what is received is read after.",
        ),
    ] = Method.imb,
    mpi: Annotated[
        Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + launch.MPI_HELP)
    ] = None,
    json_file: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="Results as JSON into FILE (- for stdout), no table."),
    ] = None,
    plot: Annotated[
        Optional[Path],
        typer.Option("--plot", metavar="FILE", help="Draw time / the MPI's own against size (PNG, SVG, PDF)."),
    ] = None,
    spread: Annotated[
        float,
        typer.Option(
            "--spread", metavar="X", min=0, max=1, help="Blocks of v-operations from 1-X to 1+X times the size."
        ),
    ] = 0.0,
    root_shift: Annotated[
        int,
        typer.Option(
            "--root-shift", metavar="0|1", min=0, max=1, help="1: another root at each call. 0: always rank 0."
        ),
    ] = 1,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat",
            metavar="N",
            min=0,
            max=4096,
            help="Calls of each contender in each of the five rounds; 0: as many as --budget allows, at most 1000.",
        ),
    ] = 0,
    budget: Annotated[
        float, typer.Option("--budget", metavar="S", min=0.001, help="Seconds for one contender at one size.")
    ] = 0.4,
    runs: Annotated[
        int, typer.Option("--runs", metavar="N", min=1, help="Repeat everything; figures are medians over the runs.")
    ] = 1,
    lost: Annotated[
        Optional[float],
        typer.Option(
            "--lost",
            metavar="X",
            min=0,
            help="A size is lost when its ratio is above X in all runs. Default: 1.1, for Intel MPI 1.2.",
            show_default=False,
        ),
    ] = None,
    check_lost: Annotated[bool, typer.Option("--check-lost", help="Exit with 1 when a size is lost.")] = False,
    check_bound: Annotated[
        Optional[float],
        typer.Option(
            "--check-bound", metavar="X", help="Exit with 1 when ours takes more than X times the bound at any size."
        ),
    ] = None,
    latency: Annotated[
        bool,
        typer.Option(
            "--latency",
            help="Instead of --op: one-way times beside a flag's, and long calls beside the same work on private data.",
        ),
    ] = False,
    off: Annotated[
        bool,
        typer.Option("--off", help="Without the library: the MPI against itself, which shows this machine's noise."),
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help=f"Also more than {MOST_PER_CPU} ranks for each processor.")
    ] = False,
) -> None:
    """Measure our collectives against the MPI's own and against the physical bound.

    All three take turns within one run of one program, and every result is checked.

    [dim]stretto bench --op scatterv,bcast -n 2 --sizes 64:1M --plot ratio.png[/]
    [dim]stretto bench --latency[/]
    """
    least, most = checked(parse_sizes, sizes, "--sizes")
    ranks = checked(parse_ranks, np)
    request = Request(
        () if latency else checked(parse_ops, op),
        least,
        most,
        method.value,
        root_shift,
        spread,
        repeat,
        budget,
        latency,
        off,
    )
    if latency and len(ranks) > 1:
        fail("--latency wants one number of ranks")
    check_outputs(json_file, picture=plot)
    if plot and set(request.ops) <= {"barrier"}:
        fail(
            "--plot: nothing to draw: it takes an operation with data"
            + (", of which --latency measures none" if latency else "")
        )
    check_crowd(max(ranks), force)
    chosen = launch.choose(mpi)
    load = warn_if_busy()
    measured = run_all(chosen, ranks, request, runs)
    doc = {
        **document(chosen, ranks, request, measured, LOST_ABOVE[chosen.kind] if lost is None else lost, check_bound),
        "load_before": load,
    }
    present(doc, json_file, plot)
    if (check_lost and doc["lost"]) or doc.get("over_bound"):
        raise typer.Exit(1)


def warn_if_busy() -> float:
    """The load before we start: what other programs take, ranks do not have."""
    load = os.getloadavg()[0]
    if load > 0.5:
        note(f"load average {load:.1f}: other programs are running, figures may be worth little")
    return load


def present(doc: Row, json_file: Path | None, plot: Path | None) -> None:
    if not doc["preloaded"]:
        note("the library is not in these runs: 'ours' is the MPI itself")
    if not json_file:
        show(doc)
    try:
        write_json(json_file, "bench", doc)
    except typer.Exit:
        show(doc)  # at least
        raise
    if plot:
        from stretto.plot import plot_ratios

        plot_ratios(doc, plot)
        note(f"drawn: {plot}")
