# SPDX-License-Identifier: BSD-3-Clause
"""Reader-writer schemes in shared memory, as in paper S3: figures, tables and pictures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from stretto.core.console import out, working
from stretto.core.plots import save, style
from stretto.core.processes import report_of
from stretto.native import build

SCHEMES = ("rwlock", "1n-mutex", "2n-mutex", "n-mutex-signal", "n-mcs", "seqlock", "passive")
NO_LOCK = "swap"  # a reader swaps each line that it writes, and never waits
# ds21: OpenPMIx's mutexes, which wait in the kernel and do not recover from a dead owner
REFERENCES = ("ds21", NO_LOCK)
MODES = ("read", "write", "concurrent")
MOST_CLIENTS = 4096  # of the benchmark
BASE = "2n-mutex"  # ratios are to this scheme: that of OpenPMIx, from which S3 starts
TITLES = {"read": "read only", "write": "write only", "concurrent": "concurrent"}

Row = dict[str, Any]


def built() -> Path:
    """The measuring program (bench/kv), built if need be."""
    with working("building the benchmark"):
        return build.ensure_built("release", ["stretto-kv-bench"]) / "stretto-kv-bench"


def run_program(arguments: Sequence[str], text: str) -> tuple[int, Row]:
    return report_of([str(built()), *arguments], text)


# ---- figures out of samples ----------------------------------------------------------------------


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, standard deviation, and relative error of the mean."""
    mean = statistics.fmean(values)
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return mean, sd, sd / math.sqrt(len(values)) / mean if mean else 0.0


def paired(ours: Sequence[float], base: Sequence[float]) -> float | None:
    """The median of the ratios within repetitions, so that a drift of the machine does not count."""
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


# ---- showing -------------------------------------------------------------------------------------


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


def format_ratio(ratio: float) -> str:
    """Three digits, because schemes differ by factors of up to a thousand."""
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
            against = f" ({format_ratio(row[ratio])})" if row[ratio] is not None else ""
            texts.append(f"{row[value] / unit:.3g}{against}")
        shown.add_row(scheme, *texts)
    return shown


def plot_figures(doc: Row, path: Path) -> None:
    """Draws figures 13 to 16 of S3: throughput of readers, of the writer and of both, and the time
    to acquire for writing."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

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
