# SPDX-License-Identifier: BSD-3-Clause
"""tune: measures where the model cannot tell which algorithm is fastest, and writes what it finds into the profile and as rules for the library.

Of each call are measured: the candidate that the model likes best, what the library does without rules, and the MPI's own collective; then the next
candidate, as long as it could be faster than the fastest of all these if the model were off by its usual error. What is measured corrects what is
expected of the rest (measured.py), so nothing is tried that cannot win. All go through the library, which a rule makes do it: what is measured is
what will run. All state is in the profile, which is whole after every measurement: to go on after a stop is to begin again.
"""

from __future__ import annotations

import itertools
import json as jsons
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from stretto import arguments, choices, job, launch, measured, model, model_measure, outputs, profile as profiles, site
from stretto.bench import print_size, warn_if_busy
from stretto.cluster.cluster import ClusterError
from stretto.console import err, fail, note, out, write_json
from stretto.mpi import Mpi
from stretto.profile import Profile
from stretto.site import Site

OPS = ("bcast", "reduce", "allreduce", "allgather")
USUAL_ERROR = 0.3  # of a prediction, until it is known better
ENOUGH = 16  # measurements to know it by
LEAST_ERROR, MOST_ERROR = 0.1, 1.0
NEW = ".new"  # behind the name of a profile that is being written
CLOSE, RIVALS = 1.3, 4  # times the fastest; of so close ones so many at most are measured again
TURNS, ROUNDS = site.TURNS, 4

Candidate = dict[str, Any]
Call = dict[str, Any]  # as stretto-model's explain reports it, and "op"
Job = tuple[Call, Candidate]
Measurer = Callable[[int, Sequence[Job]], Iterator[dict[str, float]]]  # ranks, jobs -> "time", "low" and "high" of each


def usual_error(rows: Sequence[dict[str, Any]]) -> float:
    """By how much predictions are off, a factor that all share apart: the 90th percentile."""
    ratios = [r["time"] / r["predicted"] for r in rows if r["predicted"] > 0]
    if len(ratios) < ENOUGH:
        return USUAL_ERROR
    middle = statistics.median(ratios)
    off = sorted(max(r / middle, middle / r) - 1 for r in ratios)
    return min(max(off[int(0.9 * (len(off) - 1))], LEAST_ERROR), MOST_ERROR)


def contenders(rows: Sequence[dict[str, Any]], call: Call, error: float, most: int) -> list[Candidate]:
    """What has not been measured and may be the fastest, the likeliest first. Candidates that the model gives the very same time are the
    same messages."""
    expected = measured.corrected(rows, call["op"], call)
    tried = [c for c in expected if c["measured"] is not None]
    distinct: list[Candidate] = []
    for each in expected:
        same = (abs(each["time"] - c["time"]) <= 1e-9 * c["time"] for c in [*tried, *distinct])
        if each["measured"] is None and not any(same):
            distinct.append(each)
    known = [
        *(c["measured"] for c in tried),
        *(t for name in measured.NO_CANDIDATES if (t := measured.time_of(name, rows, call["op"], call)) is not None),
    ]
    best = min(known, default=expected[0]["expected"] * (1 + error) if expected else 0.0)
    return [c for c in distinct if c["expected"] / (1 + error) < best][: max(0, most - len(tried))]


def next_candidate(rows: Sequence[dict[str, Any]], call: Call, error: float, most: int) -> Candidate | None:
    """What to measure next in this call; None: it is decided."""
    waiting = contenders(rows, call, error, most)
    if waiting and not any(r["bytes"] == call["bytes"] for r in measured.near(rows, call["op"], call)):
        return waiting[0]
    for name in (measured.BUILT_IN, measured.HOST) if call["op"] in OPS else ():
        if measured.time_of(name, rows, call["op"], call) is None:
            return {"algorithm": name, "k": 0, "segments": 1, "time": 0.0}
    return waiting[0] if waiting else None


def tune(
    profile: Profile,
    calls: Sequence[Call],
    measure: Measurer,
    keep: Callable[[Profile], None],
    said: Callable[[int, int], None],
    error: float | None = None,
    most: int = 8,
) -> None:
    """Decides all calls, in rounds of one candidate of each. `keep` is called with every measurement, `said` with the numbers of
    calls decided and of measurements."""
    made = 0
    while True:
        off = error if error is not None else usual_error(profile.measured)
        jobs = [(call, candidate) for call in calls if (candidate := next_candidate(profile.measured, call, off, most))]
        said(len(calls) - len(jobs), made)
        if not jobs:
            return
        for ranks in sorted({call["ranks"] for call, _ in jobs}):
            of_size = [j for j in jobs if j[0]["ranks"] == ranks]
            for row, (call, candidate) in zip(measure(ranks, of_size), of_size, strict=True):
                profile.measured.append(entry(call, candidate, row))
                keep(profile)
                made += 1
                said(len(calls) - len(jobs), made)


def confirm(profile: Profile, calls: Sequence[Call], measure: Measurer, keep: Callable[[Profile], None]) -> None:
    """What may be the fastest is measured again, several times in turn: the machine's speed drifts between the rounds of tune(), and of many candidates the
    luckiest one looks best. Who turns out to be slower makes room for others."""
    for _ in range(ROUNDS):
        waiting = [(call, rows) for call in calls if (rows := contested(profile.measured, call))]
        if not waiting:
            return
        for ranks in sorted({call["ranks"] for call, _ in waiting}):
            here = [rows for call, rows in waiting if call["ranks"] == ranks]
            times = in_turn(measure, ranks, here)
            for rows in here:
                settle(rows, times)
        keep(profile)


def in_turn(measure: Measurer, ranks: int, calls: Sequence[Sequence[dict[str, Any]]]) -> dict[int, list[float]]:
    """What the rows of each call take, by id(): TURNS times each, one row of every call in a run."""
    times: dict[int, list[float]] = {}
    for run in [*itertools.zip_longest(*calls)] * TURNS:
        asked = [row for row in run if row is not None]
        for row, found in zip(asked, measure(ranks, [(row, row) for row in asked]), strict=True):
            times.setdefault(id(row), []).append(found["time"])
    return times


def contested(rows: Sequence[dict[str, Any]], call: Call) -> list[dict[str, Any]]:
    """What was measured in this call and is close to the fastest, and what is built in; nothing, if that has been settled."""
    of_call = sorted(
        (r for r in measured.near(rows, call["op"], call) if r["bytes"] == call["bytes"]), key=lambda r: r["time"]
    )
    close = [r for r in of_call if r["time"] <= CLOSE * of_call[0]["time"]][:RIVALS]
    close += [r for r in of_call if r["algorithm"] == measured.BUILT_IN and r not in close]
    return close if len(close) > 1 and any(r["turns"] < TURNS for r in close) else []


def settle(rows: Sequence[dict[str, Any]], times: dict[int, list[float]]) -> None:
    """Times become medians over the turns, those of what is built in times what the two differ by. What was not faster than that in all turns but one, is not faster."""
    built_in = next((times[id(r)] for r in rows if r["algorithm"] == measured.BUILT_IN), None)
    for row in rows:
        own = times[id(row)]
        others = built_in or own
        ratios = sorted(time / other for time, other in zip(own, others, strict=True))
        middle = statistics.median(ratios)
        row["time"] = round(statistics.median(others) * (middle if ratios[-2] < 1 else max(1.0, middle)), 1)
        row["turns"] = TURNS


def entry(call: Call, candidate: Candidate, row: dict[str, float]) -> dict[str, Any]:
    return {
        "op": call["op"],
        "ranks": call["ranks"],
        "place": call["place"],
        "bytes": call["bytes"],
        "algorithm": candidate["algorithm"],
        "k": candidate["k"],
        "segments": candidate["segments"],
        "turns": 0,
        "time": round(row["time"], 1),
        "spread": round((row["high"] - row["low"]) / 2, 1),
        "predicted": round(candidate["time"], 1),
    }


def told(row: dict[str, Any]) -> str:
    """A measurement in words, for those who see no bar."""
    parameters = [f"{name}={row[name]}" for name, usual in (("k", 0), ("segments", 1)) if row[name] > usual]
    algorithm = " ".join([WORDS.get(row["algorithm"], row["algorithm"]), *parameters])
    return f"{row['op']}, {row['ranks']} ranks, {print_size(row['bytes'])} bytes, {algorithm}: {model.print_time(row['time'])}"


def save(profile: Profile, path: Path) -> None:
    """All or nothing: a reader never sees half a file, nor does the next run after a stop."""
    temporary = path.with_name(path.name + NEW)
    temporary.write_text(profile.toml())
    os.replace(temporary, path)


# ---- by an MPI ---------------------------------------------------------------------------------------------------------------


def measurer(where: Site, program: Path, repeat: int) -> Measurer:
    """Runs bench/schedules.cpp, whose results are taken as they come; the MPI's collectives that it calls are the library's, by rules."""
    library = launch.library_for(where.mpi.abi)

    def measure(ranks: int, jobs: Sequence[Job]) -> Iterator[dict[str, float]]:
        texts = [model_measure.job_text(call["op"], measured.HOST, call["bytes"], 0, 1) for call, _ in jobs]
        rules = where.directory / "tune.rules"
        rules.write_text(choices.forcing(jobs))
        env = launch.rank_environment(library, {**launch.SERVED_AT_ONCE, "STRETTO_RULES": str(rules)})
        argv = [program, *where.placement(ranks), *where.crowd(ranks), str(repeat), *texts]
        with closing(where.lines(ranks, argv, timeout=600, env=env)) as lines:
            for line in lines:
                if line.startswith("{"):
                    yield jsons.loads(line)

    return measure


def calls_of(
    profile: Profile, where: Site, ops: Sequence[str], ranks: Sequence[int], sizes: Sequence[int]
) -> list[Call]:
    def explained(op: str, number: int) -> list[Call]:
        return model.ask_json("explain", profile, [*model.shape(op, [], [number], sizes), *where.placement(number)])[
            "calls"
        ]

    return [
        {**call, "op": op, "place": where.place(number)}
        for op in ops
        for number in ranks
        for call in explained(op, number)
    ]


def command(
    op: Annotated[
        Optional[list[str]],
        typer.Option(
            "--op",
            metavar="LIST",
            help="Only these collectives, with commas. Default: " + ", ".join(OPS) + ".",
            show_default=False,
        ),
    ] = None,
    ranks: Annotated[
        Optional[str],
        typer.Option(
            "--ranks",
            "-n",
            metavar="LIST",
            help="As [b]2[/], [b]2,4[/] or [b]2:8[/]. Default: 2, or as many as the cluster was made for.",
            show_default=False,
        ),
    ] = None,
    bytes: Annotated[
        str, typer.Option("--sizes", "-b", "--bytes", metavar="LIST", help="Bytes, likewise, with K, M, G.")
    ] = "8,64,512,4K,32K,256K,1M",
    mpi: site.MpiName = None,
    cluster: site.ClusterName = None,
    map: site.Map = "slot",
    profile: Annotated[
        Optional[Path],
        typer.Option(
            "--profile",
            metavar="FILE",
            help="Parameters of the machine, and where the choices go. Default: this "
            "machine's own (or the cluster's); made from an example if there is none yet.",
            show_default=False,
        ),
    ] = None,
    levels: model.Levels = None,
    error: Annotated[
        Optional[float],
        typer.Option(
            "--error",
            metavar="N",
            min=0.0,
            help="What the model may be off by, 0.3 for 30%. Default: what it was off by when measured.",
            show_default=False,
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", metavar="N", min=2, help="Candidates measured of one call.")] = 8,
    repeat: Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Timed runs of each.")] = 20,
    again: Annotated[bool, typer.Option("--again", help="Forget what was measured before.")] = False,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Measure everything once more that has been measured here, change nothing, and say what the choices take "
            "by these new times.",
        ),
    ] = False,
    json: model.Json = None,
) -> None:
    """Measure where the model is uncertain, and write the choices into the profile and as rules, by which the library goes from then on. May be
    stopped, and run again to go on."""
    ops = arguments.checked_ops(op or [], OPS)
    sizes = sorted({-(-size // choices.UNIT) * choices.UNIT for size in model.numbers(bytes, "--sizes", 1)})
    wanted = model.numbers(ranks, "--ranks", 2) if ranks else []
    arguments.check_crowd(max(wanted, default=2))
    path = profile or model_measure.own_place(cluster)
    for file in () if judge else (path, path.with_name(path.name + NEW)):
        outputs.writable(file)
    costs = profiles.load(path if path.exists() else profiles.EXAMPLE)
    where = site.choose(mpi, cluster, map, levels)
    numbers = wanted or [where.cluster.plan.ranks if where.cluster else 2]
    found = where.mpi
    rules = choices.rules_file(path, profiles.own_profile(), found.abi)
    outputs.writable(None if judge else rules)
    if not path.exists():
        note(
            f"there is no {path} yet: an example's parameters put the candidates in order. `stretto model measure` measures this machine's"
        )
        costs.about["mpi"] = found.title
    if costs.about.get("mpi") != found.title:
        fail(f"{path} is of {costs.about.get('mpi', 'no MPI')}, not of {found.title}: see --mpi and --profile")
    warn_if_busy()
    if again:
        costs.measured.clear()
    if judge:
        with site.plain_errors():
            return show_verdict(
                verdict(
                    costs.measured, where.place, measurer(where, model_measure.program(found), -(-repeat // TURNS))
                ),
                found,
                json,
            )
    with site.plain_errors():
        calls = calls_of(costs, where, ops or OPS, numbers, sizes)
    program = model_measure.program(found)

    def keep(profile: Profile) -> None:
        save(profile, path)
        if not err.is_terminal:  # there is no bar
            note(told(profile.measured[-1]))

    bar = Progress(
        TextColumn(f"tuning {where.name}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("calls decided, {task.fields[made]} measured"),
        TimeElapsedColumn(),
        console=err,
        disable=not err.is_terminal,
    )
    with bar:
        task = bar.add_task("", total=len(calls), made=0)
        try:
            measure = measurer(where, program, repeat)
            tune(
                costs,
                calls,
                measure,
                keep,
                lambda decided, made: bar.update(task, completed=decided, made=made),
                error,
                most,
            )
            bar.update(task, description="once more, in turn:")
            if not err.is_terminal:
                note("what may be the fastest, once more in turn")
            confirm(costs, calls, measure, lambda p: save(p, path))
        except KeyboardInterrupt:
            bar.stop()
            note(f"stopped; {path} has what was measured so far, and the same command goes on from there")
            raise typer.Exit(130) from None
        except (job.JobFailed, job.JobHangs, ClusterError) as failure:
            bar.stop()
            fail(str(failure), 1)
    save(costs, path)
    model.write_text(rules, choices.text(costs.measured, f"by stretto tune, {where.name}"))
    report = {**summary(costs, calls), "profile": str(path), "rules": str(rules)}
    write_json(json, "tune", report)
    if json is None or str(json) != "-":
        print_summary(report, found)
        note(f"written to {path} and {rules}")


def summary(profile: Profile, calls: Sequence[Call]) -> dict[str, Any]:
    """Per call the choice, and what it takes against what is built in, the MPI's, and the model's own choice of a schedule."""
    rows = []
    for call in calls:
        tried = [c for c in measured.corrected(profile.measured, call["op"], call) if c["measured"] is not None]
        known = {name: measured.time_of(name, profile.measured, call["op"], call) for name in measured.NO_CANDIDATES}
        if not tried:
            continue
        found = {
            **{c["name"]: c["measured"] for c in reversed(tried)},
            **{WORDS[name]: time for name, time in known.items() if time is not None},
        }
        by_model = min(tried, key=lambda c: c["time"])
        choice = min(found, key=lambda name: found[name])
        rows.append(
            {
                "op": call["op"],
                "ranks": call["ranks"],
                "bytes": call["bytes"],
                "choice": choice,
                "measured": found[choice],
                "schedule": tried[0]["name"],
                "schedule_measured": tried[0]["measured"],
                "by_model": by_model["name"],
                "by_model_measured": by_model["measured"],
                "tried": len(tried),
                "candidates": len(call["candidates"]),
                **known,
            }
        )
    losses = [r["by_model_measured"] / r["schedule_measured"] for r in rows]
    return {
        "calls": len(calls),
        "error": usual_error(profile.measured),
        "rows": rows,
        "model_mean": sum(losses) / len(losses) if losses else None,
        "model_worst": max(losses, default=None),
    }


WORDS = {measured.BUILT_IN: "built in", measured.HOST: "the MPI's own"}


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
        times = [model.print_time(r[name]) if r[name] else "-" for name in (measured.BUILT_IN, measured.HOST)]
        table.add_row(
            r["op"],
            str(r["ranks"]),
            print_size(r["bytes"]),
            r["choice"],
            model.print_time(r["measured"]),
            *times,
            r["schedule"],
            model.print_time(r["schedule_measured"]),
            f"{r['tried']} of {r['candidates']}",
        )
    out.print(table)
    if report["rows"]:
        out.print(
            f"the schedules that the model likes best take {report['model_mean']:.2f} of the best measured one in the mean, {report['model_worst']:.2f} at "
            f"worst; its error: {report['error']:.0%}"
        )


# ---- judging -----------------------------------------------------------------------------------------------------------------


def verdict(rows: Sequence[dict[str, Any]], place: Callable[[int], str], measure: Measurer) -> list[dict[str, Any]]:
    """What the choices take by other measurements than those that they were made by, against the best and the MPI's own by these: medians of several
    runs of each, in turn."""
    calls: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["op"] in OPS and row["place"] == place(row["ranks"]):
            calls.setdefault((row["ranks"], row["op"], row["bytes"]), []).append(row)
    calls = {
        key: of_call
        for key, of_call in sorted(calls.items())
        if set(measured.NO_CANDIDATES) <= {r["algorithm"] for r in of_call}
    }
    anew: dict[int, float] = {}
    for ranks in sorted({key[0] for key in calls}):
        times = in_turn(measure, ranks, [of_call for key, of_call in calls.items() if key[0] == ranks])
        anew |= {row: statistics.median(of_row) for row, of_row in times.items()}
    result = []
    for (ranks, op, bytes_), of_call in calls.items():
        choice = choices.best(of_call)
        host = next(r for r in of_call if r["algorithm"] == measured.HOST)
        result.append(
            {
                "op": op,
                "ranks": ranks,
                "bytes": bytes_,
                "choice": choices.server(choice, choices.whole_bytes(op, ranks, bytes_)),
                "measured": anew[id(choice)],
                "of_best": anew[id(choice)] / min(anew[id(r)] for r in of_call),
                "of_mpi": anew[id(choice)] / anew[id(host)],
                "candidates": len(of_call),
            }
        )
    return result


def show_verdict(rows: list[dict[str, Any]], mpi: Mpi, json: Path | None) -> None:
    if not rows:
        fail("nothing has been measured here that could be judged: first `stretto tune`")
    report = {
        "rows": rows,
        **{
            f"{name}_{of}": f(r[of] for r in rows)
            for of in ("of_best", "of_mpi")
            for name, f in (("mean", statistics.fmean), ("worst", max))
        },
    }
    write_json(json, "tune.judge", report)
    if json and str(json) == "-":
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
            print_size(r["bytes"]),
            r["choice"],
            model.print_time(r["measured"]),
            f"{r['of_best']:.2f}",
            f"{r['of_mpi']:.2f}",
            str(r["candidates"]),
        )
    out.print(table)
    out.print(
        f"the choices take {report['mean_of_best']:.3f} of the best in the mean, {report['worst_of_best']:.2f} at worst; of the MPI's own "
        f"{report['mean_of_mpi']:.2f} and {report['worst_of_mpi']:.2f}"
    )
