# SPDX-License-Identifier: BSD-3-Clause
"""A rank is killed while the others wait for nonblocking or persistent collectives: all of them hear of it."""

from __future__ import annotations

import re

import dead_peer
import pytest

pytestmark = pytest.mark.only(kind="mpich", origin="wheel")  # its launcher does not see what its shells start


@pytest.fixture
def said(mpi, run_mpi, on_nodes, tmp_path):
    """said(way, victim, when, each) -> what each rank of 4 wrote, of which `each` share a node."""

    def run(way, victim, when, each):
        line = [on_nodes(each), *dead_peer.line(mpi, tmp_path, 4, way, victim, when)]
        return dead_peer.texts(run_mpi(mpi, 4, line, env=dead_peer.ON, timeout=40), tmp_path, 4)

    return run


@pytest.mark.parametrize(
    ("way", "victim", "when", "each"),
    [
        ("wait", 2, "early", 2),
        ("test", 1, "late", 2),
        ("several", 3, "early", 2),
        ("persistent", 2, "late", 2),
        ("freed", 2, "early", 2),
        ("wait", 1, "late", 4),
        ("test", 0, "early", 4),
        ("persistent", 2, "early", 4),
        ("freed", 3, "early", 4),
    ],
)
def test_all_ranks_hear_of_it(said, way, victim, when, each):
    dead_peer.check_all_heard(said(way, victim, when, each), victim)


@pytest.mark.parametrize("each", [2, 4])
def test_finalize_does_not_wait_for_it(said, each):
    texts = said("finalize", 2, "early", each)
    assert ["HEARD" in text for text in texts] == [True, True, False, True], texts


@pytest.mark.parametrize("each", [2, 4])
def test_a_fatal_handler_ends_the_job(said, each):
    texts = said("fatal", 1, "early", each)
    assert any(re.search(r"MPI_Iallreduce, rank \d of a communicator of 4: another rank has ", t) for t in texts), texts
