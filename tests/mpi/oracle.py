# SPDX-License-Identifier: BSD-3-Clause
"""What the randomised tests share: how many cases where, and their seed."""

from __future__ import annotations

import os

import pytest
from stretto.mpi import find_all

CASES = 20_000
SHARE = {2: 0.4, 3: 0.1, 5: 0.2, 8: 0.1}  # more ranks than processors take their time
RANKS = [2, pytest.param(3, marks=pytest.mark.every), 5, 8]
SMALL_RING = {"STRETTO_SLOTS": "2", "STRETTO_SLOT_BYTES": "4K"}


def seed() -> int:
    """STRETTO_TEST_SEED=n tries other cases."""
    return int(os.environ.get("STRETTO_TEST_SEED", "20240"))


def cases_of(ranks: int, long_mode: bool) -> int:
    """All cases for each MPI with --long, otherwise each MPI's share of them."""
    if long_mode:
        return CASES
    mpis = sum(1 for m in find_all() if m.mpicxx is not None)
    return round(CASES * SHARE[ranks] / max(mpis, 1))
