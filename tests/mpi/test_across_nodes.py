# SPDX-License-Identifier: BSD-3-Clause
"""Calls between simulated nodes: the ranks of each node see a boot id of their own."""

from __future__ import annotations

import pytest
from stretto.core.arguments import OF_ALL_RANKS


@pytest.mark.parametrize("sockets", ["auto", "always", "off"])
def test_in_place_after_ways_have_changed(mpi, run_mpi, build_program, on_nodes, sockets):
    """The 32nd call opens connections, or finds them useless. Only the root passes MPI_IN_PLACE."""
    if mpi.kind == "mpich" and mpi.major < 5:
        pytest.skip("Debian's MPICH hangs in its own MPI_Finalize between pretended nodes: 9 of 25 plain runs")
    run_mpi(
        mpi, 4, [on_nodes(2), build_program(mpi, "across_nodes.c"), "scatter", 5000], env={"STRETTO_TCP": sockets}
    ).ok()


@pytest.mark.few
@pytest.mark.parametrize("np", [3, 5, 8])
def test_all_kinds_across_a_change_of_ways(mpi, run_mpi, build_program, on_nodes, np):
    run_mpi(mpi, np, [on_nodes(2), build_program(mpi, "across_nodes.c"), "mixed", np], timeout=120).ok()


@pytest.mark.few
@pytest.mark.parametrize("victim", [2, 3])
def test_a_dead_peer_on_another_node(mpi, run_mpi, build_program, on_nodes, victim):
    stays = mpi.kind == "mpich" and victim == 2  # its launcher lets the other ranks run for a while
    heard = False
    for _ in range(8 if stays else 1):  # messages of the others are lost if the launcher ends first
        job = run_mpi(
            mpi,
            4,
            [on_nodes(2), build_program(mpi, "across_nodes.c"), "kill", victim],
            env={"STRETTO_TCP": "always"},
            extra=["-disable-auto-cleanup"] if stays else [],
        )
        assert job.returncode != 0, job.describe()
        assert "arguments to this collective are wrong" not in job.output, job.describe()
        named = any(f"rank {victim} on " in line for line in job.messages())
        heard = heard or (named and "another rank has died, or the connection to it is gone" in job.output)
        if heard:
            break
    assert heard or not stays, job.describe()


@pytest.mark.few
def test_members_tell_each_other_their_ranks_in_the_world(mpi, run_mpi, build_program, on_nodes):
    """On communicators whose ranks are in any order, of some or all nodes."""
    job = run_mpi(mpi, 7, [on_nodes(2), build_program(mpi, "ranks_of_world.c")], timeout=120).ok()
    assert [r["wrong"] for r in job.results()] == [0], job.describe()


@pytest.mark.only(kind="openmpi")
@pytest.mark.few
def test_members_of_several_worlds_tell_each_other_nothing(mpi, run_mpi, build_program, on_nodes):
    """The spawned ranks see another boot id than their parents."""
    extra = ["--map-by", ":OVERSUBSCRIBE"] if mpi.major >= 5 else ["--oversubscribe"]
    job = run_mpi(mpi, 2, [on_nodes(1), build_program(mpi, "spawn_merge.c")], extra=extra).ok()
    assert {r["path"] for r in job.results()} == {"host"}, job.describe()


CALLS = ("bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")


@pytest.mark.few
@pytest.mark.parametrize("each", [33, pytest.param(64, marks=pytest.mark.long)])
def test_nodes_of_many_ranks(mpi, run_mpi, build_program, on_nodes, each):
    """What is built in depends on the number of nodes, not of ranks. Only leaders of nodes connect."""
    program = build_program(mpi, "wide_nodes.c")
    env = {"STRETTO_EXPLAIN": "1", "STRETTO_TCP": "always"}
    job = run_mpi(mpi, 2 * each, [on_nodes(each), program, 2], env=env, timeout=280).ok()
    assert "short messages between nodes by connections of our own" in job.stderr, job.describe()
    for name in CALLS:
        assert f"{name} of " in job.stderr, job.describe()
    said = [line for line in job.stderr.splitlines() if f", {2 * each} ranks: " in line]
    assert said and all(": ours, over " in line for line in said), job.describe()
    assert job.results()[0]["path"] == "schedule", job.describe()


# Nodes of few ranks have tiers where an option asks for them.
TIERS = {"STRETTO_TIERS": "3"}


@pytest.mark.few
@pytest.mark.parametrize("source", ["differential.cpp", "reductions.cpp"])
def test_a_node_makes_its_part_by_tiers(mpi, run_mpi, build_cxx, on_nodes, source):
    exact = ["--exact", "--expect-native", 99] if source == "differential.cpp" else ["--any-order"]
    env = TIERS | {f"STRETTO_{name.upper()}": "schedule" for name in OF_ALL_RANKS}
    job = run_mpi(mpi, 8, [on_nodes(4), build_cxx(source), "--cases", 40, *exact], env=env, timeout=120).ok()
    said = [line for line in job.messages() if "STRETTO_TIERS has no effect" not in line]  # of small communicators
    assert "40 cases ok" in job.stdout and said == [], job.describe()


@pytest.mark.few
@pytest.mark.parametrize("victim", [1, 3, 4])
def test_a_dead_peer_leaves_nobody_waiting_in_tiers(mpi, run_mpi, build_program, on_nodes, victim):
    """The victim is on the same node as some, and leads the other one or not."""
    program = build_program(mpi, "across_nodes.c")
    job = run_mpi(mpi, 8, [on_nodes(4), program, "kill", victim], env=TIERS | {"STRETTO_TCP": "always"})
    assert job.returncode != 0, job.describe()
    assert "arguments to this collective are wrong" not in job.output, job.describe()
