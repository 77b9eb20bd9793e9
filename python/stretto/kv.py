# SPDX-License-Identifier: BSD-3-Clause
"""kv: reader-writer schemes in shared memory, as in paper S3, and the library in front of PMIx."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto import build, machine, outputs
from stretto.console import err, fail, out, report_of, working, write_json
from stretto.places import preloadable

SCHEMES = ("rwlock", "1n-mutex", "2n-mutex", "n-mutex-signal", "n-mcs", "seqlock", "passive")
NO_LOCK = "swap"  # on each line that a reader writes, and no waiting
REFERENCES = ("ds21", NO_LOCK)  # OpenPMIx's own mutexes, which wait in the kernel and recover from nothing
MODES = ("read", "write", "concurrent")
MOST_CLIENTS = 4096  # of the benchmark
BASE = "2n-mutex"  # what ratios refer to: the scheme of OpenPMIx that S3 starts from
TITLES = {"read": "read only", "write": "write only", "concurrent": "concurrent"}

Row = dict[str, Any]
app = typer.Typer(help="The node's key-value store and its lock schemes.", no_args_is_help=True)


def run_program(arguments: Sequence[str], text: str) -> tuple[int, Row]:
    with working("building the benchmark"):
        program = build.ensure_built("release", ["stretto-kv-bench"]) / "stretto-kv-bench"
    return report_of([str(program), *arguments], text)


# ---- figures out of samples ------------------------------------------------------------------------------------------


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, standard deviation, and relative error of the mean."""
    mean = statistics.fmean(values)
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return mean, sd, sd / math.sqrt(len(values)) / mean if mean else 0.0


def paired(ours: Sequence[float], base: Sequence[float]) -> float | None:
    """Median of the ratios within repetitions, so that the machine's drift is not in it."""
    ratios = [a / b for a, b in zip(ours, base) if b]
    return statistics.median(ratios) if ratios else None


def summarize(samples: Iterable[Row]) -> list[Row]:
    """One row for each mode, scheme and number of clients."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for sample in samples:
        groups.setdefault((sample["mode"], sample["scheme"], sample["clients"]), []).append(sample)
    return [
        summary(group, groups.get((mode, BASE, clients), [])) | {"mode": mode, "scheme": scheme, "clients": clients}
        for (mode, scheme, clients), group in groups.items()
    ]


def summary(group: list[Row], base: list[Row]) -> Row:
    rates, times = [s["locks_per_s"] for s in group], [s["write_acquire_us"] for s in group]
    rate, sd, error = spread(rates)
    time, time_sd, time_error = spread(times)
    return {
        "locks_per_s": rate,
        "sd": sd,
        "relative_error": error,
        "write_acquire_us": time,
        "write_acquire_sd_us": time_sd,
        "write_acquire_relative_error": time_error,
        "repetitions": len(group),
        "locks_ratio": paired(rates, [s["locks_per_s"] for s in base]),
        "write_acquire_ratio": paired(times, [s["write_acquire_us"] for s in base]),
    }


# ---- showing ---------------------------------------------------------------------------------------------------------


def show(rows: list[Row]) -> None:
    for mode in dict.fromkeys(row["mode"] for row in rows):
        clients = list(dict.fromkeys(row["clients"] for row in rows if row["mode"] == mode))
        out.print(
            table(
                f"{TITLES[mode]}: million locks/s (ratio to {BASE})",
                rows,
                mode,
                clients,
                "locks_per_s",
                1e6,
                "locks_ratio",
            )
        )
        if mode == "concurrent":
            out.print(
                table(
                    f"{TITLES[mode]}: us to acquire for writing (ratio to {BASE})",
                    rows,
                    mode,
                    clients,
                    "write_acquire_us",
                    1,
                    "write_acquire_ratio",
                )
            )


def print_ratio(ratio: float) -> str:
    """Three digits, wherever the point is: schemes differ by factors of a thousand."""
    return f"{ratio:.3g}" if ratio < 1000 else f"{ratio:.0f}"


def table(title: str, rows: list[Row], mode: str, clients: list[int], value: str, unit: float, ratio: str) -> Table:
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    shown.add_column("scheme")
    for n in clients:
        shown.add_column(f"{n} clients" if n > 1 else "1 client", justify="right")
    cells = {(row["scheme"], row["clients"]): row for row in rows if row["mode"] == mode}
    for scheme in dict.fromkeys(row["scheme"] for row in rows):
        texts = []
        for n in clients:
            row = cells[scheme, n]
            against = f" ({print_ratio(row[ratio])})" if row[ratio] is not None else ""
            texts.append(f"{row[value] / unit:.3g}{against}")
        shown.add_row(scheme, *texts)
    return shown


def plot_figures(doc: Row, path: Path) -> None:
    """S3's figures 13 to 16: throughput reading, writing and both, and the time to acquire for writing."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from stretto.plot import save, style

    panels = [
        ("read", "locks_per_s", "read only, locks/s"),
        ("write", "locks_per_s", "write only, locks/s"),
        ("concurrent", "locks_per_s", "concurrent, read locks/s"),
        ("concurrent", "write_acquire_us", "concurrent, us to acquire for writing"),
    ]
    rows_of = {mode: [r for r in doc["results"] if r["mode"] == mode] for mode in MODES}
    shown = [(number, *panel) for number, panel in enumerate(panels, 13) if rows_of[panel[0]]]
    lines = (len(shown) + 1) // 2
    height = 4 * lines
    figure, axes = plt.subplots(lines, min(len(shown), 2), figsize=(11, height), squeeze=False)
    for axis, (number, mode, value, title) in zip(axes.flat, shown):
        rows = rows_of[mode]
        for i, scheme in enumerate(dict.fromkeys(r["scheme"] for r in rows)):
            points = sorted((r["clients"], r[value]) for r in rows if r["scheme"] == scheme)
            axis.plot(*zip(*points), **style(i), label=scheme)
        axis.set_title(f"{title} (as figure {number} of Efimov et al., 2020)", fontsize=10)
        axis.set_xlabel("clients")
        axis.set_yscale("log")
        axis.set_xscale("log", base=2)
        ticks = sorted({r["clients"] for r in rows})
        axis.set_xticks(ticks, [str(n) for n in ticks])
        axis.minorticks_off()
        axis.grid(True, axis="y", color="#e4e4e4", linewidth=0.6)
        axis.set_axisbelow(True)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    figure.legend(
        handles,
        labels,
        ncols=len(labels),
        loc="lower center",
        frameon=False,
        fontsize=9,
        bbox_to_anchor=(0.5, 0.24 / height),
    )
    figure.text(0.5, 0.1 / height, doc["machine"], ha="center", fontsize=8, color="#555555")
    figure.tight_layout(rect=(0, 0.56 / height, 1, 1))
    save(figure, path)


# ---- the command -----------------------------------------------------------------------------------------------------


def chosen(text: str, known: Sequence[str], what: str) -> list[str]:
    names = list(known) if text == "all" else text.split(",")
    for name in names:
        if name not in known:
            fail(f"--{what} {name or text}: one of {', '.join(known)}; or all")
    return names


def check_schemes(schemes: list[str], clients: str, sections: int) -> list[Row]:
    status, report = run_program(
        ["check", "--schemes", ",".join(schemes), "--clients", clients, "--sections", str(sections)], "checking schemes"
    )
    for failure in (c for c in report["checks"] if c["failure"]):
        err.print(f"{failure['scheme']} with {failure['clients']} clients: {failure['failure']}", markup=False)
    if status:
        raise typer.Exit(1)
    return report["checks"]


@app.command("bench")
def bench(
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme",
            metavar="LIST",
            help="Schemes, with commas: "
            + ", ".join(SCHEMES)
            + "; or all. Also ds21: 2n-mutex as OpenPMIx has it; swap: no lock, but what a queue costs at least.",
        ),
    ] = "all",
    clients: Annotated[
        str, typer.Option("--clients", metavar="LIST", help="Numbers of readers, with commas.")
    ] = "1,2,4,8",
    mode: Annotated[str, typer.Option("--mode", metavar="LIST", help="read, write, concurrent; or all.")] = "all",
    repetitions: Annotated[
        int,
        typer.Option("--repeat", "--repetitions", metavar="N", min=1, help="Repetitions, the schemes taking turns."),
    ] = 10,
    length_ms: Annotated[
        int,
        typer.Option(
            "--length-ms", metavar="MS", min=1, help="Of one repetition of one scheme, reading or writing only."
        ),
    ] = 30,
    sections: Annotated[
        int,
        typer.Option("--check-sections", metavar="N", min=0, help="Sections of the correctness run before; 0: none."),
    ] = 20_000,
    json: Annotated[
        Optional[Path],
        typer.Option(
            "--json",
            metavar="FILE",
            help="Results as JSON into FILE ([b]-[/]: stdout), no table.",
            callback=outputs.writable,
        ),
    ] = None,
    plot: Annotated[
        Optional[Path],
        typer.Option(
            "--plot", metavar="FILE", help="Draw the four figures (PNG, SVG, PDF).", callback=outputs.drawable
        ),
    ] = None,
) -> None:
    """Compare reader-writer locks for one writer and many readers in shared memory.

    First each scheme is checked: readers meet inside, the writer is alone, counters are exact. Then it is measured in three modes:
    only readers, only the writer, and 100 writes 10 us apart while the readers hammer. Ratios are to 2n-mutex (OpenPMIx's) in
    the same run, the schemes taking turns.
    """
    schemes = list(SCHEMES) if scheme == "all" else chosen(scheme, SCHEMES + REFERENCES, "scheme")
    modes = chosen(mode, MODES, "mode")
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", clients):
        fail(f"--clients {clients}: numbers with commas, as 1,2,4")
    if max(map(int, clients.split(","))) > MOST_CLIENTS:
        fail(f"--clients {clients}: at most {MOST_CLIENTS}")
    checks = check_schemes([name for name in schemes if name != NO_LOCK], clients, sections) if sections else []
    _, report = run_program(
        [
            "measure",
            "--schemes",
            ",".join(schemes),
            "--modes",
            ",".join(modes),
            "--clients",
            clients,
            "--repetitions",
            str(repetitions),
            "--length-ms",
            str(length_ms),
        ],
        "measuring",
    )
    doc = {
        "machine": machine.one_line(),
        "machine_details": machine.describe(),
        "checks": checks,
        "results": summarize(report["samples"]),
    }
    write_json(json, "kv.bench", doc)
    if json is None:
        show(doc["results"])
    if plot:
        plot_figures(doc, plot)


@app.command("lib")
def lib() -> None:
    """Print the path of the library that answers PMIx_Get from the node, for LD_PRELOAD."""
    with working("building the library"):
        directory = build.ensure_built("release", ["stretto-kv"])
        if "libstretto-pmix.so" in (directory / "build.ninja").read_text():
            build.ensure_built("release", ["stretto-pmix"])
    library = directory / "libstretto-pmix.so"
    if not library.exists():
        fail("there is no pmix.h on this machine to build it with: install libpmix-dev")
    typer.echo(preloadable(library))
