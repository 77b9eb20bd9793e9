# SPDX-License-Identifier: BSD-3-Clause
"""Alltoalls that return before their data are there: whatever a program does next, it sees the data."""

from __future__ import annotations

import os
import re
import shutil

import pytest
from oracle import seed

# Blocks with whole pages of their own, and blocks of which some are shared.
BYTES = (1 << 20, 1_000_003)


def run(run_mpi, mpi, ranks, words, guard, wrapper, **options):
    environment = {"STRETTO_OVERLAP": "65536", "STRETTO_OVERLAP_GUARD": guard}
    return run_mpi(mpi, ranks, [*wrapper, *words], env=environment, timeout=120, **options)


# Buffers that return early, and those that wait. The rest depends on the machine.
DEFERRED = {"of bss", "of dropped", "of freed", "of mergeable", "of huge pages"}
STACKS = {"of stack", "of thread stack"}
WAITING = {"of data", "of private file", "of shared file", "of hugetlbfs", "of locked", "of pinned"}


def check(job, kernel_waits=False) -> None:
    results = job.ok().results()
    assert len(results) >= 30, job.describe()
    early = {r["case"] for r in results if r["early"]}
    assert early.isdisjoint(WAITING if kernel_waits else WAITING | STACKS), job.describe()
    assert len(early & DEFERRED) >= 4, job.describe()
    assert [r["case"] for r in results if r["wrong"] != 0] == [], job.describe()
    assert sum(r["early"] for r in results) >= 4, job.describe()


@pytest.fixture
def as_nobody(tmp_path):
    """A wrapper: the rank runs as an ordinary user, who is granted nothing."""
    if shutil.which("setpriv") is None or os.geteuid() != 0:
        pytest.skip("needs root and setpriv")
    script = tmp_path / "as_nobody.sh"
    script.write_text(
        '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs "$@"\n'
    )
    script.chmod(0o755)
    return script


@pytest.mark.parametrize(
    "ranks,guard",
    [
        (2, "auto"),
        (3, "user"),
        pytest.param(5, "auto", marks=pytest.mark.long),
        (2, "segv"),
        pytest.param(3, "segv", marks=pytest.mark.long),
    ],
)
def test_whatever_a_program_does(mpi, run_mpi, build_program, on_nodes, ranks, guard):
    program = build_program(mpi, "under_way.c")
    check(run(run_mpi, mpi, ranks, [program, BYTES[ranks % 2]], guard, [on_nodes(1)]), guard == "auto")


@pytest.mark.only(kind="mpich")  # Open MPI's launcher must be the same user as its ranks
def test_an_ordinary_user(mpi, run_mpi, build_program, on_nodes, as_nobody, tmp_path):
    for path in [tmp_path, *tmp_path.parents]:
        if path.stat().st_uid == os.geteuid() and str(path).startswith("/tmp/"):
            path.chmod(path.stat().st_mode | 0o055)
    check(run(run_mpi, mpi, 2, [build_program(mpi, "under_way.c"), BYTES[1]], "auto", [on_nodes(1), as_nobody]))


@pytest.mark.few
def test_ranks_of_one_node_and_of_others(mpi, run_mpi, build_program, on_nodes):
    check(run(run_mpi, mpi, 4, [build_program(mpi, "under_way.c"), 300_000], "user", [on_nodes(2)]))


@pytest.mark.parametrize("ranks,guard", [(3, "user"), (2, "auto"), (2, "segv")])
def test_random_calls_against_an_oracle(mpi, run_mpi, build_cxx, on_nodes, long_mode, ranks, guard):
    """The random differential test, with every Alltoall and Alltoallv of 4 KiB or more deferred."""
    environment = {"STRETTO_OVERLAP": "4096", "STRETTO_OVERLAP_GUARD": guard}
    for ring, cases in ((64 << 10, 200), (1 << 20, 40)):  # lengths are drawn up to a few rings
        cases *= 10 if long_mode else 1
        line = [build_cxx("differential.cpp"), "--cases", cases, "--seed", seed() + ranks, "--ring", ring]
        line += ["--exact", "--host-limits"]
        run_mpi(mpi, ranks, [on_nodes(1), *line], env=environment, timeout=200).ok()


EARLY = {"allreduce", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan", "alltoallw"}


@pytest.mark.parametrize(
    "ranks,guard,per_node",
    [
        (2, "auto", 1),
        (3, "segv", 1),
        (4, "user", 2),
        (5, "user", 1),
        pytest.param(7, "auto", 1, marks=pytest.mark.long),
        pytest.param(8, "user", 3, marks=pytest.mark.long),
    ],
)
def test_results_are_right_whoever_is_late(mpi, run_mpi, build_program, on_nodes, ranks, guard, per_node):
    """A function of the program combines as without overlap."""
    line = [build_program(mpi, "early_calls.c"), seed()]
    results = run(run_mpi, mpi, ranks, line, guard, [on_nodes(per_node)]).ok().results()
    assert [r for r in results if r["wrong"]] == [] and len(results) == ranks * (len(EARLY) + 1)
    early = {r["case"] for r in results if r["early"]}  # on a busy machine data may be there before the call returns
    assert early <= EARLY and len(early) >= 4, early


GAPPED = {"alltoall", "alltoallw", "allgather", "bcast", "gather", "scatter"}


@pytest.mark.parametrize(
    "ranks,guard,per_node",
    [
        (2, "auto", 1),
        (3, "user", 1),
        (4, "auto", 2),
        pytest.param(5, "auto", 1, marks=pytest.mark.long),
        pytest.param(8, "auto", 3, marks=pytest.mark.long),
        pytest.param(3, "segv", 1, marks=pytest.mark.long),
    ],
)
def test_blocks_with_gaps(mpi, run_mpi, build_program, on_nodes, ranks, guard, per_node):
    """What lies in gaps stays, and may change while data are under way. With kernel faults such calls return early."""
    line = [build_program(mpi, "gapped_blocks.c"), seed()]
    environment = {"STRETTO_OVERLAP": "16384", "STRETTO_OVERLAP_GUARD": guard, "STRETTO_EXPLAIN": "1"}
    job = run_mpi(mpi, ranks, [on_nodes(per_node), *line], env=environment, timeout=120).ok()
    results = job.results()
    assert [r for r in results if r["wrong"] or r["gaps"]] == [] and len(results) == ranks * len(GAPPED)
    by_kernel = "buffers are guarded by kernel faults" in job.output  # a call without gaps comes first
    assert any(r["early"] for r in results) == by_kernel, job.describe()


@pytest.mark.parametrize("guard", ["auto", "user", "segv"])
def test_data_under_way_at_the_end(mpi, run_mpi, build_program, on_nodes, guard):
    run(run_mpi, mpi, 3, [build_program(mpi, "under_way.c"), 8 << 20, "at_the_end"], guard, [on_nodes(1)]).ok()


def test_a_dead_peer_ends_the_job_with_its_name(mpi, run_mpi, build_program, on_nodes):
    """Launchers may end the others before these have said anything. Open MPI's then names the rank."""
    job = run(run_mpi, mpi, 3, [build_program(mpi, "under_way.c"), 1 << 20, "killed"], "auto", [on_nodes(1)])
    assert job.returncode != 0, job.describe()
    said = [line for line in job.messages() if "returned early" in line]
    by_launcher = r"process rank 1 with PID \d+ on node \S+ exited on\s+signal 9"
    assert said or mpi.kind == "mpich" or re.search(by_launcher, job.output), job.describe()
    assert all("has died, or the connection to it is gone" in line for line in said), job.describe()
