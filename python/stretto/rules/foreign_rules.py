# SPDX-License-Identifier: BSD-3-Clause
"""Choices that a rules file of Open MPI or MPICH forces, and our algorithms for them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from stretto.core.positions import WrongText
from stretto.rules import mpich, open_mpi, open_mpi_reader


@dataclass(frozen=True)
class Forced:
    """A choice that a rules file forces."""

    says: str  # the choice in the words of the file
    algorithm: str | None  # our algorithm; None: Stretto has no such algorithm
    k: int = 0
    segments: int = 1
    instead: str = "which Stretto does not have: the MPI itself would serve this call"  # of a schedule


def forced(text: str, op: str, ranks: int, bytes_: int, ordered: bool = False) -> Forced | None:
    """What a rules file says of a call; None: nothing. Raises ValueError if it is not a rules file."""
    document = _json(text)
    if document is None:
        return _open_mpi(open_mpi_reader.table_of(open_mpi_reader.parse_classic(text)), op, ranks, bytes_)
    try:
        return _of_json(document, op, ranks, bytes_, ordered)
    except ValueError as error:
        raise WrongText(str(error), _place(text, str(error), op)) from None


def _of_json(document: dict[str, object], op: str, ranks: int, bytes_: int, ordered: bool) -> Forced | None:
    if "collectives" in document:
        return _open_mpi(open_mpi_reader.parse_json(document), op, ranks, bytes_)
    name = mpich.find(document, mpich.Call(op, ranks, bytes_, ordered))
    return Forced(f"MPICH's {name}", mpich.ours(op, name)) if name else None


def _place(text: str, what: str, op: str) -> int:
    """The offset of an error in a decoded document: of what the error quotes, else of the
    collective that it names, else 0."""
    quoted = re.search(r"'([^']+)'|\"(\w+)\"", what)
    about = re.match(r"(\w+):", what)
    names = [
        *(each for each in (quoted and (quoted[1] or quoted[2]), about and about[1]) if each),
        f"collective={op}",
        op,
    ]
    return max(0, next((at for name in names if (at := text.find(f'"{name}"')) >= 0), 0))


def _json(text: str) -> dict[str, object] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _open_mpi(table: open_mpi_reader.Table, op: str, ranks: int, bytes_: int) -> Forced | None:
    rule = open_mpi_reader.find(table, op, ranks, bytes_)
    if rule is None or rule.algorithm == 0:  # 0 means that there is no rule
        return None
    name, k, segments = open_mpi.ours(op, rule, bytes_)
    return Forced(f"Open MPI's {op} {open_mpi.title(op, rule)}", name, min(k, max(1, ranks - 1)), segments)
