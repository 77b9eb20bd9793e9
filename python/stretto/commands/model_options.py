# SPDX-License-Identifier: BSD-3-Clause
"""Options of the commands that ask the model, and the checks of their values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.cluster import levels
from stretto.core import arguments, output_files
from stretto.core.console import fail, note
from stretto.core.paths import own_profile
from stretto.core.units import parse_size
from stretto.model import profile_file, timer
from stretto.model.profile import Profile, logp

Op = Annotated[
    str, typer.Option("--op", metavar="NAME", help="Collective, as [b]reduce[/].", callback=arguments.collective)
]
Algorithms = Annotated[
    Optional[list[str]],
    typer.Option(
        "--algorithm",
        "-a",
        metavar="NAME",
        help="As [b]kchain[/], or [b]reduce:kchain[/] (docs/model.md lists them); "
        "[b]hierarchy[/], [b]hierarchy:nodes[/], [b]hierarchy:stripes[/], [b]hierarchy:rails[/], "
        "[b]hierarchy:reduce_bcast[/], [b]hierarchy:chain[/] and [b]hierarchy:chain_and_back[/] compose over "
        "levels, with [b]by=ring[/] behind them by this one on each. May be repeated.",
    ),
]
Ranks = Annotated[
    str,
    typer.Option(
        "--ranks", "-n", metavar="LIST", help="As [b]16[/], [b]100,200[/], or [b]16:4096[/]: doubled from 16 on."
    ),
]
Sizes = Annotated[
    str,
    typer.Option(
        "--sizes",
        "-b",
        "--bytes",
        metavar="LIST",
        help="Bytes of the vector, or of one rank's part, as [b]8,64K[/] or [b]64:1M[/], doubled.",
    ),
]
ProfileFile = Annotated[
    Optional[Path],
    typer.Option(
        "--profile",
        metavar="FILE",
        help="Parameters of the machine. Default: this machine's own, if it has been measured, else an example.",
        show_default=False,
    ),
]
LogP = Annotated[
    Optional[str],
    typer.Option(
        "--logp",
        metavar="o=N,L=N,..",
        help="Instead of a profile: o, os, or, L, g, G, gamma, lambda, in any unit.",
        show_default=False,
    ),
]
Levels = Annotated[
    Optional[str],
    typer.Option(
        "--levels",
        metavar="NAME:N,..",
        help="Domains from the lowest up, as [b]numa:4,node:2,leaf:16[/]: four "
        "ranks to a NUMA node, two of these to a node, 16 of those to a switch.",
        show_default=False,
        callback=levels.checked_levels,
    ),
]
Topology = Annotated[
    Optional[Path],
    typer.Option(
        "--topology",
        metavar="FILE",
        help="Switches of the network, as Slurm's topology.conf or lines of [b]NODE SWITCH[/].",
        show_default=False,
        callback=arguments.readable,
    ),
]
PerNode = Annotated[int, typer.Option("--per-node", metavar="N", min=1, help="Ranks on each node of --topology.")]
Root = Annotated[int, typer.Option("--root", metavar="N", min=0, help="Root rank.")]
K = Annotated[
    Optional[str],
    typer.Option(
        "--k",
        metavar="N|best",
        help="Arity, number of chains or radix; [b]best[/]: chains by the model.",
        show_default=False,
    ),
]
Segments = Annotated[int, typer.Option("--segments", metavar="N", min=1, help="Pieces of the vector.")]
Ordered = Annotated[bool, typer.Option("--ordered", help="An operation that does not commute.")]
JsonFile = Annotated[
    Optional[Path],
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write everything as JSON into FILE ([b]-[/]: stdout).",
        show_default=False,
        callback=output_files.writable,
    ),
]


def load(file: Path | None, parameters: str | None) -> Profile:
    """The profile that --profile names, or that --logp describes."""
    if file and parameters:
        fail("--profile or --logp, not both")
    return logp(parameters) if parameters is not None else profile_file.load(file)


def numbers(text: str, name: str, least: int = 0) -> list[int]:
    """Numbers from `16`, `100,200`, or `16:4096` (doubled); sizes with K, M, G."""
    result: list[int] = []
    for part in text.split(","):
        first, colon, last = part.partition(":")
        try:
            low = parse_size(first)
            high = parse_size(last) if colon else low
        except (ValueError, typer.BadParameter):
            fail(f"{name}: '{part}': a number, a list or FIRST:LAST expected")
        if high < low or (low == 0 and high > 0):
            fail(f"{name}: '{part}': the first must be positive and not above the last")
        if low < least:
            fail(f"{name}: '{part}': {least} or more")
        while low < high:
            result.append(low)
            low *= 2
        result.append(high)
    return result


def only(found: list[int], name: str, command: str) -> int:
    """The only number of a list, for commands that take no list."""
    if len(found) != 1:
        fail(f"{command}: one number in {name}, not {len(found)}")
    return found[0]


MOST_SEGMENTS = 0xFFFF  # of a vector in the library


def checked_parameters(k: str | None, segments: int, ranks: Sequence[int], most_units: int, unit: str = "byte") -> int:
    """Fails if k makes no sense. Returns as many of the segments as there can be."""
    if k is not None and k != "best" and not (k.isdecimal() and 1 <= int(k) <= max(ranks)):
        fail(f"--k: '{k}': a number from 1 to that of ranks, {max(ranks)}, or best")
    most = min(max(most_units, 1), MOST_SEGMENTS)
    if segments > most:
        note(
            f"--segments {segments}: there are no more than {most}"
            + (f", of a {unit} each" if most < MOST_SEGMENTS else "")
        )
    return min(segments, most)


def call_of(
    op: str,
    algorithms: Iterable[str] | None,
    ranks: str,
    bytes_: str,
    *,
    root: int = 0,
    k: str | None = None,
    segments: int = 1,
    ordered: bool = False,
    alone: str | None = None,
) -> list[str]:
    """The call that the options of a command describe. `alone` names a command that takes one
    number of ranks and one length."""
    counts, sizes = numbers(ranks, "--ranks", 1), numbers(bytes_, "--sizes")
    if alone:
        only(counts, "--ranks", alone)
        only(sizes, "--bytes", alone)
    segments = checked_parameters(k, segments, counts, max(sizes))
    if root >= min(counts):
        fail(f"--root {root}: there are ranks 0 to {min(counts) - 1}")
    return timer.shape(
        op,
        arguments.algorithm_names(op, algorithms or ()),
        counts,
        sizes,
        root=root,
        k=k,
        segments=segments,
        ordered=ordered,
    )


def place(levels: str | None, topology: Path | None, per_node: int) -> list[str]:
    """Options that tell stretto-model where the ranks are."""
    if levels and topology:
        fail("--levels or --topology, not both")
    if topology:
        return ["--network", str(topology), "--per-node", str(per_node)]
    return ["--levels", levels] if levels else []


def write_text(to: Path, text: str) -> None:
    """Writes to a file, or to stdout for `-`."""
    if str(to) == "-":
        print(text, end="")
        return
    try:
        to.write_text(text)
    except OSError as error:
        fail(f"cannot write {to}: {error.strerror}")


def own_profile_file(cluster: str | None) -> Path:
    """The profile that commands look for. Its directory is made, because the user has not named it."""
    file = own_profile(cluster)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
    output_files.writable(file)
    return file
