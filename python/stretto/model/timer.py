# SPDX-License-Identifier: BSD-3-Clause
"""Asks stretto-model (tools/model), which runs schedules in virtual time."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any

from stretto.core.console import fail, note, working
from stretto.core.processes import child
from stretto.model.profile import Profile
from stretto.native import build


def ask(command: str, profile: Profile | None, arguments: Sequence[str]) -> str:
    """What stretto-model prints. Its errors end this command."""
    with working("building the model"):
        program = build.ensure_built("release", ["stretto-model"]) / "stretto-model"
    with (
        tempfile.NamedTemporaryFile("w", suffix=".costs") as costs,
        tempfile.TemporaryFile("w+") as answer,
        working("timing schedules"),
    ):
        costs.write(profile.costs() if profile else "")
        costs.flush()
        said = []
        with child(
            [str(program), command, "--costs", costs.name, *arguments], stdout=answer, stderr=subprocess.PIPE, text=True
        ) as timer:
            for line in timer.stderr:
                if line.startswith("note "):
                    note(line[5:].strip())
                else:
                    said.append(line)
        if timer.returncode:
            fail("".join(said).strip() or f"stretto-model ended with status {timer.returncode}")
        answer.seek(0)
        return answer.read()


def ask_json(command: str, profile: Profile | None, arguments: Sequence[str]) -> dict[str, Any]:
    """The JSON object that stretto-model prints."""
    return json.loads(ask(command, profile, arguments))


def shape(
    op: str,
    algorithms: Iterable[str],
    ranks: Sequence[int],
    sizes: Sequence[int],
    *,
    root: int = 0,
    k: str | None = None,
    segments: int = 1,
    ordered: bool = False,
) -> list[str]:
    """Options that describe calls."""
    line = [
        "--op",
        op,
        "--ranks",
        ",".join(map(str, ranks)),
        "--bytes",
        ",".join(map(str, sizes)),
        "--root",
        str(root),
        "--segments",
        str(segments),
    ]
    for name in algorithms:
        line += ["--algorithm", name]
    return line + (["--k", k] if k else []) + (["--ordered"] if ordered else [])
