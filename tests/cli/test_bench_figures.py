# SPDX-License-Identifier: BSD-3-Clause
"""bench: what the user may type, and how figures are made of what the program measured. No MPI is run here."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from stretto.bench import figures, plots, program, tables
from stretto.bench.request import CHAINS, LONG, OPS, Request, parse_ops, parse_ranks
from stretto.core.plots import style
from stretto.core.units import format_size, parse_size, parse_sizes


@pytest.mark.parametrize(
    ("text", "expected"), [("64:1M", (64, 1 << 20)), ("8", (8, 8)), ("4k:4KiB", (4096, 4096)), ("1:3", (1, 3))]
)
def test_sizes(text: str, expected: tuple[int, int]) -> None:
    assert parse_sizes(text) == expected


@pytest.mark.parametrize("text", ["", "1M:64", "0:8", "64:", "x", "1T", "1:1G"])
def test_bad_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_sizes(text)


def test_operations_and_ranks() -> None:
    assert parse_ops("scatterv, Bcast,scatterv") == ("scatterv", "bcast")
    assert parse_ops("all") == OPS
    assert parse_ranks("4,8,16") == (4, 8, 16)
    for bad in ("1", "2,x", "", "2,,3"):
        with pytest.raises(ValueError):
            parse_ranks(bad)
    with pytest.raises(ValueError, match="frobnicate"):
        parse_ops("bcast,frobnicate")


def test_sizes_are_printed_as_they_are_typed() -> None:
    for size in (8, 1000, 1 << 10, 48 << 10, 1 << 20, 1536 << 10):
        assert parse_size(format_size(size)) == size


def test_progress_counts_what_the_program_will_print() -> None:
    request = Request(("barrier", "bcast", "gather"), 64, 1 << 10)
    assert request.rows() == 1 + 5 + 5


def event(op: str, size: int, ours: float, mpi: float, bound: float = 1.0, np: int = 2) -> dict[str, Any]:
    return {
        "event": "row",
        "op": op,
        "bytes": size,
        "ours_us": ours,
        "mpi_us": mpi,
        "bound_us": bound,
        "path": "cico",
        "np": np,
        "flag_ns": 100.0,
    }


def test_medians_over_runs() -> None:
    runs = [[event("bcast", 64, 1, 2)], [event("bcast", 64, 9, 3)], [event("bcast", 64, 2, 8)]]
    (row,) = figures.results_of(runs)
    assert (row["ours_us"], row["mpi_us"]) == (2, 3)
    assert row["ratio"] == 0.5  # the median of 0.5, 3 and 0.25, not the medians' ratio


def test_geometric_means_by_operation_and_size() -> None:
    results = figures.results_of([[event("bcast", 64, 1, 2), event("bcast", 1 << 20, 2, 1), event("gather", 64, 1, 4)]])
    assert figures.geomeans(results) == pytest.approx({"bcast": 1.0, "gather": 0.25})
    assert figures.geomeans(results, 64 << 10) == pytest.approx({"bcast": 0.5, "gather": 0.25})
    assert math.isnan(figures.geomean([]))


def test_a_size_is_lost_only_when_all_runs_lose_it() -> None:
    runs = [
        [event("bcast", 64, 1.2, 1), event("bcast", 128, 1.2, 1)],
        [event("bcast", 64, 1.15, 1), event("bcast", 128, 1.0, 1)],
    ]
    results = figures.results_of(runs)
    assert [r["bytes"] for r in figures.lost_sizes(results, 1.1)] == [64]
    assert figures.lost_sizes(results, 1.2) == []


def test_zero_times_do_not_break_the_figures() -> None:
    (row,) = figures.results_of([[event("barrier", 0, 0.0, 0.0, 0.0)]])
    assert row["ratio"] == 1 and figures.geomeans([row]) == {"barrier": 1}


def test_latency_is_held_against_the_flag_of_the_same_run() -> None:
    def run(flag: float, bcast: float, copy: float, big: float) -> list[dict[str, Any]]:
        chains = [
            {"event": "chain", "op": op, "ns": [ns, 400, 110]}
            for op, ns in (("bcast", bcast), ("barrier", flag), ("allreduce", 2 * flag))
        ]
        long = [
            {"event": "long", "op": op, "bytes": 4 << 20, "us": [big, 900, 600], "plain_us": copy, "path": "slots"}
            for op in LONG
        ]
        return [{"event": "flag", "ns": flag}, *chains, *long]

    latency = figures.latency_of([run(100, 150, 900, 1000), run(200, 300, 450, 500), run(100, 900, 900, 900)])
    assert latency is not None
    assert [(row["op"], row["per_flag"]) for row in latency["chains"]] == [
        ("bcast", 1.5),
        ("barrier", 1.0),
        ("allreduce", 2.0),
    ]
    assert [row["per_plain"] for row in latency["long"]] == [pytest.approx(10 / 9)] * 2
    assert figures.latency_of([[event("bcast", 8, 1, 1)]]) is None


def test_other_output_is_not_taken_for_results() -> None:
    assert program.parse_event("Hello from rank 1\n") is None
    assert program.parse_event('{"event":"row","op":\n') is None
    assert program.parse_event('{"event":"done"}\n') == {"event": "done"}


def sample(np: Any = 2) -> dict[str, Any]:
    rows = [
        {
            "op": op,
            "bytes": 1 << k,
            "ours_us": 1.0,
            "mpi_us": 2.0,
            "ratio": 0.5 + k / 100,
            "bound_us": 0.5,
            "path": "cico",
        }
        for op in ("bcast", "gatherv")
        for k in range(6, 21)
    ]
    if isinstance(np, list):
        rows = [{**r, "np": n} for n in np for r in rows]
    return {
        "mpi_title": "Open MPI 5",
        "np": np,
        "method": "imb",
        "machine": "2 CPUs",
        "root_shift": 1,
        "spread": 0.5,
        "runs": 3,
        "command": "stretto bench --op all",
        "results": rows,
    }


def flags(*ns: float, np: Any = 2) -> dict[str, Any]:
    return {"flag_ns": list(ns), "np": np, "machine_details": {"cpus_usable": 2}}


def test_flags_that_took_long_are_explained() -> None:
    assert (
        tables.flags_text(flags(60, 80)) is None
        and tables.flags_text(flags(60, 900, np=4)) is None
        and tables.flags_text(flags(60, 900, np=[2, 4])) is None
    )
    assert "nearer to each other" in (tables.flags_text(flags(60, 250)) or "")
    busy = tables.flags_text(flags(61, 7830)) or ""
    assert "61 to 7830 ns: the machine was busy" in busy and "nearer" not in busy


@pytest.mark.parametrize(("op", "shown"), [("scatterv", True), ("bcast", False)])
def test_published_figures_stand_only_where_there_are_some(
    op: str, shown: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "out", Console(width=160))
    tables.show_summary(
        {
            **flags(60, 80),
            "geomean": {op: 0.5},
            "geomean_to_64k": {op: 0.4},
            "lost_above": 1.1,
            "bound_ratio_max": {op: 1.0},
            "lost": [],
            "runs": 1,
        }
    )
    said = capsys.readouterr().out
    assert ("published" in said) == shown == ("against Open MPI 4.1.2" in said)


@pytest.mark.parametrize("np", [2, [4, 8, 16]])
def test_plot_is_written(np: Any, tmp_path: Path) -> None:
    for name in ("ratio.png", "ratio.svg"):
        plots.plot_ratios(sample(np), tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000


def test_no_two_operations_look_the_same() -> None:
    looks = [style(i) for i in range(len(OPS))]
    for both in (("color", "marker"), ("color", "linestyle")):
        assert len({tuple(each[key] for key in both) for each in looks}) == len(looks)


def test_a_long_legend_lies_beside_the_curves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places = []
    monkeypatch.setattr(
        plots,
        "save",
        lambda figure, path: places.append(
            [
                figure.axes[-1].get_legend().get_window_extent().x0,
                figure.axes[-1].bbox.x1,
                figure.bbox.x1,
                figure.axes[-1].get_legend().get_window_extent().x1,
            ]
        ),
    )
    rows = [{**row, "op": op} for op in OPS for row in sample()["results"][:15]]
    plots.plot_ratios({**sample(), "results": rows}, tmp_path / "x.png")
    ((legend, axes, figure, end),) = places
    assert axes <= legend < end <= figure


@pytest.mark.parametrize("width", [60, 80, 160])
def test_tables_cut_neither_names_nor_numbers(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "out", Console(width=width))
    ops = ("reduce_scatter", "reduce_scatter_block", "scatterv")
    results = figures.results_of([[event(op, 64, 12345.6, 23456.7, 10000.1) for op in ops]])
    latency = figures.latency_of(
        [
            [
                {"event": "flag", "ns": 7000},
                *({"event": "chain", "op": op, "ns": [12345] * 3} for op in CHAINS),
                *(
                    {
                        "event": "long",
                        "op": op,
                        "bytes": 4 << 20,
                        "us": [12345.6] * 3,
                        "plain_us": 12345.6,
                        "path": "slots",
                    }
                    for op in LONG
                ),
            ]
        ]
    )
    means = figures.geomeans(results)
    tables.show(
        {
            **flags(60, 80),
            "mpi_title": "Open MPI 5",
            "method": "imb",
            "results": results,
            "lost": [],
            "lost_above": 1.1,
            "runs": 1,
            "geomean": means,
            "geomean_to_64k": means,
            "bound_ratio_max": {op: 1.2 for op in ops},
            "latency": latency,
        }
    )
    said = capsys.readouterr().out
    assert "…" not in said and max(map(len, said.splitlines())) <= width
    assert (
        all(said.count(f"{op} ") == 2 for op in ops) and said.count("12345.6") >= 3 and ("path" in said) == (width > 60)
    )


def test_plot_draws_the_ratios_and_the_bound() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots()
    plots.draw_panel(axis, sample()["results"], "2 ranks")
    lines = {line.get_label(): list(line.get_ydata()) for line in axis.get_lines()}
    assert lines["gatherv"] == pytest.approx([0.5 + k / 100 for k in range(6, 21)])
    dotted = [list(line.get_ydata()) for line in axis.get_lines() if line.get_linestyle() == ":"]
    assert dotted == [pytest.approx([0.25] * 15)] * 2
    assert axis.get_xscale() == "log"
    plt.close(figure)
