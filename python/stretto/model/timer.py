# SPDX-License-Identifier: BSD-3-Clause
"""Asks stretto-model (tools/model), which runs schedules in virtual time."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stretto.core.console import fail, note, working
from stretto.core.processes import child
from stretto.model.profile import Profile
from stretto.native import build


@contextmanager
def costs_file(profile: Profile | None) -> Iterator[str]:
    """The name of a file with a profile's costs, for as long as it is needed. Without a profile it is empty."""
    with text_file(profile.costs() if profile else "", ".costs") as name:
        yield name


@contextmanager
def text_file(text: str, suffix: str = "") -> Iterator[str]:
    """The name of a file with a text, for as long as it is needed."""
    with tempfile.NamedTemporaryFile("w", suffix=suffix) as file:
        file.write(text)
        file.flush()
        yield file.name


def run(words: Sequence[str | Path], doing: str) -> str:
    """What stretto-model prints. Its errors end this command."""
    with working("building the model"):
        program = build.ensure_built("release", ["stretto-model"]) / "stretto-model"
    with tempfile.TemporaryFile("w+") as answer, working(doing):
        said = []
        with child([str(program), *map(str, words)], stdout=answer, stderr=subprocess.PIPE, text=True) as model:
            for line in model.stderr:
                if line.startswith("note "):
                    note(line[5:].strip())
                else:
                    said.append(line)
        if model.returncode:
            fail("".join(said).strip() or f"stretto-model ended with status {model.returncode}")
        answer.seek(0)
        return answer.read()


def ask(command: str, profile: Profile | None, arguments: Sequence[str]) -> str:
    """What stretto-model says of schedules on a profile's machine."""
    with costs_file(profile) as costs:
        return run([command, "--costs", costs, *arguments], "timing schedules")


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
