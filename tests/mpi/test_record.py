# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of real jobs: each call is there, with what it says, and a replay comes to the end."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from harness import has
from stretto.job import analysis, recordings


def _record(run_mpi, mpi, np, program, tmp_path, *words, env=None):
    job = run_mpi(mpi, np, [program, *words], env={"STRETTO_RECORD": str(tmp_path / "job"), **(env or {})}, timeout=90)
    return job, recordings.files_of(tmp_path / "job")


@pytest.mark.few
@pytest.mark.parametrize(("np", "switch"), [(2, "on"), (4, "on"), (3, "off")])
def test_every_call_is_recorded(mpi, run_mpi, build_program, tmp_path, np, switch):
    """The program counts its calls. With STRETTO=off the MPI serves them, and the recording is the same."""
    program = build_program(mpi, "recorded_calls.c")
    job, files = _record(run_mpi, mpi, np, program, tmp_path, env={"STRETTO": switch})
    counted = re.findall(r"COUNT (\d+) (\w+) (\d+)", job.ok().stdout)
    for rank in range(np):
        made = {name: int(count) for of, name, count in counted if int(of) == rank}
        found = Counter(call["call"] for call in recordings.calls(files, rank))
        assert found == made | {"MPI_Finalize": 1}, job.describe()
    answer = recordings.replay(files)
    assert "failure" not in answer, answer["failure"]
    assert answer["calls"] == sum(int(count) for _, _, count in counted) + np


@pytest.mark.one_mpi
def test_what_calls_say(mpi, run_mpi, build_program, tmp_path):
    job, files = _record(run_mpi, mpi, 4, build_program(mpi, "recorded_calls.c"), tmp_path)
    job.ok()
    by_name: dict[str, list] = {}
    for call in recordings.calls(files, 1):
        by_name.setdefault(call["call"], []).append(call)
    first = {name: calls[0] for name, calls in by_name.items()}
    back, right = -1 * 4, 1 * 4  # peers are relative, with two bits for their kind
    # A receive from anybody has the source that came, though the program wanted no status.
    assert first["MPI_Recv"]["source"] == [1] and first["MPI_Recv"]["got"] == [0, back, 1]
    assert first["MPI_Waitall"]["got"] == [0, back, 3]
    assert first["MPI_Recv"]["receives"] == [64] and first["MPI_Recv"]["receive_tag"] == [1]
    assert first["MPI_Sendrecv"]["destination"] == [right] and first["MPI_Sendrecv"]["source"] == [back]
    assert first["MPI_Isend"]["made"] == [2] and len(first["MPI_Waitany"]["ended"]) == 1
    assert first["MPI_Startall"]["started"] == first["MPI_Send_init"]["made"] + first["MPI_Recv_init"]["made"]
    assert first["MPI_Gatherv"]["sends"] == [8] and "receives_each" not in first["MPI_Gatherv"]
    assert first["MPI_Alltoallv"]["sends_each"] == [8] * 4 and first["MPI_Bcast"]["root"] == [3]
    assert first["MPI_Allgather"]["in_place"] == [1] and first["MPI_Allreduce"]["element"] == [8]
    # Communicators that come and go in a loop are one: each turn says the same.
    splits = by_name["MPI_Comm_split"]
    assert len({tuple(call["made_comm"]) for call in splits[:6]}) == 1
    assert first["MPI_Put"]["target"] == [2] and first["MPI_Put"]["window"] == first["MPI_Win_create"]["window"]
    assert first["MPI_Win_post"]["group"] == [back] and first["MPI_Win_start"]["group"] == [right]
    assert all(call["place"] and call["duration"] >= 0 and call["gap"] >= 0 for call in by_name["MPI_Barrier"])


@pytest.mark.few
def test_a_kill_leaves_what_was_recorded(mpi, run_mpi, build_program, tmp_path):
    _, files = _record(run_mpi, mpi, 3, build_program(mpi, "recorded_calls.c"), tmp_path, "die")
    assert len(files) == 3
    found = Counter(call["call"] for call in recordings.calls(files, 1))
    assert found["MPI_Barrier"] == 4 and found["MPI_Waitall"] == 18 and "MPI_Finalize" not in found
    analysed = analysis.analyse(files)
    assert not analysed.whole and 0 < analysed.efficiencies.parallel <= 1


@pytest.mark.few
def test_threads_that_call_at_once(mpi, run_mpi, build_program, tmp_path):
    """Each call is there once, with its thread."""
    job, files = _record(run_mpi, mpi, 2, build_program(mpi, "recorded_calls.c"), tmp_path, "threads")
    if job.returncode == 77:
        pytest.skip("this MPI does not allow it")
    job.ok()
    calls = [call for call in recordings.calls(files, 0) if call["call"] == "MPI_Sendrecv"]
    of_threads = Counter(call["thread"][0] for call in calls)
    assert sorted(of_threads.values()) == [300] * 4
    comms = {call["thread"][0]: call["comm"][0] for call in calls}
    assert len(set(comms.values())) == 4 and all(comms[call["thread"][0]] == call["comm"][0] for call in calls)


@pytest.mark.few
def test_a_file_that_cannot_be_made(mpi, run_mpi, build_program, tmp_path):
    (tmp_path / "file").touch()
    env = {"STRETTO_RECORD": str(tmp_path / "file" / "job")}
    job = run_mpi(mpi, 2, [build_program(mpi, "some_ranks.c")], env=env, timeout=30).ok()
    assert all("STRETTO_RECORD" in line and "cannot be written" in line for line in job.messages()), job.describe()
    assert job.messages() and all(r["wrong"] == 0 for r in job.results())


def _oversubscribed(mpi):
    if mpi.kind != "openmpi":
        return []
    return ["--map-by", ":OVERSUBSCRIBE"] if mpi.major >= 5 else ["--oversubscribe"]


@pytest.mark.few
def test_a_spawned_world_has_a_recording_of_its_own(mpi, run_mpi, build_program, tmp_path):
    """Both are replayed; calls to the other world take what they took."""
    argv, extra = [build_program(mpi, "spawn_merge.c")], _oversubscribed(mpi)
    env = {"STRETTO_RECORD": str(tmp_path / "job")}
    if run_mpi(mpi, 1, argv, preload=False, extra=extra).returncode != 0:
        pytest.skip("the host itself fails")
    run_mpi(mpi, 1, argv, extra=extra, env=env).ok()
    worlds = [recordings.files_of(tmp_path / "job")]
    if list(tmp_path.glob("job.spawned*")):  # the launcher decides whether the children are preloaded
        worlds.append(recordings.files_of(tmp_path / "job.spawned1"))
        assert len(worlds[1]) == 2
    for files in worlds:
        calls = recordings.calls(files, 0)
        spawns = [call for call in calls if call["call"] == "MPI_Comm_spawn"]
        assert len(spawns) == (files is worlds[0]) and calls[-1]["call"] == "MPI_Finalize"
        answer = recordings.replay(files)
        assert "failure" not in answer, answer
        merge = next(call for call in calls if call["call"] == "MPI_Intercomm_merge")
        assert answer["seconds"] >= merge["duration"] + sum(call["duration"] for call in spawns)


@pytest.mark.few
@pytest.mark.parametrize("how", ["alone", "world"])
def test_sessions_are_refused_or_recorded(mpi, run_mpi, build_program, tmp_path, how):
    if not has(mpi, "MPI_Session_init"):
        pytest.skip("this MPI has no sessions")
    argv = [build_program(mpi, "session_epochs.c"), how]
    if run_mpi(mpi, 2, argv, preload=False, timeout=20).returncode != 0:
        pytest.skip("the host itself fails")
    job = run_mpi(mpi, 2, argv, env={"STRETTO_RECORD": str(tmp_path / "job")}).ok()
    if how == "alone":
        assert [line for line in job.messages() if "sessions alone" in line] and not list(tmp_path.iterdir())
        return
    files = recordings.files_of(tmp_path / "job")
    members = {tuple(call["comm"]) for call in recordings.calls(files, 0) if call["call"] == "MPI_Bcast"}
    assert len(members) > 1, members  # those of sessions have no call that made them
    answer = recordings.replay(files)
    assert "failure" not in answer, answer
