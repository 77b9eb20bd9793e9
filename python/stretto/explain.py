# SPDX-License-Identifier: BSD-3-Clause
"""explain: which algorithm for a call, how long each would take, and why."""
from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.table import Table

from stretto import model
from stretto.bench import print_size
from stretto.console import fail, out, write_json

SHOWN = 12


def command(
    op: model.Op,
    bytes: Annotated[str, typer.Option("--bytes", "-b", metavar="N", help="Of the vector, or of one rank's part; with K, M, G.")] = "8",
    ranks: Annotated[int, typer.Option("--ranks", "-n", metavar="N", min=1, help="Ranks.")] = 16,
    profile: model.ProfileFile = None, logp: model.LogP = None, levels: model.Levels = None, topology: model.Topology = None,
    per_node: model.PerNode = 1, root: model.Root = 0, ordered: model.Ordered = False,
    every: Annotated[bool, typer.Option("--all", help="All candidates, not the first dozen.")] = False,
    json: Annotated[Optional[Path], typer.Option("--json", metavar="FILE", help="Write everything as JSON into FILE ([b]-[/]: stdout).", show_default=False)] = None,
) -> None:
    """The candidates for a collective call with the times that the model gives them, the choice, and the reason."""
    sizes = model.numbers(bytes, "--bytes")
    if len(sizes) != 1:
        fail("explain: one length in --bytes")
    if root >= ranks:
        fail(f"--root: there are ranks 0 to {ranks - 1}")
    costs = model.load(profile, logp)
    line = ["--op", op, "--ranks", str(ranks), "--bytes", str(sizes[0]), "--root", str(root), *(["--ordered"] if ordered else [])]
    report = model.ask_json("explain", costs, [*line, *model.place(levels, topology, per_node)])["calls"][0]
    write_json(json, report)
    if json and str(json) == "-":
        return
    candidates = report["candidates"]
    if not candidates:
        fail(f"no algorithm serves {op} on {ranks} ranks")
    where = f", levels {' < '.join(report['levels'])}" if len(report["levels"]) > 1 else ""
    out.print(f"[b]{op}[/], {print_size(sizes[0])} bytes, {ranks} ranks{where}")
    model.say_profile(costs)
    out.print(candidate_table(candidates if every else candidates[:SHOWN], costs.unit))
    if not every and len(candidates) > SHOWN:
        out.print(f"and {len(candidates) - SHOWN} slower ones (--all)", style="dim")
    out.print(f"\nchoice: [b green]{candidates[0]['name']}[/]")
    for sentence in reasons(candidates, costs.unit):
        out.print(f"  {sentence}", markup=False)
    for sentence in advice(op, ranks, root, ordered, candidates[0]["algorithm"]):
        out.print(f"  {sentence}", markup=False)


def candidate_table(candidates: list[dict[str, Any]], unit: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for name, justify in (("candidate", "left"), ("time", "right"), ("of the best", "right"), ("messages in a row", "right"), ("goes into", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    best = candidates[0]["time"]
    for i, each in enumerate(candidates):
        table.add_row(each["name"], model.print_time(each["time"], unit), f"{each['time'] / best:.2f}" if best else "-", str(each["critical"]["messages"]),
                      model.print_parts(each["critical"]), style="bold" if i == 0 else None)
    return table


def reasons(candidates: list[dict[str, Any]], unit: str) -> list[str]:
    """Against the best candidate of another algorithm: which parts of the time it saves."""
    best = candidates[0]
    others = [c for c in candidates if c["algorithm"] != best["algorithm"]]
    if not others:
        return ["no other algorithm serves this call"]
    other = others[0]
    differences = {part: other["critical"][part] - best["critical"][part] for part in model.PARTS}
    saved = [p for p in sorted(model.PARTS, key=lambda p: -differences[p]) if differences[p] > 0.01 * best["time"]][:2]
    paid = [p for p in sorted(model.PARTS, key=lambda p: differences[p]) if differences[p] < -0.01 * best["time"]][:2]
    if other["time"] <= best["time"] * 1.001:
        return [f"as fast as {other['name']} by the model; the first in the list of algorithms goes first"]
    listed = lambda parts: " and ".join(f"{model.print_time(abs(differences[p]), unit)} of {p}" for p in parts)  # noqa: E731
    sentence = f"{other['time'] / best['time']:.2f} times as fast as {other['name']}: it saves {listed(saved)}"
    return [sentence + (f", and pays {listed(paid)}" if paid else "")]


def advice(op: str, ranks: int, root: int, ordered: bool, algorithm: str) -> list[str]:
    """What the caller could do better (S4): a root that an algorithm does not end at gets the result sent."""
    if op != "reduce" or not ordered:
        return []
    at = {"binomial": 0, "knomial": 0, "chain": 0, "kchain": 0, "kchain_long_first": 0, "flat": 0, "binary": ranks - 1}.get(algorithm)
    if at is None or at == root:
        return []
    return [f"root {at} would save a message: in the order of ranks, {algorithm} ends at rank {at}"]
