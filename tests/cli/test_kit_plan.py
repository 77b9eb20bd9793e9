# SPDX-License-Identifier: BSD-3-Clause
"""What the kit measures on machines that are not at hand: processors, ranks, lengths, pairs."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import made_up
from stretto.bench.request import OPS
from stretto.core import processors
from stretto.kit import latencies, plan
from stretto.kit.plan import Settings

GIB = 1 << 30


def test_cores_are_taken_cache_by_cache(tmp_path: Path) -> None:
    here = made_up(tmp_path, sockets=2, numa=2, l3s=2, cores=2, threads=2)
    shape = here.as_json()
    counts = [shape[key] for key in ("sockets", "numa_nodes", "l3_domains", "cores", "threads_per_core")]
    assert counts == [2, 4, 8, 16, 2]
    assert shape["order"] == list(range(16))  # no second thread of a core
    assert shape["caches"] == [{"level": 3, "type": "unified", "bytes": 32 << 20, "cpus": 4}]
    assert processors.from_json(shape) == here
    assert [c.cpu for c in processors.spread(here.cores())][:8] == [0, 8, 2, 10, 4, 12, 6, 14]


def test_processors_that_may_not_be_used_are_left_out(tmp_path: Path) -> None:
    made_up(tmp_path, cores=4)
    here = processors.read(tmp_path, [2, 3, 9])
    assert [c.cpu for c in here.cores()] == [2, 3, 9]
    assert processors.common_level(here.cores()[0], here.cores()[2]) == "machine"


def test_a_machine_that_shows_nothing_has_one_socket(tmp_path: Path) -> None:
    here = processors.read(tmp_path, range(4))
    assert len(here.cores()) == 4 and here.as_json()["l3_domains"] == 1
    assert processors.common_level(here.cores()[0], here.cores()[3]) == "l3"


@pytest.mark.parametrize(
    "cores, ranks", [(1, []), (2, [2]), (12, [2, 4, 8, 12]), (192, [2, 4, 8, 16, 32, 64, 128, 192])]
)
def test_ranks_double_up_to_all_cores(cores: int, ranks: list[int]) -> None:
    assert plan.ladder(cores) == ranks


def test_two_ranks_are_also_put_far_apart(tmp_path: Path) -> None:
    here = made_up(tmp_path, sockets=2, numa=2, l3s=2, cores=2)
    assert plan.placements(here, 2, far=False) == {
        "close": (0, 1),
        "across-l3": (0, 2),
        "across-numa": (0, 4),
        "across-socket": (0, 8),
    }
    assert plan.placements(here, 4, far=False) == {"close": (0, 1, 2, 3)}
    assert plan.placements(here, 4, far=True)["spread"] == (0, 8, 2, 10)
    assert "spread" not in plan.placements(made_up(tmp_path / "flat", 1, 1, 1, 4), 4, far=True)  # the same as close


@pytest.mark.parametrize("ranks", [2, 16, 192])
def test_buffers_fit_into_the_memory(ranks: int) -> None:
    found = list(plan.requests(Settings(), ranks, 4 * GIB))
    assert sorted(op for request in found for op in request.ops) == sorted(OPS)
    for request in found:
        blocks = ranks if set(request.ops) & set(plan.OF_BLOCKS) else 1
        assert 8 * ranks * blocks * request.max_bytes <= 4 * GIB
    # What needs one block keeps all lengths.
    assert next(r for r in found if "allreduce" in r.ops).max_bytes == Settings().max_bytes


def test_pools_are_longer_than_the_caches(tmp_path: Path) -> None:
    here = made_up(tmp_path, sockets=2, numa=1, l3s=8, cores=8)
    assert plan.pool_bytes(here, range(128)) == 16 << 20  # 8 ranks have 256 MiB, the cache 32
    assert plan.pool_bytes(here, (0, 8)) == 128 << 20
    assert plan.pool_bytes(made_up(tmp_path / "wide", 1, 1, 1, 32), range(32)) == plan.LEAST_POOL_BYTES


def test_a_job_says_what_it_will_report(tmp_path: Path) -> None:
    here = made_up(tmp_path, 1, 1, 1, 2)
    (job,) = plan.jobs(["x"], here, Settings(ops=("barrier", "bcast"), min_bytes=8, max_bytes=1000), GIB)
    assert job.rows() == [("barrier", 0), ("bcast", 8), ("bcast", 64), ("bcast", 512)]


def test_all_pairs_of_a_small_machine_and_some_of_a_big_one(tmp_path: Path) -> None:
    small = made_up(tmp_path / "small", 2, 1, 2, 4, threads=2)
    pairs, complete = latencies.pairs_of(small)
    assert complete and len(pairs) == 16 * 15 // 2 + 16  # and the threads of each core
    big = made_up(tmp_path / "big", 2, 4, 3, 8)
    pairs, complete = latencies.pairs_of(big)
    levels = [processors.common_level(*pair) for pair in pairs]
    assert not complete and {level: levels.count(level) for level in set(levels)} == dict.fromkeys(
        ("l3", "numa", "socket", "machine"), latencies.OF_A_LEVEL
    )
    assert pairs == latencies.pairs_of(big)[0]


def test_levels_have_medians_over_their_pairs() -> None:
    rows = [{"level": "l3", "flag_ns": 2 * ns, "exchange_ns": ns} for ns in (30.0, 20.0, 70.0)]
    found = latencies.by_level([*rows, {"level": "machine", "flag_ns": 300.0, "exchange_ns": 200.0}])
    assert found["l3"] == {
        "pairs": 3,
        "flag_ns": 60.0,
        "flag_ns_least": 40.0,
        "flag_ns_most": 140.0,
        "exchange_ns": 30.0,
        "exchange_ns_least": 20.0,
        "exchange_ns_most": 70.0,
    }
    assert list(found) == ["l3", "machine"] and found["machine"]["exchange_ns"] == 200.0
