# SPDX-License-Identifier: BSD-3-Clause
"""What many communicators take of a node's memory, page tables included, beyond what they take of
the MPI. The ranks share processors."""

from __future__ import annotations

import pytest


def _grown(run_mpi, build_program, mpi, np, count, preload):
    """As users run it: the members of a communicator agree by its fifth call."""
    env = {"STRETTO_AGREE": ""} if preload else {}
    line = [build_program(mpi, "kept_communicators.c"), count]
    (result,) = run_mpi(mpi, np, line, preload=preload, timeout=600, env=env).ok().results()
    return result


def _beyond(run_mpi, build_program, mpi, np, count):
    """MiB of all ranks beyond the MPI's own."""
    ours, plain = (_grown(run_mpi, build_program, mpi, np, count, preload) for preload in (True, False))
    return {name: (ours[name] - plain[name]) / 1024 for name in ("pss_kib", "tables_kib")}


@pytest.mark.one_mpi
def test_few_ranks(mpi, run_mpi, build_program):
    grown = _beyond(run_mpi, build_program, mpi, 4, 100)
    assert sum(grown.values()) < 16, grown


@pytest.mark.one_mpi("openmpi")
def test_page_tables_stay_small(mpi, run_mpi, build_program):
    """A rank that looks at its peers' lines in many communicators finds them in few pages' tables."""
    grown = _beyond(run_mpi, build_program, mpi, 12, 40)
    assert grown["tables_kib"] < 4, grown


@pytest.mark.long
@pytest.mark.parametrize(("np", "count"), [(8, 500), (16, 1000), (64, 100), (128, 20)])
def test_many_ranks(mpi, run_mpi, build_program, np, count):
    grown = _beyond(run_mpi, build_program, mpi, np, count)
    assert sum(grown.values()) < 100, grown
