# SPDX-License-Identifier: BSD-3-Clause
"""model compare: predictions beside measurements."""

from __future__ import annotations

import statistics
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto.cluster.target import Target, choose_target, plain_errors
from stretto.commands.model_options import (
    Algorithms,
    JsonFile,
    K,
    Levels,
    Op,
    ProfileFile,
    Segments,
    Sizes,
    checked_parameters,
    numbers,
)
from stretto.commands.options import ClusterName, MpiName, RankMap
from stretto.core import arguments, machine
from stretto.core.console import fail, out, working
from stretto.core.reports import write_json
from stretto.core.units import format_size, format_time
from stretto.model import exercises, profile_file, timer
from stretto.model.profile import Profile
from stretto.model.text import say_profile
from stretto.mpi import usable_cores
from stretto.rules import stretto_rules


Ranks = Annotated[
    Optional[int],
    typer.Option(
        "--ranks",
        "-n",
        metavar="N",
        min=1,
        help="Ranks. Default: 2, or as many as the cluster was made for.",
        show_default=False,
    ),
]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Timed runs of each.")]


def command(
    op: Op,
    algorithm: Algorithms = None,
    mpi: MpiName = None,
    cluster: ClusterName = None,
    rank_map: RankMap = "slot",
    ranks: Ranks = None,
    sizes: Sizes = "8:1M",
    profile: ProfileFile = None,
    levels: Levels = None,
    k: K = None,
    segments: Segments = 1,
    repeat: Repeat = 40,
    json_file: JsonFile = None,
) -> None:
    """Execute the schedules over the MPI's messages, here or on a cluster, and compare with the prediction."""
    if k == "best":
        fail("compare: a number for --k")
    algorithm = arguments.algorithm_names(op, algorithm or ())
    lengths = numbers(sizes, "--sizes")
    arguments.check_crowd(ranks or 2)
    costs = profile_file.load(profile, cluster)
    target = choose_target(mpi, cluster, rank_map, levels)
    number = ranks or (target.cluster.plan.ranks if target.cluster else 2)
    segments = checked_parameters(k, segments, [number], -(-min(lengths) // stretto_rules.UNIT), "double")
    path = exercises.program(target.mpi)
    machine.warn_if_busy()
    with plain_errors():
        places = target.placement(number)
        predictions = timer.ask_json(
            "predict", costs, [*timer.shape(op, algorithm, [number], lengths, k=k, segments=segments), *places]
        )["predictions"]
        jobs = [exercises.job_text(op, p["algorithm"], p["bytes"], int(k or 0), segments) for p in predictions]
        with working(f"measuring {target.name}"):
            rows = target.timed(
                number,
                path,
                [*places, *target.crowd(number)],
                repeat,
                [*jobs, *(f"roundtrip:{bytes_}" for bytes_ in exercises.ROUND_TRIPS)],
                timeout=900,
            )
    points = [point(p, r, number) for p, r in zip(predictions, rows)]
    drift = None if target.cluster else exercises.drift_of(costs, rows[-len(exercises.ROUND_TRIPS) :])
    summary = summary_of(points)
    write_json(
        json_file,
        "model.compare",
        {
            "mpi": target.name,
            "machine": machine.one_line(),
            "profile": {**costs.about, **costs.origin},
            "points": points,
            "drift": drift,
            **summary,
        },
    )
    if json_file is None or str(json_file) != "-":
        show(op, costs, target, number, points, summary, drift)


def show(
    op: str,
    costs: Profile,
    target: Target,
    number: int,
    points: list[dict[str, Any]],
    summary: dict[str, Any],
    drift: float | None,
) -> None:
    say_profile(costs)
    out.print(comparison_table(op, points))
    out.print(f"off by {summary['median']:.0%} in the median, {summary['p90']:.0%} at the 90th percentile")
    if drift and not 0.9 < drift < 1.1:
        out.print(
            f"round trips take {drift:.2f} of what they take by the profile: another day, or ranks that wait for "
            "a processor"
        )
    if target.is_crowded(number) and not costs.processors:
        out.print(
            f"{number} ranks on {usable_cores()} processors: the model gives each a processor of its own, so "
            "these predictions are of another machine"
        )


def point(prediction: dict[str, Any], measured: dict[str, Any], ranks: int) -> dict[str, Any]:
    return {
        "algorithm": prediction["name"],
        "ranks": ranks,
        "bytes": prediction["bytes"],
        "predicted": prediction["time"],
        "measured": measured["time"],
        "low": measured["low"],
        "high": measured["high"],
        "error": prediction["time"] / measured["time"] - 1,
    }


def summary_of(points: list[dict[str, Any]]) -> dict[str, float]:
    """The median and the 90th percentile of the errors."""
    errors = sorted(abs(p["error"]) for p in points)
    return {"median": statistics.median(errors), "p90": errors[min(len(errors) - 1, int(0.9 * len(errors)))]}


def comparison_table(op: str, points: list[dict[str, Any]]) -> Table:
    table = Table(title=op, title_justify="left", box=None, pad_edge=False)
    for name, justify in (
        ("algorithm", "left"),
        ("ranks", "right"),
        ("bytes", "right"),
        ("measured", "right"),
        ("predicted", "right"),
        ("error", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for p in points:
        style = "green" if abs(p["error"]) <= 0.15 else "yellow" if abs(p["error"]) <= 0.4 else "red"
        table.add_row(
            p["algorithm"],
            str(p["ranks"]),
            format_size(p["bytes"]),
            format_time(p["measured"]),
            format_time(p["predicted"]),
            f"[{style}]{p['error']:+.0%}[/]",
        )
    return table
