# SPDX-License-Identifier: BSD-3-Clause
"""Reads files for STRETTO_RULES as the library does: stretto-model has its parser."""

from __future__ import annotations

import re
from pathlib import Path

from stretto.core.units import parse_size
from stretto.model import timer
from stretto.rules import measurements, open_mpi
from stretto.rules.foreign_rules import Forced

RULE = re.compile(r"(?:[ \t]*(?:#.*)?\n)*[ \t]*[a-z_]+[^\n:#]*:")


def is_ours(text: str) -> bool:
    """Whether this is a file for STRETTO_RULES, right or wrong."""
    return RULE.match(text) is not None


def check(file: Path) -> int:
    """The number of rules in a file. A mistake in it ends the command."""
    return int(timer.ask_json("rules", None, ["--rules", str(file)])["rules"])


def forced(file: Path, text: str, op: str, ranks: int, nodes: int, bytes_: int) -> Forced | None:
    """What a file says of a call; None: nothing. A mistake in it ends the command."""
    whole = bytes_ * (ranks if op in open_mpi.OF_PARTS else 1)
    call = timer.shape(op, [], [ranks], [whole])
    at = timer.ask_json("rules", None, ["--rules", str(file), "--nodes", str(nodes), *call])["line"]
    if at == 0:
        return None
    name, *parameters = text.splitlines()[at - 1].partition("#")[0].partition(":")[2].split()
    says = f"{' '.join([name, *parameters])} (line {at})"
    if name in measurements.NO_CANDIDATES or name.startswith(measurements.IN_MEMORY):
        return Forced(says, None, instead="which is no schedule")
    given = dict(each.split("=") for each in parameters)
    algorithm = f"{name} by={given['by']}" if "by" in given else name
    segment = parse_size(given.get("segment", "0"))
    return Forced(says, algorithm, int(given.get("k", 0)), -(-whole // segment) if segment and whole else 1)
