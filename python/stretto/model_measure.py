# SPDX-License-Identifier: BSD-3-Clause
"""The model's two commands that need an MPI: measure its parameters, compare what it predicts with what happens."""
from __future__ import annotations

import datetime
import json as jsons
import shlex
import statistics
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto import build, fit, job, launch, machine, model, profile as profiles
from stretto.bench import print_size
from stretto.console import fail, note, out, working, write_json
from stretto.mpi import Mpi, usable_cores

MpiName = Annotated[Optional[str], typer.Option("--mpi", metavar="MPI", help="Default: the MPI in PATH. " + launch.MPI_HELP)]
SKIP_CXX = ("-std=c++20", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX")


def program(mpi: Mpi) -> Path:
    with working("building the measuring program"):
        core = build.ensure_built("release", ["stretto_core"]) / "libstretto_core.a"
        return build.compile_program(mpi, ["bench/schedules.cpp", core], "schedules", "c++", (*SKIP_CXX, "-I", str(build.root() / "src")))


def rows_of(mpi: Mpi, ranks: int, line: list[str | Path], timeout: float) -> list[dict[str, Any]]:
    command = mpi.command(ranks, line, {})
    done = job.capture(mpi, command, timeout=timeout)
    rows = [jsons.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
    if done.returncode or not rows:
        fail(f"$ {shlex.join(map(str, command))}\n{(done.stderr or done.stdout).strip()[-3000:]}\nexit status {done.returncode}", 1)
    return rows


EXERCISES = ("oneway", "exchange", "roundtrip", "burst", "late", "combine", "local")


def numbers_of_bytes(most: int) -> list[int]:
    """8, and from 64 on two to each doubling."""
    return [8, *(n for i in range(40) for n in (64 << i, 96 << i) if n <= most)]


def exercises(mpi: Mpi, path: Path, peer: int, trials: int, sizes: list[int]) -> list[dict[str, Any]]:
    """Medians and spreads of every exercise, by length; a sender's own time goes by the name of send."""
    jobs = ["nothing:8", *(f"{name}:{bytes_}" for bytes_ in sizes for name in EXERCISES)]
    nothing, *found = rows_of(mpi, peer + 1, [path, "--pair", str(peer), str(trials), *jobs], timeout=600)

    def sample(row: dict[str, Any]) -> list[float]:
        return [row["time"], (row["high"] - row["low"]) / 2]
    rows = []
    for i, bytes_ in enumerate(sizes):
        own = dict(zip(EXERCISES, found[i * len(EXERCISES):]))
        rows.append({"bytes": bytes_, "nothing": sample(nothing), "send": [own["late"]["first"], 0.0], **{name: sample(row) for name, row in own.items()}})
    return rows


@model.app.command()
def measure(
    mpi: MpiName = None,
    level: Annotated[str, typer.Option("--level", metavar="NAME", help="What lies between the two ranks, as [b]node[/] or [b]top[/].")] = "node",
    peer: Annotated[int, typer.Option("--peer", metavar="N", min=1, help="The rank that rank 0 measures with; ranks up to it are started.")] = 1,
    trials: Annotated[int, typer.Option("--trials", metavar="N", min=5, help="Trials for each length.")] = 40,
    most: Annotated[int, typer.Option("--max", metavar="BYTES", min=4096, help="The longest message.")] = 4 << 20,
    update: Annotated[bool, typer.Option("--update", help="Keep the other levels of the profile that is there.")] = False,
    to: Annotated[Optional[Path], typer.Option("--profile", metavar="FILE", help="The profile to write; this machine's own by default.", show_default=False)] = None,
    json: model.Json = None,
) -> None:
    """Measure what messages and work cost here, and write a profile."""
    found = launch.choose(mpi)
    path = program(found)
    with working(f"measuring {found.title}"):
        rows = exercises(found, path, peer, trials, numbers_of_bytes(most))
    pieces = fit.path(level, rows)
    about = {"name": f"{found.title} on {machine.one_line()}", "machine": machine.one_line(), "mpi": found.title,
             "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "trials": trials}
    quality = fit.quality(rows, pieces)
    about |= {f"{level}_{name}": number for name, number in quality.items()}
    target = to or profiles.own_profile()
    result = profiles.Profile(about, pieces, fit.work(rows, fit.combining), fit.work(rows, fit.copying))
    if update and target.exists():
        result = merged(profiles.load(target), result, level)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(result.toml())
    except OSError as error:
        fail(f"cannot write {target}: {error.strerror}")
    write_json(json, {"level": level, "rows": rows, "pieces": pieces, "quality": quality})
    if json is None or str(json) != "-":
        out.print(piece_table(pieces))
        out.print(f"off by {quality['message_error']:.1%} (a message) and {quality['exchange_error']:.1%} (both ways at once) in the median; "
                  f"measured with a spread of {quality['spread']:.1%}", markup=False)
        note(f"written to {target}")


def merged(old: profiles.Profile, new: profiles.Profile, level: str) -> profiles.Profile:
    """The old profile with one level measured anew, "top" always last."""
    paths = sorted([p for p in old.paths if p["level"] != level] + new.paths, key=lambda p: p["level"] == "top")
    return profiles.Profile({**old.about, **new.about}, paths, new.reduce, new.copy, old.port, old.gap)


def piece_table(pieces: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("from", "L", "o_s", "o_r", "g", "h", "G per KiB", "O_s per KiB", "O_r per KiB", "H per KiB"):
        table.add_column(name, justify="right")
    for p in pieces:
        table.add_row(print_size(p["from_bytes"]), *(model.print_time(p[key]) for key in ("latency", "send_overhead", "receive_overhead", "gap", "handling")),
                      *(model.print_time(1024 * p[key]) for key in ("byte_gap", "send_byte", "receive_byte", "handling_byte")))
    return table


ROUND_TRIPS = (8, 4096, 65536)  # bytes, to tell whether the machine is as it was


# ---- compare -----------------------------------------------------------------------------------------------------------------

@model.app.command()
def compare(op: model.Op, algorithm: model.Algorithms, mpi: MpiName = None,
            ranks: Annotated[int, typer.Option("--ranks", "-n", metavar="N", min=1, help="Ranks.")] = 2, bytes: model.Bytes = "8:1M",
            profile: model.ProfileFile = None, k: model.K = None, segments: model.Segments = 1,
            repeat: Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Timed runs of each.")] = 40, json: model.Json = None) -> None:
    """Execute the schedules over the MPI's messages on this machine, and compare with the prediction."""
    if k == "best" or "hierarchy" in " ".join(algorithm):
        fail("compare: flat algorithms, and a number for --k")
    found = launch.choose(mpi)
    costs = profiles.load(profile)
    sizes = model.numbers(bytes, "--bytes")
    path = program(found)
    predictions = model.ask_json("predict", costs, model.shape(op, algorithm, [ranks], sizes, k=k, segments=segments))["predictions"]
    jobs = [f"{op}:{p['algorithm']}:{p['bytes']}:{k or 0}:{segments}" for p in predictions]
    with working(f"measuring {found.title}"):
        *rows, first, second, third = rows_of(found, ranks, [path, str(repeat), *jobs, *(f"roundtrip:{bytes_}" for bytes_ in ROUND_TRIPS)], timeout=600)
    drift = statistics.median(row["time"] / (2 * fit.one_way(fit.piece_at(costs.paths_of_level(costs.paths[0]["level"]), bytes_), bytes_))
                              for row, bytes_ in zip((first, second, third), ROUND_TRIPS))
    points = [{"algorithm": p["algorithm"], "ranks": ranks, "bytes": p["bytes"], "predicted": p["time"], "measured": r["time"], "low": r["low"], "high": r["high"],
               "error": p["time"] / r["time"] - 1} for p, r in zip(predictions, rows)]
    errors = sorted(abs(p["error"]) for p in points)
    summary = {"median": statistics.median(errors), "p90": errors[min(len(errors) - 1, int(0.9 * len(errors)))]}
    write_json(json, {"mpi": found.title, "machine": machine.one_line(), "profile": costs.about, "points": points, "drift": drift, **summary})
    if json and str(json) == "-":
        return
    model.say_profile(costs)
    out.print(comparison_table(op, points))
    out.print(f"off by {summary['median']:.0%} in the median, {summary['p90']:.0%} at the 90th percentile")
    if not 0.9 < drift < 1.1:
        out.print(f"round trips take {drift:.2f} of what they take by the profile: another day, or ranks that wait for a processor")
    if ranks > usable_cores():
        out.print(f"{ranks} ranks on {usable_cores()} processors: the model gives each a processor of its own, so these predictions are of another machine")


def comparison_table(op: str, points: list[dict[str, Any]]) -> Table:
    table = Table(title=op, title_justify="left", box=None, pad_edge=False)
    for name, justify in (("algorithm", "left"), ("ranks", "right"), ("bytes", "right"), ("measured", "right"), ("predicted", "right"), ("error", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for p in points:
        style = "green" if abs(p["error"]) <= 0.15 else "yellow" if abs(p["error"]) <= 0.4 else "red"
        table.add_row(p["algorithm"], str(p["ranks"]), print_size(p["bytes"]), model.print_time(p["measured"]), model.print_time(p["predicted"]),
                      f"[{style}]{p['error']:+.0%}[/]")
    return table
