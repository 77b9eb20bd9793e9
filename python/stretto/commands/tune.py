# SPDX-License-Identifier: BSD-3-Clause
"""tune: measures where the model is uncertain, and writes the choices into the profile and as
rules."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from stretto.cluster.registry import ClusterError
from stretto.cluster.target import Target, choose_target, plain_errors
from stretto.commands import job_tune
from stretto.commands.model_options import JsonFile, Levels, numbers, own_profile_file, write_text
from stretto.commands.options import ClusterName, MpiName, RankMap
from stretto.core import arguments, machine, output_files
from stretto.core.console import err, fail, note, out
from stretto.core.parts import commands_of
from stretto.core.paths import own_profile
from stretto.core.reports import write_json
from stretto.core.units import format_size, format_time
from stretto.model import exercises, profile_file, tuning, tuning_report
from stretto.model.profile import Profile
from stretto.mpi import Mpi
from stretto.mpi.launching import JobFailed, JobHangs
from stretto.rules import measurements, stretto_rules

parts = typer.Typer(rich_markup_mode="rich")
parts.command("job")(job_tune.command)
PARTS = {f"--{name}": command for name, command in commands_of(parts).items()}

Op = Annotated[
    Optional[list[str]],
    typer.Option(
        "--op",
        metavar="LIST",
        help="Only these collectives, with commas. Default: " + ", ".join(tuning.OPS) + ".",
        show_default=False,
    ),
]
Ranks = Annotated[
    Optional[str],
    typer.Option(
        "--ranks",
        "-n",
        metavar="LIST",
        help="As [b]2[/], [b]2,4[/] or [b]2:8[/]. Default: 2, or as many as the cluster was made for.",
        show_default=False,
    ),
]
Sizes = Annotated[str, typer.Option("--sizes", "-b", "--bytes", metavar="LIST", help="Bytes, likewise, with K, M, G.")]
ProfileOption = Annotated[
    Optional[Path],
    typer.Option(
        "--profile",
        metavar="FILE",
        help="Parameters of the machine, and where the choices go. Default: this "
        "machine's own (or the cluster's); made from an example if there is none yet.",
        show_default=False,
    ),
]
Error = Annotated[
    Optional[float],
    typer.Option(
        "--error",
        metavar="N",
        min=0.0,
        help="What the model may be off by, 0.3 for 30%. Default: what it was off by when measured.",
        show_default=False,
    ),
]
Most = Annotated[int, typer.Option("--most", metavar="N", min=2, help="Candidates measured of one call.")]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Timed runs of each.")]
Again = Annotated[bool, typer.Option("--again", help="Forget what was measured before.")]
Judge = Annotated[
    bool,
    typer.Option(
        "--judge",
        help="Measure everything once more that has been measured here, change nothing, and say what the "
        "choices take "
        "by these new times.",
    ),
]

ByJob = Annotated[
    bool, typer.Option("--job", help="By a recorded job instead, without measuring: [b]stretto tune --job --help[/].")
]


def command(
    op: Op = None,
    ranks: Ranks = None,
    sizes: Sizes = "8,64,512,4K,32K,256K,1M",
    mpi: MpiName = None,
    cluster: ClusterName = None,
    rank_map: RankMap = "slot",
    profile: ProfileOption = None,
    levels: Levels = None,
    error: Error = None,
    most: Most = 8,
    repeat: Repeat = 20,
    again: Again = False,
    judge: Judge = False,
    job: ByJob = False,  # a command of its own stands in for this one: core/parts.py
    json_file: JsonFile = None,
) -> None:
    """Measure where the model is uncertain, and write the choices into the profile and as rules, \
by which the library goes from then on. May be
    stopped, and run again to go on."""
    ops = arguments.checked_ops(op or [], tuning.OPS)
    lengths = sorted({-(-size // stretto_rules.UNIT) * stretto_rules.UNIT for size in numbers(sizes, "--sizes", 1)})
    wanted = numbers(ranks, "--ranks", 2) if ranks else []
    arguments.check_crowd(max(wanted, default=2))
    path = profile or own_profile_file(cluster)
    for file in () if judge else (path, path.with_name(path.name + tuning.NEW)):
        output_files.writable(file)
    costs = profile_file.load(path if path.exists() else profile_file.EXAMPLE)
    target = choose_target(mpi, cluster, rank_map, levels)
    counts = wanted or [target.cluster.plan.ranks if target.cluster else 2]
    found = target.mpi
    rules_file = stretto_rules.rules_file(path, own_profile(), found.abi)
    output_files.writable(None if judge else rules_file)
    check_profile(costs, path, found)
    machine.warn_if_busy()
    if again:
        costs.measured.clear()
    if judge:
        with plain_errors():
            return show_verdict(
                tuning_report.verdict(
                    costs.measured,
                    target.place,
                    tuning.measurer(target, exercises.program(found), -(-repeat // tuning.TURNS)),
                ),
                found,
                json_file,
            )
    with plain_errors():
        calls = tuning.calls_of(costs, target, ops or tuning.OPS, counts, lengths)
    decide(costs, calls, target, path, repeat, error, most)
    tuning.save(costs, path)
    write_text(rules_file, stretto_rules.text(costs.measured, f"by stretto tune, {target.name}"))
    report = {**tuning_report.summary(costs, calls), "profile": str(path), "rules": str(rules_file)}
    write_json(json_file, "tune", report)
    if json_file is None or str(json_file) != "-":
        print_summary(report, found)
        note(f"written to {path} and {rules_file}")


def check_profile(costs: Profile, path: Path, found: Mpi) -> None:
    """Fails if the profile is of another MPI. A profile that does not exist yet becomes this MPI's."""
    if not path.exists():
        note(
            f"there is no {path} yet: an example's parameters order the candidates. "
            "`stretto model measure` measures this machine"
        )
        costs.about["mpi"] = found.title
    if costs.about.get("mpi") != found.title:
        fail(f"{path} is of {costs.about.get('mpi', 'no MPI')}, not of {found.title}: see --mpi and --profile")


def decide(
    costs: Profile,
    calls: Sequence[tuning.Call],
    target: Target,
    path: Path,
    repeat: int,
    error: float | None,
    most: int,
) -> None:
    """Measures until all calls are decided, with a bar on a terminal."""
    measure = tuning.measurer(target, exercises.program(target.mpi), repeat)

    def keep(profile: Profile) -> None:
        tuning.save(profile, path)
        if not err.is_terminal:  # a log has no bar
            note(tuning_report.told(profile.measured[-1]))

    columns = (
        TextColumn(f"tuning {target.name}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("calls decided, {task.fields[made]} measured"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=len(calls), made=0)

        def said(decided: int, made: int) -> None:
            bar.update(task, completed=decided, made=made)

        try:
            tuning.tune(costs, calls, measure, keep, said, error, most)
            bar.update(task, description="once more, in turn:")
            if not err.is_terminal:
                note("measuring the fastest candidates once more, in turn")
            tuning.confirm(costs, calls, measure, lambda profile: tuning.save(profile, path))
        except KeyboardInterrupt:
            bar.stop()
            note(f"stopped; {path} has what was measured so far, and the same command goes on from there")
            raise typer.Exit(130) from None
        except (JobFailed, JobHangs, ClusterError) as failure:
            bar.stop()
            fail(str(failure), 1)


def print_summary(report: dict[str, Any], mpi: Mpi) -> None:
    table = Table(box=None, pad_edge=False)
    for name, justify in (
        ("collective", "left"),
        ("ranks", "right"),
        ("bytes", "right"),
        ("choice", "left"),
        ("measured", "right"),
        ("built in", "right"),
        (f"{mpi.title}'s own", "right"),
        ("best schedule", "left"),
        ("measured", "right"),
        ("tried", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for r in report["rows"]:
        times = [format_time(r[name]) if r[name] else "-" for name in (measurements.BUILT_IN, measurements.HOST)]
        table.add_row(
            r["op"],
            str(r["ranks"]),
            format_size(r["bytes"]),
            r["choice"],
            format_time(r["measured"]),
            *times,
            r["schedule"],
            format_time(r["schedule_measured"]),
            f"{r['tried']} of {r['candidates']}",
        )
    out.print(table)
    if report["rows"]:
        out.print(
            f"the schedules that the model likes best take {report['model_mean']:.2f} of the best measured one in "
            f"the mean, {report['model_worst']:.2f} at "
            f"worst; its error: {report['error']:.0%}"
        )


def show_verdict(rows: list[dict[str, Any]], mpi: Mpi, json_file: Path | None) -> None:
    if not rows:
        fail("there is nothing to judge: run `stretto tune` first")
    report = {
        "rows": rows,
        **{
            f"{name}_{of}": f(r[of] for r in rows)
            for of in ("of_best", "of_mpi")
            for name, f in (("mean", statistics.fmean), ("worst", max))
        },
    }
    write_json(json_file, "tune.judge", report)
    if json_file and str(json_file) == "-":
        return
    table = Table(box=None, pad_edge=False)
    for name in (
        "collective",
        "ranks",
        "bytes",
        "choice",
        "measured again",
        "of the best",
        f"of {mpi.title}'s own",
        "of candidates",
    ):
        table.add_column(name, justify="left" if name in ("collective", "choice") else "right")
    for r in rows:
        table.add_row(
            r["op"],
            str(r["ranks"]),
            format_size(r["bytes"]),
            r["choice"],
            format_time(r["measured"]),
            f"{r['of_best']:.2f}",
            f"{r['of_mpi']:.2f}",
            str(r["candidates"]),
        )
    out.print(table)
    out.print(
        f"the choices take {report['mean_of_best']:.3f} of the best in the mean, {report['worst_of_best']:.2f} at "
        "worst; of the MPI's own "
        f"{report['mean_of_mpi']:.2f} and {report['worst_of_mpi']:.2f}"
    )
