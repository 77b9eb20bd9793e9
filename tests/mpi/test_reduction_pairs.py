# SPDX-License-Identifier: BSD-3-Clause
"""Every predefined operation on every predefined datatype, beside the MPI's own function.

Both compute the same results, and both refuse the same pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.mpi import Mpi


def test_all_pairs(mpi: Mpi, run_mpi: Callable, build_cxx: Callable) -> None:
    job = run_mpi(mpi, 2, [build_cxx("reduction_pairs.cpp")], timeout=120).ok()
    assert "all as by the host" in job.stdout and job.messages() == [], job.describe()


@pytest.mark.one_mpi("openmpi")
def test_all_pairs_by_schedule(mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path) -> None:
    file = tmp_path / "placement"
    file.write_text("0: node=0\n1-2: node=1\n")
    env = {
        "STRETTO_PLACEMENT": str(file),
        "STRETTO_ALLREDUCE": "schedule",
        "STRETTO_REDUCE": "schedule",
        "STRETTO_REDUCE_SCATTER": "schedule",
        "STRETTO_SCAN": "schedule",
    }
    job = run_mpi(mpi, 3, [build_cxx("reduction_pairs.cpp"), "5"], env=env, timeout=120).ok()
    assert "all as by the host" in job.stdout and job.messages() == [], job.describe()
