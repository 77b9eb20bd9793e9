# SPDX-License-Identifier: BSD-3-Clause
"""explain: which algorithm serves a call, how long each candidate takes, and why."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto.commands.model_options import (
    JsonFile,
    Levels,
    LogP,
    Op,
    Ordered,
    PerNode,
    ProfileFile,
    Root,
    Topology,
    load,
    numbers,
    only,
    place,
)
from stretto.core import arguments, early, positions
from stretto.core.console import fail, out
from stretto.core.reports import write_json
from stretto.core.units import format_time
from stretto.model import reasons, timer
from stretto.model import rules_file as own_rules
from stretto.model.profile import Profile
from stretto.model.text import call_text, format_parts, ranks_text, say_profile
from stretto.rules import foreign_rules, measurements, stretto_rules

SHOWN = 12


def command(
    op: Op,
    sizes: Annotated[
        str,
        typer.Option(
            "--sizes",
            "-b",
            "--bytes",
            metavar="N",
            help="Bytes of the vector, or of one rank's part; one number, with K, M, G.",
        ),
    ] = "8",
    ranks: Annotated[int, typer.Option("--ranks", "-n", metavar="N", min=1, help="Ranks.")] = 16,
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    topology: Topology = None,
    per_node: PerNode = 1,
    root: Root = 0,
    ordered: Ordered = False,
    every: Annotated[bool, typer.Option("--all", help="All candidates, not the first dozen.")] = False,
    rules_file: Annotated[
        Optional[Path],
        typer.Option(
            "--rules",
            metavar="FILE",
            help="What this file forces: rules for STRETTO_RULES, dynamic rules of Open MPI (classic or JSON), or a "
            "selection tree of MPICH.",
            show_default=False,
            callback=arguments.readable,
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """The candidates for a collective call with the times that the model gives them, \
what was measured, the choice, and the reason."""
    size = only(numbers(sizes, "--sizes"), "--sizes", "explain")
    if root >= ranks:
        fail(f"--root: there are ranks 0 to {ranks - 1}")
    costs = load(profile, logp)
    where = place(levels, topology, per_node)
    shape = ["--op", op, "--ranks", str(ranks), "--bytes", str(size), "--root", str(root)]
    call = timer.ask_json("explain", costs, [*shape, *(["--ordered"] if ordered else []), *where])["calls"][0]
    call["place"] = levels or ""
    candidates = measurements.corrected([] if ordered or topology else costs.measured, op, call)
    nodes = -(-ranks // per_node) if topology else stretto_rules.nodes_of(levels or "", ranks)
    order = forced_by(rules_file, op, ranks, nodes, size, ordered)
    if order and order.algorithm:
        line = timer.shape(
            op, [order.algorithm], [ranks], [size], root=root, k=str(order.k), segments=order.segments, ordered=ordered
        )
        candidates = with_forced(
            candidates, order, lambda: timer.ask_json("predict", costs, [*line, *where])["predictions"][0]
        )
    host, built_in = (measurements.time_of(name, costs.measured, op, call) for name in measurements.NO_CANDIDATES)
    in_memory = {
        name: time
        for name in (call["shared_memory"] if nodes == 1 else ())
        if (time := measurements.time_of(name, costs.measured, op, call)) is not None
    }
    value = os.environ.get("STRETTO_OVERLAP", "")
    soon = early.judge(op, size, ranks, nodes, value)
    report = {
        "profile": costs.origin,
        **call,
        "candidates": candidates,
        "mpi": host,
        "builtin": built_in,
        "shared_memory": in_memory,
        "forced": order and asdict(order),
        "overlap": asdict(soon),
    }
    write_json(json_file, "explain", report)
    if json_file and str(json_file) == "-":
        return
    if not candidates:
        fail(f"no algorithm serves {op} on {ranks_text(ranks)}")
    levels_text = f", levels {' < '.join(call['levels'])}" if len(call["levels"]) > 1 else ""
    out.print(f"[b]{call_text(op, size)}[/], {ranks_text(ranks)}{levels_text}")
    show_times(report, costs, every)
    say_choice(candidates, order, rules_file, costs.unit)
    out.print(f"  {reasons.as_asked_for(op, ranks, size, candidates[0])}", markup=False, style="dim")
    if host is not None and built_in is not None and order is None:
        served = reasons.served(candidates, built_in, host, in_memory)
        out.print(f"  programs that go by rules of this profile: {served}", markup=False)
    out.print(f"  {early.sentence(soon, value)}", markup=False)
    for sentence in reasons.advice(op, ranks, root, ordered, candidates[0]["algorithm"]):
        out.print(f"  {sentence}", markup=False)


def show_times(report: dict[str, Any], costs: Profile, every: bool) -> None:
    """Prints the times of the candidates, of the built-in choice and of the MPI's own collective."""
    candidates = report["candidates"]
    say_profile(costs)
    out.print(candidate_table(candidates if every else candidates[:SHOWN], costs.unit))
    if not every and len(candidates) > SHOWN:
        out.print(f"and {len(candidates) - SHOWN} slower ones (--all)", style="dim")
    times = {
        "what is built in": report["builtin"],
        f"{costs.about.get('mpi', 'the MPI')}'s own": report["mpi"],
        **report["shared_memory"],
    }
    for title, time in times.items():
        if time is not None:
            out.print(f"{title}: {format_time(time, costs.unit)} measured", markup=False)


def forced_by(
    rules_file: Path | None, op: str, ranks: int, nodes: int, bytes_: int, ordered: bool
) -> foreign_rules.Forced | None:
    """What a file of rules forces; None: no file, or nothing."""
    if rules_file is None:
        return None
    source = positions.read(rules_file)
    if own_rules.is_ours(source.text):
        return own_rules.forced(rules_file, source.text, op, ranks, nodes, bytes_)
    try:
        return foreign_rules.forced(source.text, op, ranks, bytes_, ordered)
    except ValueError as error:
        fail(source.says(error))


def with_forced(
    candidates: list[dict[str, Any]], order: foreign_rules.Forced, predict: Callable[[], dict[str, Any]]
) -> list[dict[str, Any]]:
    """The candidates, with the forced one first."""

    def fits(c: dict[str, Any]) -> bool:
        return bool(c["algorithm"] == order.algorithm and c["segments"] == order.segments and order.k in (0, c["k"]))

    chosen = next((c for c in candidates if fits(c)), None)
    if chosen is None:
        predicted = predict()
        chosen = {
            "name": predicted["name"],
            "algorithm": predicted["algorithm"],
            "k": order.k,
            "segments": order.segments,
            "time": predicted["time"],
            "critical": predicted["critical"],
            "measured": None,
            "expected": predicted["time"],
        }
    return [chosen, *(c for c in candidates if c is not chosen)]


def say_choice(
    candidates: list[dict[str, Any]], order: foreign_rules.Forced | None, rules_file: Path | None, unit: str
) -> None:
    """Prints the choice and its reasons."""
    best = candidates[0]
    if order and order.algorithm is None:
        out.print(f"\n{rules_file} asks for {order.says}, {order.instead}. By the profile:", markup=False)
    elif rules_file and order is None:
        out.print(f"\n{rules_file} says nothing of this call. By the profile:", markup=False)
    out.print(f"\nchoice: [b green]{best['name']}[/]")
    if order and order.algorithm:
        fastest = min(candidates, key=lambda c: c["expected"])
        out.print(f"  forced by {rules_file}: {order.says}", markup=False)
        if fastest is not best:
            out.print(
                f"  {reasons.compared(best['expected'], fastest['expected'], 'long')} as {fastest['name']}, the "
                "choice without it",
                markup=False,
            )
        return
    for sentence in reasons.reasons(candidates, unit):
        out.print(f"  {sentence}", markup=False)


def candidate_table(candidates: list[dict[str, Any]], unit: str) -> Table:
    table = Table(box=None, pad_edge=False)
    has_measured = any(c["measured"] is not None for c in candidates)
    columns = [
        ("candidate", "left"),
        ("predicted", "right"),
        *([("measured", "right")] if has_measured else []),
        ("of the best", "right"),
        ("messages in a row", "right"),
        ("goes into", "left"),
    ]
    for name, justify in columns:
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    best = min(c["expected"] for c in candidates)
    for i, each in enumerate(candidates):
        known = format_time(each["measured"], unit) if each["measured"] is not None else "-"
        table.add_row(
            each["name"],
            format_time(each["time"], unit),
            *([known] if has_measured else []),
            f"{each['expected'] / best:.2f}" if best else "-",
            str(each["critical"]["messages"]),
            format_parts(each["critical"]),
            style="bold" if i == 0 else None,
        )
    return table
