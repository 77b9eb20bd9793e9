# SPDX-License-Identifier: BSD-3-Clause
"""Address space and core dumps.

The tests measure how much of its peers' shared memory a process maps, and what it does under
`ulimit -v`. A crash must not write payload to the disk.
"""

from __future__ import annotations

import pytest

MIB = 1024  # in KiB
OWN_MIB = 256  # what the owner maps of a segment (STRETTO_SEGMENT_BYTES)
PEER_MIB = 40  # what a peer maps of it: two lanes of at most 2 MiB, and 32 MiB for control lines


def _run(mpi, run_mpi, build_program, np, *arguments, env=None):
    job = run_mpi(mpi, np, [build_program(mpi, "memory_use.c"), *arguments], env=env).ok()
    results = job.results()
    assert len(results) == np, job.describe()
    return job, results


@pytest.mark.parametrize("np", [2, 6])
def test_address_space_grows_by_little_for_each_peer(mpi, run_mpi, build_program, np):
    _, results = _run(mpi, run_mpi, build_program, np)
    for result in results:
        assert result["path"] not in ("host", "none"), result
        assert result["segments_kib"] <= (OWN_MIB + (np - 1) * PEER_MIB) * MIB, result


@pytest.mark.few
def test_core_dumps_have_control_lines_and_no_payload(mpi, run_mpi, build_program):
    _, results = _run(mpi, run_mpi, build_program, 2)
    for result in results:
        assert result["path"] not in ("host", "none"), result
        assert 0 < result["dumped_kib"] <= 1 * MIB, result


def test_a_limit_with_room_is_kept(mpi, run_mpi, build_program):
    _, results = _run(mpi, run_mpi, build_program, 4, 400)
    for result in results:
        assert result["path"] not in ("host", "none"), result
        assert result["segments_kib"] <= 60 * MIB, result


def test_a_limit_without_room_is_named_and_nothing_stays_mapped(mpi, run_mpi, build_program):
    job, results = _run(mpi, run_mpi, build_program, 4, 12, env={"STRETTO_STATS": "text"})
    for result in results:
        assert result["path"] == "host", job.describe()
        assert result["segments_kib"] == 0, result
    assert "RLIMIT_AS is " in job.output, job.describe()
