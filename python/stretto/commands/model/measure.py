# SPDX-License-Identifier: BSD-3-Clause
"""model measure: what messages and work cost here, as a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto.cluster import levels
from stretto.cluster.target import choose_target, plain_errors
from stretto.commands.model_options import JsonFile, own_profile_file, write_text
from stretto.commands.options import ClusterName, MpiName
from stretto.core import arguments, machine, output_files
from stretto.core.console import fail, note, out, working
from stretto.core.reports import write_json
from stretto.core.units import format_size, format_time, parse_size
from stretto.model import exercises, fit, fit_quality, profile_file

LEAST_LONGEST, MOST_LONGEST = 4 << 10, 1 << 28  # bytes of the longest message


Level = Annotated[
    Optional[str],
    typer.Option(
        "--level",
        metavar="NAME",
        help="What lies between the two ranks, as [b]node[/] or [b]top[/]. Default: node; "
        "on a cluster all levels there are, one after the other.",
        show_default=False,
    ),
]
Peer = Annotated[
    int,
    typer.Option("--peer", metavar="N", min=1, help="The rank that rank 0 measures with; ranks up to it are started."),
]
Trials = Annotated[int, typer.Option("--trials", metavar="N", min=5, help="Trials for each length.")]
Most = Annotated[
    Optional[str],
    typer.Option(
        "--max",
        metavar="SIZE",
        help="Bytes of the longest message, with K, M, G. Default: 4M, on a cluster 512K.",
        show_default=False,
    ),
]
Update = Annotated[bool, typer.Option("--update", help="Keep the other levels of the profile that is there.")]
To = Annotated[
    Optional[Path],
    typer.Option(
        "--profile",
        metavar="FILE",
        help="The profile to write; this machine's own by default, or the cluster's.",
        show_default=False,
        callback=output_files.writable,
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Write the profile even if it cannot be right, as one that was measured on a busy machine."
    ),
]


def command(
    mpi: MpiName = None,
    cluster: ClusterName = None,
    level: Level = None,
    peer: Peer = 1,
    trials: Trials = 40,
    most: Most = None,
    update: Update = False,
    to: To = None,
    force: Force = False,
    json_file: JsonFile = None,
) -> None:
    """Measure what messages and work cost here, and write a profile."""
    if level and level not in (*levels.LEVELS, "top"):
        fail(f"--level: '{level}': one of {', '.join(levels.LEVELS)}, top")
    longest = longest_message(most, bool(cluster))
    arguments.check_crowd(peer + 1)
    file = to or own_profile_file(cluster)
    result = profile_file.load(file) if update and file.exists() else None
    target = choose_target(mpi, cluster)
    ranks = target.cluster.plan.ranks if target.cluster else peer + 1
    sizes = exercises.numbers_of_bytes(longest)
    peers = exercises.peers_of(target, ranks) if target.cluster else {level or "node": peer}
    if target.cluster and level:
        if level not in peers:
            fail(f"--level: on this cluster {', '.join(peers)}")
        peers = {level: peers[level]}
    path = exercises.program(target.mpi)
    machine.warn_if_busy()
    report = []
    for name, with_rank in peers.items():
        with working(f"measuring {target.name}, {name}"), plain_errors():
            rows = exercises.exercises(target, path, name, ranks, with_rank, trials, sizes)
        new = exercises.profile_of(target, name, rows, trials)
        result = exercises.merged(result, new, name) if result else new
        quality = {key: new.about[f"{name}_{key}"] for key in ("message_error", "exchange_error", "spread")}
        works = {"long copies": new.copy, "long sums": new.reduce}
        report.append(
            {
                "level": name,
                "rows": rows,
                "pieces": new.paths,
                "quality": quality,
                "doubts": []
                if target.cluster or name not in levels.MACHINE_LEVELS
                else fit_quality.doubts(new.paths, quality, works),
            }
        )
    assert result
    if target.cluster:
        with working(f"measuring {target.name}, what ranks share"), plain_errors():
            exercises.share(target, path, ranks, result, {r["level"]: r["rows"] for r in report}, trials)
    write_json(json_file, "model.measure", {**(report[0] if len(report) == 1 else {}), "levels": report})
    if json_file is None or str(json_file) != "-":
        for each in report:
            show_level(each, len(report) > 1)
    if doubts := [doubt for each in report for doubt in each["doubts"]]:
        refuse(doubts, file, force)
    write_text(file, result.toml())
    note(f"written to {file}")


def longest_message(text: str | None, on_cluster: bool) -> int:
    """Bytes of the longest message."""
    if text is None:
        return 512 << 10 if on_cluster else 4 << 20
    try:
        most = parse_size(text)
    except ValueError as error:
        fail(f"--max: {error}")
    if not LEAST_LONGEST <= most <= MOST_LONGEST:
        fail(f"--max {text}: {format_size(LEAST_LONGEST)} to {format_size(MOST_LONGEST)}")
    if on_cluster and most < 2 * fit.LONG_BYTES:
        fail(f"--max: on a cluster at least {2 * fit.LONG_BYTES}: shorter messages do not show the rates of its links")
    return most


def refuse(doubts: list[str], file: Path, force: bool) -> None:
    """Fails because the measurement is doubtful; with --force, prints a note."""
    text = (
        f"what was measured is not what messages and work take on a node: {'; '.join(doubts)}. "
        "Another program used the processors"
    )
    if not force:
        fail(f"{text}. {file} was not written: measure again when the machine is quiet, or write it with --force", 1)
    note(f"{text}; written because of --force")


def show_level(found: dict[str, Any], several: bool) -> None:
    table = piece_table(found["pieces"])
    table.title = found["level"] if several else None
    out.print(table)
    quality = found["quality"]
    out.print(
        f"off by {quality['message_error']:.1%} (a message) and {quality['exchange_error']:.1%} (both ways at "
        "once) in the median; "
        f"measured with a spread of {quality['spread']:.1%}",
        markup=False,
    )


def piece_table(pieces: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("from", "L", "o_s", "o_r", "g", "h", "G per KiB", "O_s per KiB", "O_r per KiB", "H per KiB"):
        table.add_column(name, justify="right")
    for p in pieces:
        table.add_row(
            format_size(p["from_bytes"]),
            *(format_time(p[key]) for key in ("latency", "send_overhead", "receive_overhead", "gap", "handling")),
            *(format_time(1024 * p[key]) for key in ("byte_gap", "send_byte", "receive_byte", "handling_byte")),
        )
    return table
