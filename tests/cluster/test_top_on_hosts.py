# SPDX-License-Identifier: BSD-3-Clause
"""stretto top on a job of several hosts: each host's sees that host's ranks, and says that there are more."""

from __future__ import annotations

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness import clean_environment
from stretto.commands.top import jobs
from stretto.native import build

WATCHED = Path(__file__).resolve().parents[1] / "mpi" / "programs" / "watched.c"


def look(cluster, host, *arguments):
    paths = [
        f"{name}={value}" for name, value in clean_environment().items() if name in ("PYTHONPATH", "STRETTO_MPI_VENVS")
    ]
    return cluster.execute(host, "env", *paths, "COLUMNS=160", sys.executable, "-m", "stretto", "top", *arguments)


def until_waiting(cluster, host, file, ranks, late):
    """A look during which all of the host's ranks waited, but the late one; and the picture of it."""
    seen = None
    for _ in range(40):
        try:
            picture = look(cluster, host, "--once", "--json", str(file))
            seen = json.loads(file.read_text())
        except RuntimeError as error:  # not yet there
            seen = error
            time.sleep(0.2)
        else:
            if len(seen["rows"]) == ranks and all(
                row["doing"] == ("outside collectives" if row["rank"] == late else "allreduce") for row in seen["rows"]
            ):
                return seen, picture
    raise AssertionError(seen)


@pytest.mark.one_mpi
@pytest.mark.parametrize(
    ("way", "by", "shown"),
    [pytest.param("schedule", "schedule", "(schedule)", marks=pytest.mark.long), ("mpi", "host", "(MPI)")],
)
def test_each_host_shows_its_own_ranks(mpi, cluster, tmp_path, way, by, shown):
    """Of four ranks on two hosts the last is late for an Allreduce, which goes by schedule or is left to the MPI."""
    program = build.compile_program(mpi, [WATCHED], "cluster-watched", flags=["-O1", "-g"])
    jobs.looker()
    end, job, hosts = tmp_path / "end", [], cluster.names[:2]
    run = threading.Thread(
        target=lambda: job.append(
            cluster.run(mpi, [program, "late", end, "3"], 4, "slot", {"STRETTO_ALLREDUCE": way}, timeout=90)
        )
    )
    run.start()
    try:
        with ThreadPoolExecutor() as at_once:
            seen = list(at_once.map(lambda host: until_waiting(cluster, host, tmp_path / host, 2, 3), hosts))
        for index, (host, (view, picture)) in enumerate(zip(hosts, seen)):
            rows = view["rows"]
            assert (
                [row["rank"] for row in rows] == [2 * index, 2 * index + 1]
                and view["ranks"] == 4
                and view["host"] == host
            )
            assert all(row["by"] == by for row in rows if row["rank"] != 3), rows
            assert f"2 ranks of 4 on {host}" in picture and f"Allreduce {shown}" in picture, picture
    finally:
        end.touch()
        run.join()
    job[0].ok()
