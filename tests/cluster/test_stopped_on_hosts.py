# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on several hosts that are stopped: one file has what all hosts know, and names those that are dead."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import harness
import pytest

pytestmark = pytest.mark.slow
PER_HOST = 2


def written(file: Path, seconds: float = 30) -> dict:
    """The statistics once the hosts have put them together."""
    end = time.monotonic() + seconds
    while not file.exists() or list(file.parent.glob(f"{file.name}.parts-*")):
        assert time.monotonic() < end, list(file.parent.iterdir())
        time.sleep(0.1)
    return json.loads(file.read_text())


def test_all_hosts_are_in_one_file(mpi, cluster, tmp_path):
    file, ranks = tmp_path / "stats.json", PER_HOST * len(cluster.names)
    program = harness.build_program(mpi, "stopped.c")
    job = cluster.run(mpi, [program, "kill", tmp_path / "ready"], env={"STRETTO_STATS": f"json:{file}"}, timeout=60)
    stats = written(file)
    assert job.returncode != 0 or mpi.kind == "openmpi"
    assert [rank["rank"] for rank in stats["per_rank"]] == list(range(ranks)) and stats["cut_short"]["not_read"] == []
    assert len({rank["host"] for rank in stats["per_rank"]}) == len(cluster.names)
    (call,) = stats["cut_short"]["open"]
    assert call["op"] == "barrier" and call["late"] == [ranks - 1], stats["cut_short"]
    caused = {rank["rank"]: rank["caused_ns"] for rank in stats["per_rank"]}
    assert max(caused, key=caused.get) == ranks - 1
    assert cluster.leftovers(15) == []


@pytest.mark.one_mpi
@pytest.mark.parametrize("dead", [0, 2])
def test_a_dead_host_is_named(mpi, cluster, tmp_path, dead):
    """If it is that of rank 0, another host writes."""
    file, ready, ranks = tmp_path / "stats.json", tmp_path / "ready", PER_HOST * len(cluster.names)

    def kill() -> None:
        while not ready.exists():
            time.sleep(0.05)
        cluster.kill(cluster.names[dead])

    program = harness.build_program(mpi, "stopped.c")
    threading.Thread(target=kill, daemon=True).start()
    cluster.run(mpi, [program, "hang", ready], env={"STRETTO_STATS": f"json:{file}"}, timeout=60)
    stats = written(file)
    lost = list(range(PER_HOST * dead, PER_HOST * (dead + 1)))
    assert stats["cut_short"]["not_read"] == lost, stats["cut_short"]
    assert [rank["rank"] for rank in stats["per_rank"]] == [r for r in range(ranks) if r not in lost]
    assert cluster.leftovers(15) == []
