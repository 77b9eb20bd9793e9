# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of programs/dead_peer.c, of which one rank is killed."""

from __future__ import annotations

import re
from pathlib import Path

import harness
from stretto.mpi import Mpi

ON = {"STRETTO_NONBLOCKING": "on"}

# The launcher hears of the death when all other ranks have. Until then it sees a shell that runs.
KEEPER = r"""#!/bin/sh
folder=$1; others=$2; shift 2
"$@"
code=$?
for turn in $(seq 150); do
  [ "$(cat "$folder"/said.* | grep -c "^HEARD")" -ge "$others" ] && break
  sleep 0.1
done
exit $code
"""


def line(mpi: Mpi, folder: Path, ranks: int, way: str, victim: int, when: str) -> list[str | Path]:
    """What the launcher starts. Each rank writes what it has to say into `folder`."""
    keeper = folder / "keeper.sh"
    keeper.write_text(KEEPER)
    keeper.chmod(0o755)
    program = harness.build_program(mpi, "dead_peer.c")
    return [keeper, folder, str(ranks - 1), program, way, str(victim), when, folder]


def texts(job: harness.Job, folder: Path, ranks: int) -> list[str]:
    """What each rank has said. No data were wrong."""
    said = [(folder / f"said.{rank}").read_text() for rank in range(ranks)]
    assert job.returncode != 0 and not re.search("is wrong|has failed", "".join(said)), f"{said}\n{job.describe()}"
    return said


def check_all_heard(said: list[str], victim: int) -> None:
    """All other ranks have heard of it, and the victim is named."""
    assert any(re.search(rf": rank {victim} (on \S+ )?has (died|ended)", text) for text in said), said
    assert ["HEARD" in text for text in said] == [rank != victim for rank in range(len(said))], said
