# SPDX-License-Identifier: BSD-3-Clause
"""model rules: the model's choices as rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from stretto.commands.model_options import Levels, LogP, ProfileFile, Ranks, Sizes, load, numbers, place, write_text
from stretto.core import arguments, output_files
from stretto.core.console import fail, out, working
from stretto.model import rules_file, timer
from stretto.model.profile import Profile
from stretto.mpi import choosing
from stretto.rules import measurements, mpich, open_mpi, stretto_rules

RULE_FORMATS = ("classic", "json", "mpich", "stretto")


To = Annotated[
    Optional[Path],
    typer.Option("--to", metavar="FILE", help="The file to write ([b]-[/]: stdout).", callback=output_files.writable),
]
Check = Annotated[
    Optional[Path],
    typer.Option(
        "--check",
        metavar="FILE",
        help="Write nothing. Say how many rules this file has, or where its first mistake is.",
        callback=arguments.readable,
    ),
]
Op = Annotated[
    Optional[list[str]],
    typer.Option("--op", metavar="LIST", help="Only these collectives, with commas.", show_default=False),
]
RuleFormat = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        help="[b]classic[/]: Open MPI's dynamic rules. [b]json[/]: the same, of Open MPI 6. "
        "[b]mpich[/]: MPICH's selection tree. [b]stretto[/]: for STRETTO_RULES.",
    ),
]
Mpi = Annotated[
    Optional[str],
    typer.Option("--mpi", metavar="MPI", help="The MPICH in whose tree the rules are written.", show_default=False),
]


def command(
    to: To = None,
    check: Check = None,
    op: Op = None,
    ranks: Ranks = "2:64",
    sizes: Sizes = "8,64,512,4K,32K,256K,1M",
    profile: ProfileFile = None,
    logp: LogP = None,
    levels: Levels = None,
    rule_format: RuleFormat = "classic",
    mpi: Mpi = None,
) -> None:
    """Write the choices as rules for an MPI's own collectives, or for the library.

    [dim]stretto model rules --format stretto --to tuned.rules[/]
    [dim]stretto model rules --check tuned.rules[/]
    """
    if check:
        return show_number(check)
    if to is None:
        fail("--to FILE or --check FILE is expected")
    if rule_format not in RULE_FORMATS:
        fail(f"--format: one of {', '.join(RULE_FORMATS)}")
    known = list(mpich.ALGORITHMS if rule_format == "mpich" else open_mpi.COLLECTIVES)
    ops = arguments.checked_ops(op or [], known)
    counts, lengths = numbers(ranks, "--ranks", 2), numbers(sizes, "--sizes")
    costs = load(profile, logp)
    base = mpich_tree(mpi) if rule_format == "mpich" else {}
    calls = timed(ops or known, costs, counts, lengths, levels)
    if rule_format == "mpich":
        return write_text(to, mpich.write(base, calls))
    about = f"by the model, {'an example profile, ' if costs.is_example else ''}{costs.about.get('name', '')}"
    if rule_format == "stretto":
        lines = (stretto_rules.by_model(name, of_op, costs.measured, levels or "") for name, of_op in calls.items())
        return write_text(to, stretto_rules.whole_text((each for of_op in lines for each in of_op), about))
    chosen = {name: open_mpi.rules_of(name, of_op) for name, of_op in calls.items()}
    write_text(to, open_mpi.as_json(chosen) if rule_format == "json" else open_mpi.classic(chosen, about))


def show_number(file: Path) -> None:
    """`stretto explain --rules` says which rule decides a call."""
    number = rules_file.check(file)
    out.print(f"{file}: {number} rule{'' if number == 1 else 's'}", markup=False, highlight=False)


def timed(
    ops: list[str], costs: Profile, counts: list[int], lengths: list[int], levels: str | None
) -> dict[str, list[dict[str, Any]]]:
    """The calls of each collective, with the times of their candidates."""
    calls: dict[str, list[dict[str, Any]]] = {}
    with working("timing candidates"):
        for name in ops:
            found = timer.ask_json(
                "explain", costs, [*timer.shape(name, [], counts, lengths), *place(levels, None, 1)]
            )["calls"]
            calls[name] = [
                {**call, "candidates": measurements.corrected(costs.measured, name, {**call, "place": levels or ""})}
                for call in found
            ]
    return calls


def mpich_tree(mpi: str | None) -> dict[str, Any]:
    found = choosing.choose(mpi or "mpich")
    if found.kind != "mpich":
        fail(f"{found.title} does not read MPICH's selection trees")
    try:
        return mpich.built_in_tree(found.library)
    except (OSError, ValueError) as error:
        fail(f"{found.title}: {error}")
