# SPDX-License-Identifier: BSD-3-Clause
"""explain: which algorithm for a call, how long each would take, and why."""

from __future__ import annotations

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
from stretto.core import arguments, positions
from stretto.core.console import fail, out
from stretto.core.reports import write_json
from stretto.core.units import format_time
from stretto.model import timer
from stretto.model.text import PARTS, call_text, format_parts, ranks_text, say_profile
from stretto.rules import foreign_rules, measurements, stretto_rules

SHOWN = 12


def command(
    op: Op,
    bytes: Annotated[
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
    rules: Annotated[
        Optional[Path],
        typer.Option(
            "--rules",
            metavar="FILE",
            help="What this file forces: dynamic rules of Open MPI (classic or JSON), or a selection tree of MPICH.",
            show_default=False,
            callback=arguments.readable,
        ),
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """The candidates for a collective call with the times that the model gives them, what was measured, the choice, and the reason."""
    sizes = numbers(bytes, "--sizes")
    only(sizes, "--sizes", "explain")
    if root >= ranks:
        fail(f"--root: there are ranks 0 to {ranks - 1}")
    costs = load(profile, logp)
    line = [
        "--op",
        op,
        "--ranks",
        str(ranks),
        "--bytes",
        str(sizes[0]),
        "--root",
        str(root),
        *(["--ordered"] if ordered else []),
    ]
    where = place(levels, topology, per_node)
    report = timer.ask_json("explain", costs, [*line, *where])["calls"][0]
    report["place"] = levels or ""
    candidates = measurements.corrected([] if ordered or topology else costs.measured, op, report)
    order = forced_by(rules, op, ranks, sizes[0], ordered)
    if order and order.algorithm:
        candidates = with_forced(
            candidates,
            order,
            lambda: timer.ask_json(
                "predict",
                costs,
                [
                    *timer.shape(
                        op,
                        [order.algorithm or ""],
                        [ranks],
                        sizes,
                        root=root,
                        k=str(order.k),
                        segments=order.segments,
                        ordered=ordered,
                    ),
                    *where,
                ],
            )["predictions"][0],
        )
    host, built_in = (measurements.time_of(name, costs.measured, op, report) for name in measurements.NO_CANDIDATES)
    write_json(
        json_file,
        "explain",
        {
            "profile": costs.origin,
            **report,
            "candidates": candidates,
            "mpi": host,
            "builtin": built_in,
            "forced": order and asdict(order),
        },
    )
    if json_file and str(json_file) == "-":
        return
    if not candidates:
        fail(f"no algorithm serves {op} on {ranks_text(ranks)}")
    levels_text = f", levels {' < '.join(report['levels'])}" if len(report["levels"]) > 1 else ""
    out.print(f"[b]{call_text(op, sizes[0])}[/], {ranks_text(ranks)}{levels_text}")
    say_profile(costs)
    out.print(candidate_table(candidates if every else candidates[:SHOWN], costs.unit))
    if not every and len(candidates) > SHOWN:
        out.print(f"and {len(candidates) - SHOWN} slower ones (--all)", style="dim")
    if built_in is not None:
        out.print(f"what is built in: {format_time(built_in, costs.unit)} measured", markup=False)
    if host is not None:
        out.print(f"{costs.about.get('mpi', 'the MPI')}'s own: {format_time(host, costs.unit)} measured", markup=False)
    say_choice(candidates, order, rules, costs.unit)
    out.print(f"  {as_asked_for(op, ranks, sizes[0], candidates[0])}", markup=False, style="dim")
    if host is not None and built_in is not None and order is None:
        out.print(f"  programs that go by rules of this profile: {served(candidates, built_in, host)}", markup=False)
    for sentence in advice(op, ranks, root, ordered, candidates[0]["algorithm"]):
        out.print(f"  {sentence}", markup=False)


def forced_by(rules: Path | None, op: str, ranks: int, bytes_: int, ordered: bool) -> foreign_rules.Forced | None:
    if rules is None:
        return None
    source = positions.read(rules)
    try:
        return foreign_rules.forced(source.text, op, ranks, bytes_, ordered)
    except ValueError as error:
        fail(source.says(error))


def with_forced(
    candidates: list[dict[str, Any]], order: foreign_rules.Forced, predict: Callable[[], dict[str, Any]]
) -> list[dict[str, Any]]:
    """The forced candidate first."""

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
    candidates: list[dict[str, Any]], order: foreign_rules.Forced | None, rules: Path | None, unit: str
) -> None:
    best = candidates[0]
    if order and order.algorithm is None:
        out.print(
            f"\n{rules} asks for {order.says}, which is none of ours: the MPI itself would serve this call. By the profile:",
            markup=False,
        )
    elif rules and order is None:
        out.print(f"\n{rules} says nothing of this call. By the profile:", markup=False)
    out.print(f"\nchoice: [b green]{best['name']}[/]")
    if order and order.algorithm:
        fastest = min(candidates, key=lambda c: c["expected"])
        out.print(f"  forced by {rules}: {order.says}", markup=False)
        if fastest is not best:
            out.print(
                f"  {compared(best['expected'], fastest['expected'], 'long')} as {fastest['name']}, the choice without it",
                markup=False,
            )
        return
    for sentence in reasons(candidates, unit):
        out.print(f"  {sentence}", markup=False)


def served(candidates: list[dict[str, Any]], built_in: float, host: float) -> str:
    """What rules say, which follow from measurements alone (choices.py)."""
    best = min((c for c in candidates if c["measured"] is not None), key=lambda c: c["measured"], default=None)
    if best and best["measured"] < min(built_in, host):
        return f"by {best['name']}"
    return "as is built in" if built_in <= host else "by the MPI itself"


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


def reasons(candidates: list[dict[str, Any]], unit: str) -> list[str]:
    """Against the best candidate of another algorithm: which parts of the time it saves."""
    best = candidates[0]
    others = [c for c in candidates if c["algorithm"] != best["algorithm"]]
    if not others:
        return ["no other algorithm serves this call"]
    by_model = min(candidates, key=lambda c: c["time"])
    if best["measured"] is not None or by_model["expected"] > best["expected"]:
        return measured_reasons(best, others[0], by_model, unit)
    other = others[0]
    differences = {part: other["critical"][part] - best["critical"][part] for part in PARTS}
    saved = [p for p in sorted(PARTS, key=lambda p: -differences[p]) if differences[p] > 0.01 * best["time"]][:2]
    paid = [p for p in sorted(PARTS, key=lambda p: differences[p]) if differences[p] < -0.01 * best["time"]][:2]
    if other["time"] <= best["time"] * 1.001:
        return [f"as fast as {other['name']} by the model; the first in the list of algorithms goes first"]
    sentence = f"{compared(other['time'], best['time'], 'fast')} as {other['name']} by the model"
    if not saved:
        return [sentence]
    listed = lambda parts: " and ".join(f"{format_time(abs(differences[p]), unit)} of {p}" for p in parts)  # noqa: E731
    return [f"{sentence}: it saves {listed(saved)}" + (f", and pays {listed(paid)}" if paid else "")]


def compared(more: float, less: float, how: str) -> str:
    """`1.25 times as fast`, or `as fast` where two digits show no difference."""
    times = f"{more / less:.2f} times" if less else "infinitely many times"
    return f"as {how}" if times == "1.00 times" else f"{times} as {how}"


def as_asked_for(op: str, ranks: int, bytes_: int, candidate: dict[str, Any]) -> str:
    """What rules say to have a candidate, and options of `stretto model`."""
    name = candidate["algorithm"]
    words = [
        "-a",
        f"'{name}'" if " " in name else name,
        *(["--k", str(candidate["k"])] if candidate["k"] > 0 else []),
        *(["--segments", str(candidate["segments"])] if candidate["segments"] > 1 else []),
    ]
    return f"in rules: {op}: {stretto_rules.server(candidate, stretto_rules.whole_bytes(op, ranks, bytes_))}; for the model: {' '.join(words)}"


def measured_reasons(best: dict[str, Any], other: dict[str, Any], by_model: dict[str, Any], unit: str) -> list[str]:
    """Where measurements decided."""

    def told(c: dict[str, Any]) -> str:
        return f"{format_time(c['expected'], unit)} {'measured' if c['measured'] is not None else 'expected'}"

    sentences = [f"{told(best)}, against {told(other)} of {other['name']}"]
    if by_model["name"] != best["name"]:
        sentences.append(
            f"by the model alone: {by_model['name']}, {format_time(by_model['time'], unit)} predicted, {told(by_model)}"
        )
    return sentences


def advice(op: str, ranks: int, root: int, ordered: bool, algorithm: str) -> list[str]:
    """What the caller could do better (S4): a root that an algorithm does not end at gets the result sent."""
    if op != "reduce" or not ordered:
        return []
    at = {
        "binomial": 0,
        "knomial": 0,
        "chain": 0,
        "kchain": 0,
        "kchain_long_first": 0,
        "flat": 0,
        "binary": ranks - 1,
    }.get(algorithm)
    if at is None or at == root:
        return []
    return [f"root {at} would save a message: in the order of ranks, {algorithm} ends at rank {at}"]
