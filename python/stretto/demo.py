# SPDX-License-Identifier: BSD-3-Clause
"""demo: a real program with and without Stretto, on this machine, now."""

from __future__ import annotations

import json as json_module
import math
import os
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from stretto import build, job, launch, machine
from stretto.arguments import check_crowd
from stretto.console import err, fail, note, out, working, write_json
from stretto.mpi import Mpi
from stretto.outputs import check_outputs
from stretto.places import build_root
from stretto.plot import save

# In the order in which the program goes through them; what is inside a collective, and what is not.
PHASES = {
    "distribute": "Scatterv of the rows",
    "exchange": "Allgatherv of the vector",
    "norm": "Allgather of the norm",
    "collect": "Gatherv of the result",
    "compute": "computing (no MPI)",
}
COLLECTIVES = ("distribute", "exchange", "norm", "collect")
WAYS = ("mpi", "stretto")
NO_DIFFERENCE = "no clear difference"
CAPTION = (
    "Ratio: median over pairs of neighbouring runs. A phase's time is that of the rank for which it was longest, and who waits in a collective "
    "for one that still computes counts that there: phases may add up to more than the whole run."
)
# The measuring is cut short, with a note, when the machine is too slow or too busy for all repetitions.
BUDGET_S, LEAST_PAIRS = 120, 3


def compile_pagerank(mpi: Mpi) -> Path:
    return build.compile_program(mpi, ["examples/pagerank.c", "examples/sparse.c"], "pagerank", flags=["-O3", "-lm"])


def checksum(text: str) -> str | None:
    match = re.search(r"^checksum (\w+)$", text, re.MULTILINE)
    return match.group(1) if match else None


# ---- measuring ---------------------------------------------------------------------------------------------------------


class Run:
    """One way of running the program: its command line is fixed, its results are collected."""

    def __init__(self, mpi: Mpi, np: int, arguments: Sequence[str], library: Path | None, folder: Path) -> None:
        self.result = folder / f"{'stretto' if library else 'mpi'}.json"
        env = launch.rank_environment(library, {}) if library else {}
        self.line = mpi.command(np, [compile_pagerank(mpi), *arguments, "--json", self.result], env)
        self.mpi = mpi
        self.limit = 60.0  # seconds until a run counts as hanging; tighter once it is known how long one takes
        self.results: list[dict[str, Any]] = []
        self.stdout = ""

    def once(self, keep: bool = True) -> None:
        self.result.unlink(missing_ok=True)
        begin = time.monotonic()
        try:
            done = job.capture(self.mpi, self.line, timeout=self.limit)
        except job.JobHangs as error:
            fail(str(error), 1)
        if done.returncode or not self.result.exists():
            fail(
                f"the program failed (exit status {done.returncode}):\n  {' '.join(self.line)}\n{done.stderr[-3000:]}",
                1,
            )
        self.stdout = done.stdout
        if keep:
            self.limit = max(self.limit if self.results else 0.0, 10 + 10 * (time.monotonic() - begin))
            self.results.append(json_module.loads(self.result.read_text()))

    def median(self, *phases: str) -> float:
        return statistics.median(sum(r["seconds"][p] for p in phases) for r in self.results)

    def checksums(self) -> set[str]:
        return {r["checksum"] for r in self.results}


def measure(runs: dict[str, Run], repetitions: int, text: str) -> None:
    """Interleaved, the order turned around each time: machines drift, and neither way may profit from it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    if not err.is_terminal:
        note(f"{text}: {2 * (repetitions + 1)} runs ...")
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as progress:
        task = progress.add_task(text, total=2 * (repetitions + 1))
        begin = time.monotonic()
        for repetition in range(repetitions + 1):
            if repetition > LEAST_PAIRS and time.monotonic() - begin > BUDGET_S:
                note(f"stopped after {repetition - 1} of {repetitions} repetitions: {BUDGET_S} s are over")
                break
            for way in WAYS if repetition % 2 else WAYS[::-1]:
                runs[way].once(keep=repetition > 0)  # the first of each only warms up
                progress.advance(task)


def summarise(runs: dict[str, Run]) -> dict[str, Any]:
    """Milliseconds by phase; the ratio is the median over pairs of neighbouring runs."""
    groups = {**{p: (p,) for p in PHASES}, "collectives": COLLECTIVES, "total": ("total",)}
    rows = {}
    for name, phases in groups.items():
        pairs = [
            sum(ours["seconds"][p] for p in phases) / max(sum(plain["seconds"][p] for p in phases), 1e-12)
            for plain, ours in zip(runs["mpi"].results, runs["stretto"].results)
        ]
        rows[name] = {
            "mpi_ms": 1e3 * runs["mpi"].median(*phases),
            "stretto_ms": 1e3 * runs["stretto"].median(*phases),
            "ratio": statistics.median(pairs),
            "ratios": sorted(pairs),
        }
    return rows


# ---- telling -----------------------------------------------------------------------------------------------------------


def verdict(row: dict[str, Any]) -> tuple[str, str]:
    """Words and a colour. A difference that does not show in at least three quarters of the pairs is called none."""
    ratios, ratio = row["ratios"], row["ratio"]
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    if high < 0.98:
        return f"{1 / ratio:.2f} times as fast", "green"
    if low > 1.02:
        return f"{ratio:.2f} times the time", "red"
    return NO_DIFFERENCE, "yellow"


def contradictory(rows: dict[str, Any]) -> list[str]:
    """Rows whose two medians say something else than the ratios of their pairs: runs differ more from each other than the two ways do."""
    return [
        name
        for name, row in rows.items()
        if abs(math.log(row["stretto_ms"] / max(row["mpi_ms"], 1e-9) / row["ratio"])) > math.log(1.15)
        and row["mpi_ms"] > 0.02 * rows["total"]["mpi_ms"]
    ]


def show(rows: dict[str, Any], mpi: Mpi, np: int) -> None:
    table = Table(
        title=f"PageRank on {np} ranks, milliseconds (medians)",
        title_style="bold",
        header_style="bold",
        caption=CAPTION,
    )
    table.add_column("Phase")
    for heading in (mpi.title, "with Stretto", "ratio"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for name, row in rows.items():
        words, colour = verdict(row)
        style = "bold" if name in ("collectives", "total") else ""
        if name == "collectives":
            table.add_section()
        table.add_row(
            title_of(name),
            f"{row['mpi_ms']:.2f}",
            f"{row['stretto_ms']:.2f}",
            f"{row['ratio']:.2f}",
            f"[{colour}]{words}[/]",
            style=style,
        )
    out.print(table)
    if names := contradictory(rows):
        out.print(
            f"[yellow]{', '.join(map(title_of, names))}[/]: the two times do not have this ratio, because runs of one way differ more from each "
            "other than the two ways do: the machine is busy. The ratio, of runs that follow each other, is the better figure."
        )


def title_of(name: str) -> str:
    return PHASES.get(name, {"collectives": "all collectives", "total": "whole run"}.get(name, name))


def conclude(rows: dict[str, Any], identical: bool) -> None:
    out.print(
        "[green]The results are identical[/], bit for bit, in all runs."
        if identical
        else "[bold red]The results differ: this is a bug of ours, please report it.[/]"
    )
    inside, _ = verdict(rows["collectives"])
    whole, _ = verdict(rows["total"])
    share = rows["collectives"]["mpi_ms"] / max(rows["total"]["mpi_ms"], 1e-9)
    out.print(
        f"In the collectives: [bold]{inside}[/]. The whole run: [bold]{whole}[/]; "
        f"without Stretto it spends {share:.0%} of its time in collectives, which bounds what can be won."
    )
    between, _ = verdict(rows["compute"])
    if between != NO_DIFFERENCE:
        out.print(
            f"Computing, in which MPI has no part: [bold]{between}[/]. A collective leaves its data in some cache or other, and who computes next "
            "gains or pays: what counts is the whole run."
        )


def draw(path: Path, rows: dict[str, Any], bench: dict[str, Any] | None, mpi: Mpi, np: int) -> None:
    """Left the program's collectives, right the benchmark's ratio against size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2 if bench else 1, figsize=(12 if bench else 6.5, 4.5), squeeze=False)
    bars, names = axes[0][0], [*COLLECTIVES, "compute"]
    for shift, way, colour in ((-0.2, "mpi", "#9aa5b1"), (0.2, "stretto", "#2f7d4f")):
        bars.bar(
            [i + shift for i in range(len(names))],
            [rows[n][f"{way}_ms"] for n in names],
            0.38,
            color=colour,
            label=mpi.title if way == "mpi" else "with Stretto",
        )
    bars.set_xticks(
        range(len(names)), [PHASES[n].replace(" of ", "\nof ").replace(" (", "\n(") for n in names], fontsize=8
    )
    bars.set_ylabel("milliseconds (median)")
    bars.set_title(f"PageRank, {np} ranks")
    bars.legend(frameon=False)
    if bench:
        draw_bench(axes[0][1], bench)
    figure.text(0.5, 0.01, f"stretto demo, {mpi.title}\n{machine.one_line()}", ha="center", fontsize=8, color="#555555")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path)


def draw_bench(axis: Any, bench: dict[str, Any]) -> None:
    by_op: dict[str, list[tuple[int, float]]] = {}
    for row in bench["results"]:
        by_op.setdefault(row["op"], []).append((row["bytes"], row["ratio"]))
    for op, points in by_op.items():
        points.sort()
        axis.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3, label=op)
    axis.axhline(1, color="#888888", linewidth=0.8)
    axis.set_xscale("log", base=2)
    axis.set_ylim(bottom=0)
    sizes = sorted({row["bytes"] for row in bench["results"]})[::2]
    axis.set_xticks(sizes, [f"{size >> 10} KiB" if size >= 1024 else f"{size} B" for size in sizes])
    axis.minorticks_off()
    axis.set_xlabel("one rank's block")
    axis.set_ylabel("time / the MPI's own")
    axis.set_title(f"Collectives, {bench['np']} ranks (below 1: faster)")
    axis.legend(frameon=False, fontsize=8)


def warn_if_busy() -> None:
    load, cpus = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cpus * 0.75 + 0.5:
        out.print(f"[yellow]Other programs are running here (load {load:.1f} on {cpus} CPUs): times say little.[/]")


def short_bench(mpi: Mpi, np: int, force: bool) -> dict[str, Any] | None:
    """A few operations and sizes by `stretto bench`'s own measurement."""
    from stretto import bench

    with tempfile.TemporaryDirectory(prefix="stretto-demo-") as folder:
        path = Path(folder, "bench.json")
        line = [
            "--op",
            "scatterv,gatherv,allgatherv,bcast",
            "-n",
            str(np),
            "--sizes",
            "64:256K",
            "--mpi",
            str(mpi.mpiexec),
            "--budget",
            "0.15",
            "--json",
            str(path),
            *(["--force"] if force else []),
        ]
        typer_app = typer.Typer()
        typer_app.command()(bench.command)
        try:
            typer_app(line, standalone_mode=False)
        except typer.Exit as end:
            if end.exit_code:
                return None
        return json_module.loads(path.read_text()) if path.exists() else None


# ---- the command -------------------------------------------------------------------------------------------------------


def command(
    np: Annotated[
        Optional[int],
        typer.Option(
            "-n", "--ranks", "--np", min=1, metavar="N", help="Number of ranks. Default: one per usable CPU, 2 to 16."
        ),
    ] = None,
    mpi: Annotated[
        Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + launch.MPI_HELP)
    ] = None,
    matrix: Annotated[
        Optional[Path],
        typer.Option(
            "--matrix",
            metavar="FILE.mtx",
            exists=True,
            dir_okay=False,
            help="A Matrix Market file instead of a generated graph.",
        ),
    ] = None,
    vertices: Annotated[
        int, typer.Option("--vertices", metavar="N", min=1, help="Size of the generated graph.")
    ] = 50000,
    repetitions: Annotated[
        int, typer.Option("--repeat", "-r", "--repetitions", min=1, metavar="N", help="Runs of each kind.")
    ] = 9,
    bench: Annotated[
        bool, typer.Option("--bench/--no-bench", help="Also a short benchmark of single collectives.")
    ] = True,
    json: Annotated[
        Optional[Path],
        typer.Option("--json", metavar="FILE", help="Write the measurements as JSON into FILE ([b]-[/]: stdout)."),
    ] = None,
    picture: Annotated[
        Optional[Path],
        typer.Option("--plot", "--picture", metavar="FILE", help="Draw it (PNG, SVG, PDF). Default: build/demo.png."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also with more ranks than this machine can bear.")] = False,
) -> None:
    """Run a real MPI program with and without Stretto, compare results and times.

    PageRank on a power-law graph (or on a matrix of yours), by Scatterv, Allgatherv, Allgather and Gatherv. The program
    does not know of Stretto.
    """
    check_outputs(json, picture=picture)
    ranks = np or min(max(len(os.sched_getaffinity(0)), 2), 16)
    check_crowd(ranks, force)
    chosen = launch.choose(mpi)
    library = launch.library_for(chosen.abi)
    with working("compiling examples/pagerank.c"):
        compile_pagerank(chosen)
    out.print(f"{chosen.title} on {machine.one_line()}", markup=False)
    warn_if_busy()
    arguments = ["--matrix", str(matrix.absolute())] if matrix else ["--vertices", str(vertices)]
    with tempfile.TemporaryDirectory(prefix="stretto-demo-") as folder:
        runs = {
            way: Run(chosen, ranks, [*arguments, "--topics", "32"], library if way == "stretto" else None, Path(folder))
            for way in WAYS
        }
        measure(runs, repetitions, "PageRank with and without Stretto")
    rows = summarise(runs)
    identical = len(runs["mpi"].checksums() | runs["stretto"].checksums()) == 1
    out.print(runs["stretto"].stdout.split("seconds")[0].rstrip(), markup=False)
    show(rows, chosen, ranks)
    measured = short_bench(chosen, ranks, force) if bench else None
    conclude(rows, identical)
    target = picture or build_root() / "demo.png"
    draw(target, rows, measured, chosen, ranks)
    note(f"picture: {target}")
    write_json(
        json,
        "demo",
        {
            "mpi": chosen.title,
            "np": ranks,
            "machine": machine.describe(),
            "identical": identical,
            "repetitions": repetitions,
            "pagerank": rows,
            "bench": measured,
        },
    )
    if not identical:
        raise typer.Exit(1)
