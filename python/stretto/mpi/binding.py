# SPDX-License-Identifier: BSD-3-Clause
"""Binds the ranks of a job where its launcher would not: MPICH's binds nothing by itself. Unbound
ranks wander between cores, and Stretto does not know which of them share a cache."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from stretto.core.console import note
from stretto.mpi.mpi import Mpi, further_ranks, usable_cores

TO_CORES = ["-bind-to", "core"]
# What a user says of it, to the launcher or in variables.
WORDS = r"--?(bind-to|bind-to-core|binding|bind|map-by|rankmap|cpus-per-rank)(=.*)?"
VARIABLES = r"HYDRA_(BIND|MAP|RANKMAP).*|MPICH_.*(BIND|AFFINITY).*"
THREADS = "OMP_NUM_THREADS"


def bound(mpi: Mpi, np: int, argv: Sequence[str], extra: Sequence[str], spread: bool) -> list[str]:
    """The launcher's words with those that bind ranks, of which a line tells the user."""
    words = words_for(mpi, np, argv, extra, spread)
    if words:
        note("each rank is bound to a core; -L '-bind-to none' leaves it to the system")
    return [*words, *extra]


def words_for(mpi: Mpi, np: int, argv: Sequence[str], extra: Sequence[str], spread: bool) -> list[str]:
    """Words for the launcher that bind each rank to a core of its own. None where somebody else says
    where ranks are, and none unless they fill the machine: fewer ranks would crowd on its first cores."""
    if mpi.kind != "mpich" or spread or is_told(extra) or has_threads():
        return []
    ranks = np + further_ranks(argv)
    return TO_CORES if ranks > 1 and ranks == usable_cores() else []


def is_told(extra: Sequence[str]) -> bool:
    """Whether the user binds ranks: by words, by variables, or by processors that this process may not use."""
    asked = any(re.fullmatch(WORDS, word) for word in extra) or any(
        re.fullmatch(VARIABLES, name) for name in os.environ
    )
    return asked or len(os.sched_getaffinity(0)) != os.cpu_count()


def has_threads() -> bool:
    """Whether ranks have threads, which want more than a core."""
    return os.environ.get(THREADS, "1") not in ("", "1")
