# SPDX-License-Identifier: BSD-3-Clause
"""Files of recorded jobs: those of the ranks (STRETTO_RECORD), and the one into which `stretto run` packs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stretto.core.console import complain, fail, note, working
from stretto.model.profile import Profile
from stretto.native import build

PACKED, RANK = b"STRETJOB", b"STRETREC"


def _magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(PACKED))


def is_recording(path: Path) -> bool:
    """Whether it is a packed job, or the recording of a rank."""
    return path.is_file() and _magic(path) in (PACKED, RANK)


def files_of(path: Path) -> list[Path]:
    """The files of a job: the packed one, or those of all ranks, of which one is named, or what they begin with."""
    if path.is_file() and _magic(path) == PACKED:
        return [path]
    stem = path.with_suffix("") if re.fullmatch(r"\.\d+", path.suffix) else path
    found = [p for p in stem.parent.glob(f"{stem.name}.*") if re.fullmatch(r"\.\d+", p.suffix)]
    if not found:
        fail(f"{path} is no recording, and there is no {stem}.0")
    return sorted(found, key=lambda p: int(p.suffix[1:]))


@contextmanager
def _costs(profile: Profile | None) -> Iterator[list[str]]:
    if profile is None:
        yield []
        return
    with tempfile.NamedTemporaryFile("w", suffix=".costs") as file:
        file.write(profile.costs())
        file.flush()
        yield ["--costs", file.name]


def ask(command: str, words: Sequence[str | Path], what: str = "reading the recording") -> str:
    """What stretto-model says of a job. Its errors end this command."""
    with working("building the model"):
        program = build.ensure_built("release", ["stretto-model"]) / "stretto-model"
    with working(what):
        done = subprocess.run([program, "job", command, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        fail(done.stderr.strip() or f"stretto-model ended with status {done.returncode}")
    return done.stdout


def summary(files: Sequence[Path]) -> dict[str, Any]:
    """What each rank and each place in the program took."""
    return json.loads(ask("summary", files))


def calls(files: Sequence[Path], rank: int) -> list[dict[str, Any]]:
    """All calls of a rank."""
    return [json.loads(line) for line in ask("calls", [str(rank), *files]).splitlines()]


def replay(files: Sequence[Path], words: Sequence[str] = (), profile: Profile | None = None) -> dict[str, Any]:
    """The job in virtual time. Without a profile no message takes any time."""
    with _costs(profile) as costs:
        return json.loads(ask("replay", [*costs, *words, "--", *files], "replaying the job"))


# ---- `stretto run --record` ----------------------------------------------------------------------


def parts_of(path: Path) -> Path:
    """Where ranks write while the job runs: beside the file, which all hosts see as a rule."""
    return path.absolute().with_name(f".{path.name}.{os.getpid()}")


def settings(path: Path | None) -> dict[str, str]:
    """What tells the library to record."""
    return {"STRETTO_RECORD": str(parts_of(path) / "rank")} if path else {}


def gather(path: Path) -> None:
    """Packs what the ranks have written."""
    parts = parts_of(path)
    files = sorted(parts.glob("rank.*"), key=lambda p: int(p.suffix[1:])) if parts.is_dir() else []
    if not files:
        complain("no recording: the program did not come to the end of MPI_Init with Stretto")
        return
    ranks = summary_ranks(files[0])
    if len(files) != ranks:
        complain(f"the recording is not whole: {len(files)} of {ranks} ranks have written into {parts}")
        return
    packed = json.loads(ask("pack", [path, *files], "packing the recording"))
    note(f"recorded: {path}, {packed['bytes'] / 2**20:.2f} MiB of {ranks} ranks")
    shutil.rmtree(parts)


def summary_ranks(file: Path) -> int:
    """Of how many ranks the recording of one is. The header has it behind magic, version, chunk length and rank."""
    with file.open("rb") as head:
        return int.from_bytes(head.read(24)[20:24], "little")
