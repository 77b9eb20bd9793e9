# SPDX-License-Identifier: BSD-3-Clause
"""Measurements as rules for the library (STRETTO_RULES; src/select/rules.hpp defines the format).

A rule is for communicators with as many ranks and nodes as the measured one. It reaches halfway to
the next length, by ratio. Bytes are those of the whole call. If the built-in choice was the
fastest, there is no rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from stretto.rules import measurements, open_mpi

UNIT = 8  # bytes; measuring programs send doubles


def rules_file(profile: Path, own: Path, abi: str) -> Path:
    """The file of the rules that go with a profile. For this machine's own profile, it is where the
    library looks for rules."""
    return own.with_name(f"{abi}.rules") if profile == own else profile.with_suffix(".rules")


def whole_bytes(op: str, ranks: int, bytes_: int) -> int:
    """Bytes of the whole call, in whole doubles."""
    return -(-bytes_ // UNIT) * UNIT * (ranks if op in open_mpi.OF_PARTS else 1)


def nodes_of(place: str, ranks: int) -> int:
    """The number of nodes in a place of [[measured]], which is levels, as node:2,leaf:2, or the
    lines of a placement file."""
    each = 1
    for level in place.split(",") if "=" not in place else ():
        name, _, number = level.partition(":")
        each *= int(number or 1)
        if name == "node":
            return -(-ranks // each)
    return max(1, len(set(re.findall(r"\bnode=(\d+)", place))))


def server(candidate: dict[str, Any], whole: int) -> str:
    """The part of a rule after its colon."""
    words = [candidate["algorithm"]]
    words += [f"k={candidate['k']}"] if candidate["k"] > 0 else []
    words += [f"segment={-(-whole // candidate['segments'])}"] if candidate["segments"] > 1 else []
    return " ".join(words)


def line(op: str, ranks: int, nodes: int, least: int, most: int | None, says: str) -> str:
    """A rule."""
    return f"{op} ranks={ranks} nodes={nodes} bytes={least}-{most if most is not None else ''}: {says}"


def forcing(jobs: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """Rules by which each call, at its exact length, goes by its candidate."""
    text = ""
    for call, candidate in jobs:
        whole = whole_bytes(call["op"], call["ranks"], call["bytes"])
        text += (
            line(
                call["op"],
                call["ranks"],
                nodes_of(call["place"], call["ranks"]),
                whole,
                whole,
                server(candidate, whole),
            )
            + "\n"
        )
    return text


def best(rows: Sequence[measurements.Row]) -> measurements.Row:
    """The fastest row; of equal ones the built-in choice."""
    return min(rows, key=lambda r: (r["time"], r["algorithm"] != measurements.BUILT_IN))


def of_place(op: str, ranks: int, nodes: int, rows: Sequence[measurements.Row]) -> list[str]:
    """The rules of one collective on one kind of communicator."""
    sizes = sorted({whole_bytes(op, ranks, r["bytes"]) for r in rows})
    chosen = []
    for whole in sizes:
        of_size = [r for r in rows if whole_bytes(op, ranks, r["bytes"]) == whole]
        chosen.append(server(best(of_size), whole))
    return reaching(op, ranks, nodes, dict(zip(sizes, chosen)))


def reaching(op: str, ranks: int, nodes: int, chosen: dict[int, str]) -> list[str]:
    """Rules of what serves calls of some lengths, in order. Each reaches halfway to the next one."""
    sizes = list(chosen)
    ends = [math.isqrt(a * b) for a, b in zip(sizes, sizes[1:])]
    reaches = zip([0, *(end + 1 for end in ends)], [*ends, None], chosen.values())
    return [line(op, ranks, nodes, least, most, says) for least, most, says in reaches if says != measurements.BUILT_IN]


def text(rows: Sequence[measurements.Row], about: str) -> str:
    """All rules that follow from measurements. A call counts if the built-in choice and the MPI's
    own collective were measured, too. Of two places with as many ranks on as many nodes, the later
    one counts."""
    kinds: dict[tuple[str, int, int], dict[str, list[measurements.Row]]] = {}
    for row in rows:
        same = [r for r in rows if all(r[key] == row[key] for key in ("op", "ranks", "place", "bytes"))]
        if {measurements.BUILT_IN, measurements.HOST} <= {r["algorithm"] for r in same}:
            kinds.setdefault((row["op"], row["ranks"], nodes_of(row["place"], row["ranks"])), {}).setdefault(
                row["place"], []
            ).append(row)
    return whole_text(
        (each for key, places in kinds.items() for each in of_place(*key, list(places.values())[-1])), about
    )


def by_model(op: str, calls: Iterable[dict[str, Any]], rows: Sequence[measurements.Row], levels: str) -> list[str]:
    """Rules from the expected times of candidates (measurements.corrected), measured or not."""
    sizes: dict[int, list[measurements.Row]] = {}
    for call in calls:
        of_call = sizes.setdefault(call["ranks"], [])
        of_call += [{**c, "bytes": call["bytes"], "time": c["expected"]} for c in call["candidates"][:1]]
        of_call += [
            r
            for r in measurements.near(rows, op, {**call, "place": levels})
            if not measurements.is_modelled(r) and r["bytes"] == call["bytes"]
        ]
    return [each for ranks, of_size in sizes.items() for each in of_place(op, ranks, nodes_of(levels, ranks), of_size)]


def whole_text(lines: Iterable[str], about: str) -> str:
    return "".join(f"{each}\n" for each in [f"# {about}", *lines])
