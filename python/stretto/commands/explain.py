# SPDX-License-Identifier: BSD-3-Clause
"""explain: which algorithm serves a call, how long each candidate takes, and why."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
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
            metavar="LIST",
            help="Bytes of the vector, or of one rank's part, as [b]8,64K[/] or [b]64:1M[/], doubled.",
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
    lengths = numbers(sizes, "--sizes")
    if root >= ranks:
        fail(f"--root {root}: there are ranks 0 to {ranks - 1}")
    asked = Asked(op, ranks, root, ordered, load(profile, logp), levels, topology, per_node, rules_file)
    reports = [asked.judge(size) for size in lengths]
    document = reports[0] if len(reports) == 1 else {"profile": asked.costs.origin, "calls": reports}
    write_json(json_file, "explain", document)
    if json_file and str(json_file) == "-":
        return
    for i, each in enumerate(reports):
        if i:
            out.print()
        show(asked, each, every)


@dataclass(frozen=True)
class Asked:
    """A collective call of any length, and what is known of its place."""

    op: str
    ranks: int
    root: int
    ordered: bool
    costs: Profile
    levels: str | None
    topology: Path | None
    per_node: int
    rules_file: Path | None

    @property
    def nodes(self) -> int:
        if self.topology:
            return -(-self.ranks // self.per_node)
        return stretto_rules.nodes_of(self.levels or "", self.ranks)

    def judge(self, size: int) -> dict[str, Any]:
        """What is said of the call with this length."""
        where = place(self.levels, self.topology, self.per_node)
        shape = ["--op", self.op, "--ranks", str(self.ranks), "--bytes", str(size), "--root", str(self.root)]
        shape += ["--ordered"] if self.ordered else []
        call = timer.ask_json("explain", self.costs, [*shape, *where])["calls"][0]
        call["place"] = self.levels or ""
        known = [] if self.ordered or self.topology else self.costs.measured
        candidates = measurements.corrected(known, self.op, call)
        order = forced_by(self.rules_file, self.op, self.ranks, self.nodes, size, self.ordered)
        if order and order.algorithm:
            candidates = with_forced(candidates, order, lambda: self.predict(order, size))
        host, built_in, *in_memory = (
            measurements.time_of(name, self.costs.measured, self.op, call)
            for name in (*measurements.NO_CANDIDATES, *call["shared_memory"])
        )
        named = zip(call["shared_memory"] if self.nodes == 1 else (), in_memory)
        return {
            "profile": self.costs.origin,
            **call,
            "candidates": candidates,
            "mpi": host,
            "builtin": built_in,
            "shared_memory": {name: time for name, time in named if time is not None},
            "forced": order and asdict(order),
            "overlap": asdict(early.judge(self.op, size, self.ranks, self.nodes, overlap_setting())),
        }

    def predict(self, order: foreign_rules.Forced, size: int) -> dict[str, Any]:
        """The time of what a file of rules forces."""
        line = timer.shape(
            self.op,
            [order.algorithm],
            [self.ranks],
            [size],
            root=self.root,
            k=str(order.k),
            segments=order.segments,
            ordered=self.ordered,
        )
        where = place(self.levels, self.topology, self.per_node)
        return timer.ask_json("predict", self.costs, [*line, *where])["predictions"][0]


def overlap_setting() -> str:
    return os.environ.get("STRETTO_OVERLAP", "")


def show(asked: Asked, report: dict[str, Any], every: bool) -> None:
    """Prints what is said of one call."""
    candidates, size = report["candidates"], report["bytes"]
    if not candidates:
        fail(f"no algorithm serves {asked.op} on {ranks_text(asked.ranks)}")
    order = report["forced"] and foreign_rules.Forced(**report["forced"])
    levels_text = f", levels {' < '.join(report['levels'])}" if len(report["levels"]) > 1 else ""
    out.print(f"[b]{call_text(asked.op, size)}[/], {ranks_text(asked.ranks)}{levels_text}")
    show_times(report, asked.costs, every)
    say_choice(candidates, order, asked.rules_file, asked.costs.unit)
    out.print(f"  {reasons.as_asked_for(asked.op, asked.ranks, size, candidates[0])}", markup=False, style="dim")
    host, built_in = report["mpi"], report["builtin"]
    if host is not None and built_in is not None and order is None:
        served = reasons.served(candidates, built_in, host, report["shared_memory"])
        out.print(f"  programs that go by rules of this profile: {served}", markup=False)
    soon = early.judge(asked.op, size, asked.ranks, asked.nodes, overlap_setting())
    out.print(f"  {early.sentence(soon, overlap_setting())}", markup=False)
    for sentence in reasons.advice(asked.op, asked.ranks, asked.root, asked.ordered, candidates[0]["algorithm"]):
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
