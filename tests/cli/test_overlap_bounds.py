# SPDX-License-Identifier: BSD-3-Clause
"""Bounds of overlap, beside their closed forms for an Alltoall."""

from __future__ import annotations

import pytest
from stretto.bench.overlap_bounds import ORDERS, Level, bound, formula_1, production_bound, wire_time_s

SHAPES = [(4, 1), (8, 2), (12, 3), (16, 4)]  # ranks, of which on each host
COMPUTING = [0.1, 0.65, 1.0, 1.31, 4.0]  # on received data; the call takes 1
MANY = 64  # pieces of a block


def placed(ranks: int, per_host: int, where: str) -> list[Level]:
    hosts = ranks // per_host
    return [Level([f"h{r // per_host if where == 'block' else r % hosts}" for r in range(ranks)])]


@pytest.mark.parametrize("ranks, per_host", SHAPES)
@pytest.mark.parametrize("crc", COMPUTING)
@pytest.mark.parametrize("where", ["block", "cyclic"])
def test_blocks_by_rank_and_whole(ranks: int, per_host: int, crc: float, where: str) -> None:
    """Each block is there as a whole or not at all. In blocks, host 0 must send the first M blocks
    to everybody. In turn, the first of each host come together."""
    gain = production_bound("alltoall", placed(ranks, per_host, where), "rank", 1, 1.0, 0.0, crc)
    if where == "cyclic":
        assert gain == pytest.approx((per_host - 1) / per_host * min(1.0, crc))
    else:
        assert gain == pytest.approx(min(crc * (per_host - 1) / ranks, (per_host - 1) / per_host))


@pytest.mark.parametrize("ranks, per_host", SHAPES)
@pytest.mark.parametrize("crc", [0.1, 0.65, 1.31])
def test_blocks_by_rank_in_pieces(ranks: int, per_host: int, crc: float) -> None:
    """The program computes on the first part of a block while the rest of it comes: one block more
    hides."""
    for where, whole in (
        ("cyclic", (per_host - 1) / per_host * min(1.0, crc)),
        ("block", crc * (per_host - 1) / ranks),
    ):
        gain = production_bound("alltoall", placed(ranks, per_host, where), "rank", MANY, 1.0, 0.0, crc)
        assert gain == pytest.approx(min(1.0, whole + crc / ranks), abs=crc / ranks / MANY * 1.01)


@pytest.mark.parametrize("ranks, per_host", SHAPES)
@pytest.mark.parametrize("where", ["block", "cyclic"])
@pytest.mark.parametrize("order", ["own", "alike"])
def test_relative_to_the_own_rank_or_alike_is_formula_1(ranks: int, per_host: int, where: str, order: str) -> None:
    for curc, crc in ((1.66, 1.3), (0, 1.31), (0, 0.65), (0.66, 1.31), (0.66, 0.65), (0.3, 0.4)):
        gain = production_bound("alltoall", placed(ranks, per_host, where), order, MANY, 1.0, curc, crc)
        expected = formula_1(1.0, curc, crc)
        assert expected - crc / ranks <= gain <= expected + 1e-9
        if order == "alike" or per_host == 1:
            assert gain == pytest.approx(expected, abs=crc / MANY * 1.01)


@pytest.mark.parametrize(
    "op", ["alltoallv", "allgather", "allgatherv", "gather", "scatterv", "bcast", "reduce", "allreduce"]
)
@pytest.mark.parametrize("order", ORDERS)
def test_no_bound_is_above_formula_1(op: str, order: str) -> None:
    for where in ("block", "cyclic"):
        for curc, crc in ((0.0, 0.65), (0.66, 1.31), (2.0, 0.1)):
            gain = production_bound(op, placed(8, 2, where), order, 8, 1.0, curc, crc)
            assert 0 <= gain <= formula_1(1.0, curc, crc) + 1e-9
            if curc >= 1:
                assert gain == pytest.approx(1.0), "all of the call hides before data are touched"


def test_one_block_comes_as_it_is_touched() -> None:
    for op in ("bcast", "scatter", "reduce"):
        assert production_bound(op, placed(4, 1, "block"), "own", 8, 1.0, 0.0, 0.5) == pytest.approx(0.5 * 7 / 8)


def test_within_a_host_there_is_nothing_to_hide() -> None:
    assert production_bound("alltoall", [Level(["h"] * 4)], "own", 8, 1.0, 1.0, 1.0) == 0


def test_reverse_is_rank_from_the_other_end() -> None:
    hosts = placed(8, 2, "block")
    assert production_bound("alltoall", hosts, "reverse", 4, 1.0, 0.0, 1.0) == pytest.approx(
        production_bound("alltoall", hosts, "rank", 4, 1.0, 0.0, 1.0)
    )


def test_what_the_call_itself_takes() -> None:
    assert bound(production=40, comm=50, cpu=0, init=2) == 40, "data move while the call prepares"
    assert bound(production=50, comm=50, cpu=0, init=2) == 48
    assert bound(production=40, comm=50, cpu=20, init=2) == 30
    assert bound(production=40, comm=50, cpu=0, init=50) == 0


def test_the_slowest_level_counts() -> None:
    """Two switches with two hosts each. In rank order, all hosts first wait for rank 0's block."""
    hosts, leaves = ["a", "b", "c", "d"], ["x", "x", "y", "y"]
    of_hosts = production_bound("alltoall", [Level(hosts)], "rank", 1, 1.0, 0.0, 1.0)
    fast = production_bound("alltoall", [Level(hosts), Level(leaves, 1e9)], "rank", 1, 1.0, 0.0, 1.0)
    slow = production_bound("alltoall", [Level(hosts), Level(leaves, 0.1)], "rank", 1, 1.0, 0.0, 1.0)
    assert of_hosts == fast == 0
    assert slow == pytest.approx(1 / 4), "rank 0's blocks pass the switch first, then those of rank 1"


def test_a_call_may_take_longer_than_its_links() -> None:
    """What the links do not need hides behind any computing."""
    levels = [Level(["a", "b", "c", "d"], 8e6)]
    assert wire_time_s("alltoallv", levels, 1000) == pytest.approx(3 * 1000 * 8 / 8e6)
    assert wire_time_s("bcast", levels, 1000) == pytest.approx(1000 * 8 / 8e6), "one copy into each host"
    assert wire_time_s("reduce", levels, 1000) == pytest.approx(1000 * 8 / 8e6)
    assert wire_time_s("gather", levels, 1000) == pytest.approx(3 * 1000 * 8 / 8e6), "all into the root's host"
    assert wire_time_s("bcast", [Level(["a", "a"])], 1000) == 0
    tight = production_bound("alltoall", levels, "rank", 1, 1.0, 0.0, 2.0)
    loose = production_bound("alltoall", levels, "rank", 1, 1.0, 0.0, 2.0, wire=0.7)
    assert tight == 0 and loose == pytest.approx(0.3)
    assert production_bound("alltoall", levels, "rank", 1, 1.0, 0.0, 2.0, wire=5.0) == tight
