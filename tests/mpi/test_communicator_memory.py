# SPDX-License-Identifier: BSD-3-Clause
"""What a hundred communicators take of a node's memory, beyond what they take of the MPI."""

from __future__ import annotations

import pytest


def _grown_mib(run_mpi, mpi, np, line, preload):
    """As users run it: the members of a communicator agree by its fifth call."""
    env = {"STRETTO_AGREE": ""} if preload else {}
    (result,) = run_mpi(mpi, np, line, preload=preload, timeout=300, env=env).ok().results()
    return result["grown_kib"] / 1024


def _grown_beyond(run_mpi, build_program, mpi, np, count):
    line = [build_program(mpi, "kept_communicators.c"), count]
    return _grown_mib(run_mpi, mpi, np, line, True) - _grown_mib(run_mpi, mpi, np, line, False)


@pytest.mark.one_mpi
def test_few_ranks(mpi, run_mpi, build_program):
    assert _grown_beyond(run_mpi, build_program, mpi, 4, 100) < 16


@pytest.mark.long
@pytest.mark.parametrize(("np", "count", "most_mib"), [(8, 100, 16), (64, 100, 170), (128, 20, 140)])
def test_many_ranks(mpi, run_mpi, build_program, np, count, most_mib):
    assert _grown_beyond(run_mpi, build_program, mpi, np, count) < most_mib
