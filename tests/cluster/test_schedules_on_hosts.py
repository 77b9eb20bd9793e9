# SPDX-License-Identifier: BSD-3-Clause
"""Collectives by schedule between hosts.

Their results are right, and each vector crosses the spine as seldom as possible. No option asks for
this.
"""

from __future__ import annotations

import json
from pathlib import Path

import harness
import pytest
from stretto.core.arguments import OF_ALL_RANKS

BYTES = 8 << 20


def schedules(*collectives: str) -> dict[str, str]:
    return {f"STRETTO_{name.upper()}": "schedule" for name in collectives}


# Ranks on one host follow each other, or lie as far apart as possible. The root is in the middle,
# so both uplinks count.
@pytest.mark.one_mpi
@pytest.mark.parametrize("where", ["slot", "node"])
@pytest.mark.parametrize("op", ["bcast", "reduce", "allreduce"])
def test_a_vector_crosses_the_spine_once(mpi, cluster, program, op, where):
    job = cluster.run(mpi, [program(mpi, "once.c"), op, str(BYTES), "5"], where=where).ok()
    once = 1.05 * BYTES + 300_000  # with headers and the launcher's traffic
    directions = [
        bytes_ for link in ("leaf0", "leaf1") for bytes_ in (job.links[link].up_bytes, job.links[link].down_bytes)
    ]
    crossings = 2 if op == "allreduce" else 1
    assert sum(directions) / 2 <= crossings * once and max(directions) <= once, job.links


def paths_of(report: Path) -> dict[str, set[str]]:
    """What served the calls of all eight ranks, by collective."""
    paths: dict[str, set[str]] = {}
    for rank in json.loads(report.read_text())["per_rank"]:
        for communicator in [*rank["communicators"], *rank.get("freed", [])]:
            for name, counted in communicator["collectives"].items():
                if communicator["size"] == 8:
                    paths.setdefault(name, set()).update(path for path, n in counted["calls"].items() if n)
    return paths


def test_auto_takes_schedules_for_scans_and_sums_of_parts(mpi, cluster, tmp_path):
    """Sums of parts by operations that do not commute are the MPI's."""
    if mpi.kind == "mpich":
        pytest.skip("MPICH's own sums of parts write beyond their buffers in this program, also without Stretto")
    report = tmp_path / "stats.json"
    binary = harness.build_cxx(mpi, "reductions.cpp")
    env = {"STRETTO_STATS": f"json:{report}"}
    job = cluster.run(mpi, [binary, "--cases", "80", "--any-order"], where="slot", env=env, timeout=180).ok()
    assert "80 cases ok" in job.stdout and job.messages() == [], job.describe()
    paths = paths_of(report)
    assert paths["scan"] == {"schedule"} and "schedule" in paths["exscan"], paths
    assert "schedule" in paths["reduce_scatter"] and "schedule" in paths["reduce_scatter_block"], paths


def test_auto_decides_alike_on_all_ranks(mpi, cluster, tmp_path):
    """Random lengths go by Stretto and by the MPI. A rank that decided otherwise would hang.

    The options avoid faults of Open MPI. Its Alltoallw refuses null types. Its han mixes up types
    that differ between ranks, and loses elements with gaps.
    """
    report = tmp_path / "stats.json"
    job = cluster.run(
        mpi,
        [harness.build_cxx(mpi, "differential.cpp"), "--cases", "200", "--exact", "--host-limits"],
        where="node",
        env={"STRETTO_STATS": f"json:{report}", "STRETTO_ALLTOALLW": "schedule", "OMPI_MCA_coll": "^han"},
        timeout=180,
    ).ok()
    assert "200 cases ok" in job.stdout and job.messages() == [], job.describe()
    paths = paths_of(report)
    assert paths["bcast"] == paths["gather"] == {"schedule"} and paths["alltoallv"] == {"host"}, paths
    assert "schedule" in paths["gatherv"] and "schedule" in paths["scatterv"], (
        paths
    )  # as long as there are connections, or may be
    assert {"schedule", "host"} in paths.values(), paths  # by length


@pytest.mark.parametrize("where", ["slot", "node"])
@pytest.mark.parametrize("source", ["differential.cpp", "reductions.cpp"])
def test_against_oracle(mpi, cluster, where, source, request):
    binary = harness.build_cxx(mpi, source)
    cases = 3_000 if request.config.getoption("--long", default=False) else 40
    env = {**schedules(*OF_ALL_RANKS), "STRETTO_TCP": "always" if where == "slot" else "off"}
    exact = (
        ["--exact", "--expect-native", "99"]
        if source == "differential.cpp"
        else ["--any-order", "--expect-native", "100"]
    )
    job = cluster.run(mpi, [binary, "--cases", str(cases), *exact], where=where, env=env, timeout=60 + cases).ok()
    assert f"{cases} cases ok, with us" in job.stdout and job.messages() == [], job.describe()


@pytest.mark.alone
def test_short_messages_go_by_connections(mpi, cluster, program):
    """Stretto opens connections where it measures that they are faster, as between these hosts.

    With STRETTO_TCP=off it does not mention short messages.
    """
    job = cluster.run(
        mpi, [program(mpi, "once.c"), "allreduce", "8", "5", "40"], where="node", env={"STRETTO_EXPLAIN": "1"}
    ).ok()
    said = [line for line in job.messages() if "short messages between nodes" in line]
    assert len(said) == 1 and "by connections of our own: there and back" in said[0], job.describe()
    off = cluster.run(
        mpi,
        [program(mpi, "once.c"), "allreduce", "8", "5", "40"],
        where="node",
        env={"STRETTO_EXPLAIN": "1", "STRETTO_TCP": "off"},
    ).ok()
    assert "short messages" not in off.stderr, off.describe()


@pytest.mark.one_mpi
def test_explain_says_how_calls_go(mpi, cluster, program):
    job = cluster.run(
        mpi, [program(mpi, "once.c"), "bcast", str(BYTES), "0"], where="node", env={"STRETTO_EXPLAIN": "1"}
    ).ok()
    said = [line.split("explain: ")[1] for line in job.stderr.splitlines() if "explain: " in line]
    assert any(line.startswith("bcast of 8 bytes, 8 ranks: ours, over all levels by binomial") for line in said), said
    assert any(
        line.startswith(
            f"bcast of {BYTES} bytes, 8 ranks: ours, over a chain of all ranks by chain, in 512 segments; measured"
        )
        for line in said
    ), said
    assert any(line.startswith("communicator 0 of 8 ranks, by the MPI: alltoallv, alltoallw") for line in said), said


RULES = """bcast ranks=8 nodes=4 bytes=0-1M: mpi
scatter nodes=2-: flat
allgather bytes=4K-: ring segment=4K
alltoallv: linear
gatherv: hierarchy
scatterv: binomial
"""


@pytest.mark.one_mpi
def test_rules_decide_alike_on_all_hosts(mpi, cluster, tmp_path):
    """On every rank, rank 0's file decides. Without it, other algorithms would serve these calls.

    The test switches Open MPI's han off. On its own, han gathers some derived types to wrong places
    (docs/cluster.md).
    """
    (tmp_path / "rules").write_text(RULES)
    report = tmp_path / "stats.json"
    job = cluster.run(
        mpi,
        [harness.build_cxx(mpi, "differential.cpp"), "--cases", "100", "--exact", "--host-limits"],
        env={
            "STRETTO_RULES": str(tmp_path / "rules"),
            "STRETTO_STATS": f"json:{report}",
            "STRETTO_EXPLAIN": "1",
            "OMPI_MCA_coll": "^han",
        },
        timeout=120,
    ).ok()
    assert "100 cases ok" in job.stdout, job.describe()
    said = [line.split("explain: ")[1] for line in job.stderr.splitlines() if "explain: " in line]
    assert any(
        line.startswith("scatter of ")
        and line.endswith(
            "8 ranks: ours, over all ranks, without levels by flat, in 1 segment; line 2 of the rules says so"
        )
        for line in said
    ), said
    assert any(
        line.startswith("allgather of ")
        and "8 ranks: ours, over all ranks, without levels by ring, in " in line
        and "line 3 of the rules" in line
        for line in said
    ), said
    paths = [
        {
            name: tuple(counted["calls"].items())
            for c in [*rank["communicators"], *rank.get("freed", [])]
            if c["size"] == 8
            for name, counted in c["collectives"].items()
        }
        for rank in json.loads(report.read_text())["per_rank"]
    ]
    assert all(p == paths[0] for p in paths[1:]), paths
    taken = {name: {path for path, n in calls if n} for name, calls in paths[0].items()}
    assert taken["bcast"] == {"host"} and taken["scatter"] == taken["alltoallv"] == {"schedule"}, taken


@pytest.mark.one_mpi
def test_rules_reach_as_far_as_they_say(mpi, cluster, program, tmp_path):
    (tmp_path / "rules").write_text(RULES)
    job = cluster.run(
        mpi,
        [program(mpi, "once.c"), "bcast", str(2 << 20), "0"],
        env={"STRETTO_RULES": str(tmp_path / "rules"), "STRETTO_EXPLAIN": "1"},
    ).ok()
    for bytes_, server in (
        (8, "the MPI's own, line 1 of the rules says so"),
        (2 << 20, "ours, over a chain of all ranks by chain"),
    ):
        assert any(f"bcast of {bytes_} bytes, 8 ranks: {server}" in line for line in job.stderr.splitlines()), (
            job.describe()
        )
