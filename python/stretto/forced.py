# SPDX-License-Identifier: BSD-3-Clause
"""Choices that a rules file of Open MPI's or MPICH's forces: which of our algorithms does what the file asks for."""
from __future__ import annotations

import json
from dataclasses import dataclass

from stretto import rules, rules_mpich


@dataclass(frozen=True)
class Forced:
    says: str               # what the file asks for, in its own words
    algorithm: str | None   # ours; None: we have no such thing
    k: int = 0
    segments: int = 1


def forced(text: str, op: str, ranks: int, bytes_: int, ordered: bool = False) -> Forced | None:
    """What a rules file says of a call; None: nothing. ValueError: the file is none, and why."""
    document = _json(text)
    if document is None:
        return _open_mpi(rules.table_of(rules.parse_classic(text)), op, ranks, bytes_)
    if "collectives" in document:
        return _open_mpi(rules.parse_json(document), op, ranks, bytes_)
    name = rules_mpich.find(document, rules_mpich.Call(op, ranks, bytes_, ordered))
    return Forced(f"MPICH's {name}", rules_mpich.ours(op, name)) if name else None


def _json(text: str) -> dict[str, object] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _open_mpi(table: rules.Table, op: str, ranks: int, bytes_: int) -> Forced | None:
    rule = rules.find(table, op, ranks, bytes_)
    if rule is None or rule.algorithm == 0:  # 0: as if there were no rule
        return None
    name, k, segments = rules.ours(op, rule, bytes_)
    return Forced(f"Open MPI's {op} {rules.title(op, rule)}", name, min(k, max(1, ranks - 1)), segments)
