# SPDX-License-Identifier: BSD-3-Clause
"""Files of recorded jobs: those of the ranks (STRETTO_RECORD), and the one into which `stretto run` packs them.

An archive of OTF2 (`traces.otf2`), of Score-P or another tool, is converted into a recording first.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from stretto.core.console import complain, fail, note
from stretto.model import timer
from stretto.model.profile import Profile

PACKED, RANK = b"STRETJOB", b"STRETREC"


_folder = cache(lambda: tempfile.TemporaryDirectory(prefix="stretto-"))


def temporary() -> Path:
    """Where a recording may be made that is gone when this command ends."""
    folder = Path(_folder().name)
    return folder / f"{len(list(folder.iterdir()))}.stretto"


def _magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(PACKED))


def is_recording(path: Path) -> bool:
    """Whether it is a packed job, the recording of a rank, or another tool's trace."""
    return path.is_file() and (path.suffix == ".otf2" or _magic(path) in (PACKED, RANK))


def _of_ranks(stem: Path) -> list[Path]:
    """The files of ranks whose names begin so, by rank. Spawned worlds have longer names."""
    found = [p for p in stem.parent.glob(f"{stem.name}.*") if re.fullmatch(r"\.\d+", p.suffix) and p.stem == stem.name]
    return sorted(found, key=lambda p: int(p.suffix[1:]))


def files_of(path: Path) -> list[Path]:
    """The files of a job: the packed one, or those of all ranks, of which one is named, or what they begin with.

    Of an OTF2 archive a recording is made.
    """
    if path.suffix == ".otf2" and path.is_file():
        return [imported(path)]
    if path.is_file() and _magic(path) == PACKED:
        return [path]
    stem = path.with_suffix("") if re.fullmatch(r"\.\d+", path.suffix) else path
    if not (found := _of_ranks(stem)):
        fail(f"{path} is no recording, and there is no {stem}.0")
    return found


@cache
def imported(archive: Path) -> Path:
    """The recording of an archive's ranks. Says what a recording has no word for."""
    made = temporary()
    found = json.loads(ask("import", [archive, made], "reading the trace"))
    for count, what in (
        (found["beside"], "threads or devices that call no MPI are left out"),
        (found["one_sided"], "one-sided operations count as the time of their calls"),
        (found["open"], "requests never end in the trace"),
    ):
        if count:
            note(f"{archive}: {count} {what}")
    return made


def ask(command: str, words: Sequence[str | Path], doing: str = "reading the recording") -> str:
    """What stretto-model says of a job (tools/model/job.cpp)."""
    return timer.run(["job", command, *words], doing)


def summary(files: Sequence[Path]) -> dict[str, Any]:
    """What each rank and each place in the program took."""
    return json.loads(ask("summary", files))


def calls(files: Sequence[Path], rank: int) -> list[dict[str, Any]]:
    """All calls of a rank."""
    return [json.loads(line) for line in ask("calls", [str(rank), *files]).splitlines()]


def replay(files: Sequence[Path], words: Sequence[str] = (), profile: Profile | None = None) -> dict[str, Any]:
    """The job in virtual time. Without a profile no message takes any time."""
    with timer.costs_file(profile) as costs:
        machine = ["--costs", costs] if profile else []
        return json.loads(ask("replay", [*machine, *words, "--", *files], "replaying the job"))


# ---- `stretto run --record` ----------------------------------------------------------------------


def parts_of(path: Path) -> Path:
    """Where ranks write while the job runs: beside the file, which all hosts see as a rule."""
    return path.absolute().with_name(f".{path.name}.{os.getpid()}")


def settings(path: Path | None) -> dict[str, str]:
    """What tells the library to record."""
    return {"STRETTO_RECORD": str(parts_of(path) / "rank")} if path else {}


def gather(path: Path) -> None:
    """Packs what the ranks have written. Each world of spawned processes has a file of its own."""
    parts = parts_of(path)
    if not (files := _of_ranks(parts / "rank")):
        complain("no recording: the program did not come to the end of MPI_Init with Stretto")
        return
    worlds = {path: files}
    for first in sorted(parts.glob("rank.spawned*.0")):
        name = first.suffixes[-2]
        worlds[path.with_name(f"{path.stem}{name}{path.suffix}")] = _of_ranks(first.with_suffix(""))
    if all([_pack(made, its, parts) for made, its in worlds.items()]):
        shutil.rmtree(parts)


def _pack(path: Path, files: Sequence[Path], parts: Path) -> bool:
    """Whether there are files of all ranks."""
    ranks = _ranks_in(files[0])
    if len(files) != ranks:
        complain(f"the recording is not whole: {len(files)} of {ranks} ranks have written into {parts}")
        return False
    packed = json.loads(ask("pack", [path, *files], "packing the recording"))
    note(f"recorded: {path}, {packed['bytes'] / 2**20:.2f} MiB of {ranks} ranks")
    return True


def _ranks_in(file: Path) -> int:
    """Of how many ranks the recording of one is. The header has it behind magic, version, chunk length and rank."""
    with file.open("rb") as head:
        return int.from_bytes(head.read(24)[20:24], "little")
