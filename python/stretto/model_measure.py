# SPDX-License-Identifier: BSD-3-Clause
"""The model's two commands that need an MPI: measure its parameters, compare what it predicts with what happens."""

from __future__ import annotations

import datetime
import statistics
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto import arguments, build, choices, fit, machine, model, outputs, profile as profiles, site
from stretto.bench import parse_size, print_size, warn_if_busy
from stretto.console import fail, note, out, working, write_json
from stretto.mpi import Mpi, usable_cores
from stretto.site import MACHINE_LEVELS, Site

SKIP_CXX = ("-std=c++20", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX")


def program(mpi: Mpi) -> Path:
    with working("building the measuring program"):
        core = build.ensure_built("release", ["stretto_core"]) / "libstretto_core.a"
        return build.compile_program(
            mpi, ["bench/schedules.cpp", core], "schedules", "c++", (*SKIP_CXX, "-I", str(build.root() / "src"))
        )


LEAST_LONGEST, MOST_LONGEST = 4 << 10, 1 << 28  # bytes of the longest message
EXERCISES = ("oneway", "exchange", "roundtrip", "burst", "late", "combine", "local")
NETWORK_EXERCISES = ("oneway", "exchange", "roundtrip", "burst", "late", "sum", "local")


def numbers_of_bytes(most: int) -> list[int]:
    """8, and from 64 on two to each doubling."""
    return [8, *(n for i in range(40) for n in (64 << i, 96 << i) if n <= most)]


def exercises(
    where: Site, path: Path, level: str, ranks: int, peer: int, trials: int, sizes: list[int]
) -> list[dict[str, Any]]:
    """Medians and spreads of every exercise of rank 0 and its peer, by length; a sender's own time goes by the name of send."""
    far = level not in MACHINE_LEVELS
    names = NETWORK_EXERCISES if far else EXERCISES
    jobs = ["nothing:8", *(f"{name}:{bytes_}" for bytes_ in sizes for name in names)]
    options = [
        "--ranks",
        f"0,{peer}",
        *where.processors_of_a_pair(),
        *where.crowd(ranks),
        *(["--far", "1"] if far else []),
    ]
    nothing, *found = where.timed(ranks, path, options, trials, jobs, timeout=600)

    def sample(row: dict[str, Any]) -> list[float]:
        return [row["time"], (row["high"] - row["low"]) / 2]

    rows = []
    for i, bytes_ in enumerate(sizes):
        own = dict(zip(names, found[i * len(names) :]))
        rows.append(
            {
                "bytes": bytes_,
                "nothing": sample(nothing),
                "send": [own["late"]["first"], 0.0],
                **{name: sample(row) for name, row in own.items()},
            }
        )
    return rows


def peers_of(where: Site, ranks: int) -> dict[str, int]:
    """For every level, lowest first, the first rank that meets rank 0 on it and on no lower one."""
    domains = where.domains(ranks)
    meets = {
        rank: next(level for level, of_ranks in domains.items() if of_ranks[rank] == of_ranks[0])
        for rank in range(1, ranks)
    }
    return {level: next(rank for rank in meets if meets[rank] == level) for level in domains if level in meets.values()}


@model.app.command()
def measure(
    mpi: site.MpiName = None,
    cluster: site.ClusterName = None,
    level: Annotated[
        Optional[str],
        typer.Option(
            "--level",
            metavar="NAME",
            help="What lies between the two ranks, as [b]node[/] or [b]top[/]. Default: node; "
            "on a cluster all levels there are, one after the other.",
            show_default=False,
        ),
    ] = None,
    peer: Annotated[
        int,
        typer.Option(
            "--peer", metavar="N", min=1, help="The rank that rank 0 measures with; ranks up to it are started."
        ),
    ] = 1,
    trials: Annotated[int, typer.Option("--trials", metavar="N", min=5, help="Trials for each length.")] = 40,
    most: Annotated[
        Optional[str],
        typer.Option(
            "--max",
            metavar="SIZE",
            help="Bytes of the longest message, with K, M, G. Default: 4M, on a cluster 512K.",
            show_default=False,
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Keep the other levels of the profile that is there.")
    ] = False,
    to: Annotated[
        Optional[Path],
        typer.Option(
            "--profile",
            metavar="FILE",
            help="The profile to write; this machine's own by default, or the cluster's.",
            show_default=False,
            callback=outputs.writable,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Write the profile even if it cannot be right, as one that was measured on a busy machine."
        ),
    ] = False,
    json: model.Json = None,
) -> None:
    """Measure what messages and work cost here, and write a profile."""
    if level and level not in (*site.LEVELS, "top"):
        fail(f"--level: '{level}': one of {', '.join(site.LEVELS)}, top")
    longest = longest_message(most, bool(cluster))
    arguments.check_crowd(peer + 1)
    target = to or own_place(cluster)
    result = profiles.load(target) if update and target.exists() else None
    where = site.choose(mpi, cluster)
    ranks = where.cluster.plan.ranks if where.cluster else peer + 1
    sizes = numbers_of_bytes(longest)
    peers = peers_of(where, ranks) if where.cluster else {level or "node": peer}
    if where.cluster and level:
        if level not in peers:
            fail(f"--level: on this cluster {', '.join(peers)}")
        peers = {level: peers[level]}
    path = program(where.mpi)
    warn_if_busy()
    report = []
    for name, with_rank in peers.items():
        with working(f"measuring {where.name}, {name}"), site.plain_errors():
            rows = exercises(where, path, name, ranks, with_rank, trials, sizes)
        new = profile_of(where, name, rows, trials)
        result = merged(result, new, name) if result else new
        quality = {key: new.about[f"{name}_{key}"] for key in ("message_error", "exchange_error", "spread")}
        works = {"long copies": new.copy, "long sums": new.reduce}
        report.append(
            {
                "level": name,
                "rows": rows,
                "pieces": new.paths,
                "quality": quality,
                "doubts": [] if where.cluster or name not in MACHINE_LEVELS else fit.doubts(new.paths, quality, works),
            }
        )
    assert result
    if where.cluster:
        with working(f"measuring {where.name}, what ranks share"), site.plain_errors():
            share(where, path, ranks, result, {r["level"]: r["rows"] for r in report}, trials)
    write_json(json, "model.measure", {**(report[0] if len(report) == 1 else {}), "levels": report})
    if json is None or str(json) != "-":
        for each in report:
            show_level(each, len(report) > 1)
    if doubts := [doubt for each in report for doubt in each["doubts"]]:
        refuse(doubts, target, force)
    model.write_text(target, result.toml())
    note(f"written to {target}")


def longest_message(text: str | None, on_cluster: bool) -> int:
    if text is None:
        return 512 << 10 if on_cluster else 4 << 20
    try:
        most = parse_size(text)
    except ValueError as error:
        fail(f"--max: {error}")
    if not LEAST_LONGEST <= most <= MOST_LONGEST:
        fail(f"--max {text}: {print_size(LEAST_LONGEST)} to {print_size(MOST_LONGEST)}")
    if on_cluster and most < 2 * fit.LONG_BYTES:
        fail(f"--max: on a cluster at least {2 * fit.LONG_BYTES}: shorter messages do not feel its links")
    return most


def own_place(cluster: str | None) -> Path:
    """Where the profile goes that commands look for; the directory is made, since nobody has named it."""
    target = profiles.own_profile(cluster)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"cannot write {target}: {error.strerror}")
    outputs.writable(target)
    return target


def refuse(doubts: list[str], target: Path, force: bool) -> None:
    text = f"what was measured is not what messages and work take on a node: {'; '.join(doubts)}. Something else had the processors"
    if not force:
        fail(
            f"{text}. {target} was not written: measure again when the machine is quiet, or have it written nevertheless with --force",
            1,
        )
    note(f"{text}; written nevertheless (--force)")


def profile_of(where: Site, level: str, rows: list[dict[str, Any]], trials: int) -> profiles.Profile:
    about = {
        "name": f"{where.name}, {machine.one_line()}",
        "machine": machine.one_line(),
        "mpi": where.mpi.title,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "trials": trials,
    }
    far = level not in MACHINE_LEVELS
    port = fit.port(level, rows) if far else None  # that messages go through on their way; of the level below (share())
    pieces = fit.network_path(level, rows, port) if port else fit.path(level, rows)
    about |= {f"{level}_{name}": number for name, number in fit.quality(rows, pieces, port).items()}
    return profiles.Profile(
        about, pieces, fit.work(rows, fit.summing if far else fit.combining), fit.work(rows, fit.copying)
    )


def share(
    where: Site, path: Path, ranks: int, profile: profiles.Profile, rows: dict[str, list[dict[str, Any]]], trials: int
) -> None:
    """What the ranks of a cluster share: the links of nodes and of leaf switches, and this machine's processors."""
    below = {"leaf": "node", "switch2": "leaf" if "leaf" in rows else "node"}
    ports = {below[level]: fit.port(below[level], of_level) for level, of_level in rows.items() if level in below}
    profile.ports = [*(p for p in profile.ports if p["level"] not in ports), *ports.values()]
    profile.processors = where.shares(ranks)
    if where.is_crowded(ranks):
        profile.processors["turn"] = round(turn_of(where, path, ranks, profile, trials), 1)


CHAIN_BYTES = 8


def turn_of(where: Site, path: Path, ranks: int, profile: profiles.Profile, trials: int) -> float:
    """How much later a rank that waits sees its message where others wait on its processor: what each hop of chains through all ranks, down and up, takes
    longer than the other parameters say."""
    places = where.placement(ranks)
    ops = ("bcast", "reduce")
    predicted = sum(
        model.ask_json("predict", profile, [*model.shape(op, ["chain"], [ranks], [CHAIN_BYTES]), *places])[
            "predictions"
        ][0]["time"]
        for op in ops
    )
    jobs = [job_text(op, "chain", CHAIN_BYTES, 0, 1) for op in ops]
    measured = sum(
        row["time"] for row in where.timed(ranks, path, [*places, *where.crowd(ranks)], trials, jobs, timeout=600)
    )
    return max(0.0, (measured - predicted) / (len(ops) * (ranks - 1)))


def show_level(found: dict[str, Any], several: bool) -> None:
    table = piece_table(found["pieces"])
    table.title = found["level"] if several else None
    out.print(table)
    quality = found["quality"]
    out.print(
        f"off by {quality['message_error']:.1%} (a message) and {quality['exchange_error']:.1%} (both ways at once) in the median; "
        f"measured with a spread of {quality['spread']:.1%}",
        markup=False,
    )


def merged(old: profiles.Profile, new: profiles.Profile, level: str) -> profiles.Profile:
    """The old profile with one level measured anew, "top" always last."""
    paths = sorted([p for p in old.paths if p["level"] != level] + new.paths, key=lambda p: p["level"] == "top")
    lowest = (
        new if paths[0]["level"] == level else old
    )  # what works without a message is told best where messages disturb least
    return profiles.Profile(
        {**old.about, **new.about},
        paths,
        lowest.reduce,
        lowest.copy,
        old.ports,
        old.gap,
        processors=old.processors,
        port_rule=old.port_rule,
    )


def piece_table(pieces: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("from", "L", "o_s", "o_r", "g", "h", "G per KiB", "O_s per KiB", "O_r per KiB", "H per KiB"):
        table.add_column(name, justify="right")
    for p in pieces:
        table.add_row(
            print_size(p["from_bytes"]),
            *(model.print_time(p[key]) for key in ("latency", "send_overhead", "receive_overhead", "gap", "handling")),
            *(model.print_time(1024 * p[key]) for key in ("byte_gap", "send_byte", "receive_byte", "handling_byte")),
        )
    return table


ROUND_TRIPS = (8, 4096, 65536)  # bytes, to tell whether the machine is as it was


# ---- compare -----------------------------------------------------------------------------------------------------------------


@model.app.command()
def compare(
    op: model.Op,
    algorithm: model.Algorithms,
    mpi: site.MpiName = None,
    cluster: site.ClusterName = None,
    map: site.Map = "slot",
    ranks: Annotated[
        Optional[int],
        typer.Option(
            "--ranks",
            "-n",
            metavar="N",
            min=1,
            help="Ranks. Default: 2, or as many as the cluster was made for.",
            show_default=False,
        ),
    ] = None,
    bytes: model.Sizes = "8:1M",
    profile: model.ProfileFile = None,
    levels: model.Levels = None,
    k: model.K = None,
    segments: model.Segments = 1,
    repeat: Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Timed runs of each.")] = 40,
    json: model.Json = None,
) -> None:
    """Execute the schedules over the MPI's messages, here or on a cluster, and compare with the prediction."""
    if k == "best":
        fail("compare: a number for --k")
    algorithm = arguments.algorithm_names(op, algorithm)
    sizes = model.numbers(bytes, "--sizes")
    arguments.check_crowd(ranks or 2)
    costs = profiles.load(profile, cluster)
    where = site.choose(mpi, cluster, map, levels)
    number = ranks or (where.cluster.plan.ranks if where.cluster else 2)
    segments = model.checked_parameters(k, segments, [number], -(-min(sizes) // choices.UNIT), "double")
    path = program(where.mpi)
    warn_if_busy()
    with site.plain_errors():
        places = where.placement(number)
        predictions = model.ask_json(
            "predict", costs, [*model.shape(op, algorithm, [number], sizes, k=k, segments=segments), *places]
        )["predictions"]
        jobs = [job_text(op, p["algorithm"], p["bytes"], int(k or 0), segments) for p in predictions]
        with working(f"measuring {where.name}"):
            rows = where.timed(
                number,
                path,
                [*places, *where.crowd(number)],
                repeat,
                [*jobs, *(f"roundtrip:{bytes_}" for bytes_ in ROUND_TRIPS)],
                timeout=900,
            )
    points = [
        {
            "algorithm": p["name"],
            "ranks": number,
            "bytes": p["bytes"],
            "predicted": p["time"],
            "measured": r["time"],
            "low": r["low"],
            "high": r["high"],
            "error": p["time"] / r["time"] - 1,
        }
        for p, r in zip(predictions, rows)
    ]
    errors = sorted(abs(p["error"]) for p in points)
    summary = {"median": statistics.median(errors), "p90": errors[min(len(errors) - 1, int(0.9 * len(errors)))]}
    drift = None if where.cluster else drift_of(costs, rows[-len(ROUND_TRIPS) :])
    write_json(
        json,
        "model.compare",
        {
            "mpi": where.name,
            "machine": machine.one_line(),
            "profile": {**costs.about, **costs.origin},
            "points": points,
            "drift": drift,
            **summary,
        },
    )
    if json and str(json) == "-":
        return
    model.say_profile(costs)
    out.print(comparison_table(op, points))
    out.print(f"off by {summary['median']:.0%} in the median, {summary['p90']:.0%} at the 90th percentile")
    if drift and not 0.9 < drift < 1.1:
        out.print(
            f"round trips take {drift:.2f} of what they take by the profile: another day, or ranks that wait for a processor"
        )
    if where.is_crowded(number) and not costs.processors:
        out.print(
            f"{number} ranks on {usable_cores()} processors: the model gives each a processor of its own, so these predictions are of another machine"
        )


def job_text(op: str, algorithm: str, bytes_: int, k: int, segments: int) -> str:
    """A collective, as bench/schedules.cpp reads it."""
    return f"{op}:{algorithm.replace(':', '/').replace(' ', '+')}:{bytes_}:{k}:{segments}"


def drift_of(costs: profiles.Profile, trips: list[dict[str, Any]]) -> float:
    """What round trips within a node take against what they take by the profile."""
    pieces = costs.paths_of_level(costs.paths[0]["level"])
    return statistics.median(
        row["time"] / (2 * fit.one_way(fit.piece_at(pieces, bytes_), bytes_)) for row, bytes_ in zip(trips, ROUND_TRIPS)
    )


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
            print_size(p["bytes"]),
            model.print_time(p["measured"]),
            model.print_time(p["predicted"]),
            f"[{style}]{p['error']:+.0%}[/]",
        )
    return table
