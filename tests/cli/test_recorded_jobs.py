# SPDX-License-Identifier: BSD-3-Clause
"""Recorded jobs: what a replay makes of calls, efficiencies, and the commands from end to end."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import recorded
from recorded import Rank, peer, small_job
from stretto.job import analysis, efficiencies, recordings, what_if
from stretto.model.profile import logp
from stretto.mpi import find_all
from stretto.native import build

NEAR = 0.02  # times of a recording lie on a scale


def job(tmp_path: Path, ranks: int) -> list[Rank]:
    return [Rank(rank, ranks) for rank in range(ranks)]


def ends(files: list[Path], *words: str, profile=None) -> list[float]:
    """When each rank ends, in microseconds."""
    answer = recordings.replay(files, words, profile)
    assert "failure" not in answer, answer
    return [rank["end"] * 1e6 for rank in answer["ranks"]]


def test_a_receive_waits_for_its_send(tmp_path: Path) -> None:
    a, b = job(tmp_path, 2)
    a.call("MPI_Send", 1000, comm=0, destination=peer(1), send_tag=3, sends=8)
    b.call("MPI_Recv", 10, 900, comm=0, source=peer(-1), receive_tag=3, receives=64)
    b.call("MPI_Barrier", 500, comm=0)
    a.call("MPI_Barrier", 1, 499, comm=0)
    assert ends(recorded.write(tmp_path, [a, b])) == pytest.approx([1500, 1500], rel=NEAR)


def test_a_long_message_waits_for_its_receive(tmp_path: Path) -> None:
    a, b = job(tmp_path, 2)
    a.call("MPI_Send", 10, 900, comm=0, destination=peer(1), send_tag=3, sends=1 << 20)
    b.call("MPI_Recv", 1000, comm=0, source=peer(-1), receive_tag=3, receives=1 << 20)
    files = recorded.write(tmp_path, [a, b])
    assert ends(files) == pytest.approx([1000, 1000], rel=NEAR)
    assert ends(files, "--eager", str(1 << 20)) == pytest.approx([10, 1000], rel=NEAR)


def test_a_message_costs_what_the_machine_says(tmp_path: Path) -> None:
    a, b = job(tmp_path, 2)
    for i in range(3):
        a.call("MPI_Send", 100, comm=0, destination=peer(1), send_tag=3, sends=1001)
        b.call("MPI_Recv", 1 if i else 10, 90, comm=0, source=peer(-1), receive_tag=3, receives=1001)
    files = recorded.write(tmp_path, [a, b])
    machine = logp("os=2000,or=3000,L=50000,g=0,G=10")  # nanoseconds
    # Each send 102 us; the last one arrives 50 + 10 us later and is received in 3.
    assert ends(files, profile=machine) == pytest.approx([306, 306 + 60 + 3], rel=NEAR)
    slow = what_if.changed(machine, what_if.changes("latency=x2,bandwidth=x0.5", machine))
    assert ends(files, profile=slow) == pytest.approx([306, 306 + 100 + 20 + 3], rel=NEAR)


def test_requests_wildcards_and_orders(tmp_path: Path) -> None:
    """Rank 0 gets from anybody what it got; of three requests it waits for one that ended, then for the others."""
    a, b, c = job(tmp_path, 3)
    for each, when in ((b, 300), (c, 100)):
        each.call("MPI_Send", when, comm=0, destination=peer(-each.rank), send_tag=each.rank, sends=8)
    a.call("MPI_Irecv", 1, comm=0, source=recorded.ANY, receive_tag=-1, receives=8, made=0)
    a.call("MPI_Irecv", 1, comm=0, source=recorded.ANY, receive_tag=1, receives=8, made=1)
    a.call("MPI_Waitany", 1, 90, waited=[0, 1], ended=0, got=[0, peer(2), 2])
    a.call("MPI_Comm_split", 50, comm=0, made_comm=2)
    a.call("MPI_Test", 1, 1, waited=[-1, 1], flag=0)
    a.call("MPI_Waitall", 1, 90, waited=[-1, 1], got=[1, peer(1), 1])
    for each in (b, c):
        each.call("MPI_Comm_split", 1, comm=0, made_comm=2)
    first, _, last = ends(recorded.write(tmp_path, [a, b, c]))
    assert first == pytest.approx(303, rel=NEAR) and last == pytest.approx(301, rel=NEAR)


def test_who_only_sends_goes_on(tmp_path: Path) -> None:
    """The root of a Bcast does not wait for the others, and a leaf of a Reduce does not wait for the root."""
    a, b = job(tmp_path, 2)
    a.call("MPI_Bcast", 10, comm=0, sends=8, root=0)
    b.call("MPI_Bcast", 500, comm=0, sends=8, root=0)
    a.call("MPI_Reduce", 10, comm=0, sends=8, root=1)
    b.call("MPI_Reduce", 500, comm=0, sends=8, root=1)
    files = recorded.write(tmp_path, [a, b])
    assert ends(files) == pytest.approx([20, 1000], rel=NEAR)
    assert ends(files, "--compute", "2") == pytest.approx([40, 2000], rel=NEAR)
    assert ends(files, "--balance")[0] == pytest.approx(510, rel=NEAR)


def test_the_root_of_two_groups_waits_for_the_other_one(tmp_path: Path) -> None:
    """Rank 0 is the root of a Reduce that rank 1, the other group, sends to. It is no rank of its own group's."""
    a, b = job(tmp_path, 2)
    for each, other in ((a, 1), (b, 0)):
        each.define(3, b"".join(map(recorded.zigzag, (2, 1, 0, 1, 1, each.rank, 0, 1, other, 0, 1))))
    a.call("MPI_Reduce", 10, comm=2, sends=8, root=-3)
    b.call("MPI_Reduce", 500, comm=2, sends=8, root=0)
    b.call("MPI_Send", 50, comm=0, destination=peer(-1), send_tag=3, sends=8)
    a.call("MPI_Recv", 10, comm=0, source=peer(1), receive_tag=3, receives=8)
    assert ends(recorded.write(tmp_path, [a, b])) == pytest.approx([550, 550], rel=NEAR)


def test_persistent_requests_and_neighbours(tmp_path: Path) -> None:
    ranks = job(tmp_path, 3)
    for each in ranks:
        left, right = (each.rank + 2) % 3 - each.rank, (each.rank + 1) % 3 - each.rank
        each.call("MPI_Send_init", 1, comm=0, destination=peer(right), send_tag=1, sends=8, made=0)
        each.call("MPI_Recv_init", 1, comm=0, source=peer(left), receive_tag=1, receives=8, made=1)
        for turn in range(4):
            each.call("MPI_Startall", 100 if (each.rank + turn) % 3 == 0 else 1, started=[0, 1])
            each.call("MPI_Waitall", 1, waited=[0, 1])
    answer = ends(recorded.write(tmp_path, ranks))
    # Each turn one rank is late, and its right neighbour waits for it.
    assert max(answer) == pytest.approx(210, rel=0.1) and min(answer) > 100


def test_ranks_meet_at_fences(tmp_path: Path) -> None:
    a, b = job(tmp_path, 2)
    for each in (a, b):
        each.call("MPI_Win_allocate", 10, comm=0, window=3)
        each.call("MPI_Put", 5, window=3, target=peer(0), sends=8)
        each.call("MPI_Win_fence", 400 if each is a else 10, window=3)
        each.call("MPI_Win_free", 10, window=3)
    assert ends(recorded.write(tmp_path, [a, b])) == pytest.approx([425, 425], rel=NEAR)


def exposed_job(tmp_path: Path, put: int = 8) -> list[Path]:
    """Rank 1 exposes its window at 300 us to rank 0, which puts, completes, and computes for 50 us."""
    a, b = job(tmp_path, 2)
    for each in (a, b):
        each.call("MPI_Win_allocate", 10, 0, comm=0, window=3)
    a.call("MPI_Win_start", 100, 190, window=3, group=peer(1))
    a.call("MPI_Put", 0, 0, window=3, target=1, sends=put)
    a.call("MPI_Win_complete", 200, 1, window=3)
    a.call("MPI_Send", 50, 0, comm=0, destination=peer(1), send_tag=1, sends=8)
    b.call("MPI_Win_post", 290, 1, window=3, group=peer(-1))
    b.call("MPI_Win_test", 10, 0, window=3, flag=0)
    b.call("MPI_Win_wait", 10, 180, window=3)
    b.call("MPI_Recv", 10, 40, comm=0, source=peer(-1), receive_tag=1, receives=8)
    return recorded.write(tmp_path, [a, b])


def test_windows_wait_for_those_that_they_name(tmp_path: Path) -> None:
    """Start waits for post, and wait for complete, with the data that were put."""
    files = exposed_job(tmp_path, put=1 << 20)
    assert ends(files) == pytest.approx([550, 550], rel=NEAR)
    # A byte takes 0.1 ns, and a complete ends when the data have left.
    assert ends(files, profile=logp("os=0,or=0,L=0,g=0,G=0.1")) == pytest.approx([655, 655], rel=NEAR)


def test_a_get_comes_when_its_epoch_completes(tmp_path: Path) -> None:
    a, b = job(tmp_path, 2)
    for each in (a, b):
        each.call("MPI_Win_create", 10, 0, comm=0, window=each.rank)
    a.call("MPI_Win_start", 10, 0, window=0, group=peer(1))
    a.call("MPI_Get", 0, 0, window=0, target=1, receives=1 << 20)
    a.call("MPI_Win_complete", 10, 100, window=0)
    b.call("MPI_Win_post", 5, 0, window=1, group=peer(-1))
    b.call("MPI_Win_wait", 5, 20, window=1)
    first, last = ends(recorded.write(tmp_path, [a, b]), profile=logp("os=0,or=0,L=0,g=0,G=0.1"))
    assert first == pytest.approx(30 + 105, rel=NEAR) and last == pytest.approx(30, rel=NEAR)


def test_another_world_takes_its_time(tmp_path: Path) -> None:
    """Rank 0 merges with a spawned world, and talks to it. Rank 1 is no member of the first communicator."""
    a, b = job(tmp_path, 2)
    for each in (a, b):
        each.define(3, b"".join(map(recorded.zigzag, (2, 3, each.rank, 2, 1, 0, 1, 2, -1, 0, 1))))
        each.define(3, b"".join(map(recorded.zigzag, (3, 2, each.rank, 3, 0, 0, 1, 2, -1, 0, 1))))
        each.call("MPI_Comm_spawn", 10, 200, comm=0, made_comm=2)
        each.call("MPI_Intercomm_merge", 10, 100, comm=2, made_comm=3)
    a.call("MPI_Send", 10, 50, comm=2, destination=peer(0), send_tag=1, sends=8)
    a.call("MPI_Irecv", 10, 0, comm=3, source=recorded.ANY, receive_tag=1, receives=8, made=0)
    a.call("MPI_Ibarrier", 10, 0, comm=3, made=1)
    a.call("MPI_Waitall", 10, 70, waited=[0, 1], got=[0, peer(2), 1])
    a.call("MPI_Send", 10, 0, comm=3, destination=peer(1), send_tag=2, sends=8)
    b.call("MPI_Recv", 10, 160, comm=3, source=peer(-1), receive_tag=2, receives=8)
    b.call("MPI_Bcast", 10, 30, comm=3, root=2, sends=8)
    files = recorded.write(tmp_path, [a, b])
    for profile in (None, logp("os=0,or=0,L=0,g=0,G=0")):
        assert ends(files, profile=profile) == pytest.approx([490, 530], rel=NEAR)


def test_only_its_members_make_a_communicator_of_a_group(tmp_path: Path) -> None:
    ranks = job(tmp_path, 3)
    for each in ranks[:2]:
        each.define(3, b"".join(map(recorded.zigzag, (2, 0, each.rank, 2, 0, 0, 1, 2))))
    for turn in range(2):
        for each in ranks[:2]:
            each.call("MPI_Comm_create_group", 100 if (each.rank + turn) % 2 else 10, 0, comm=0, made_comm=2)
            each.call("MPI_Barrier", 10, 0, comm=2)
    ranks[2].call("MPI_Send", 10, 0, comm=0, destination=peer(-1), send_tag=2, sends=8)
    ranks[1].call("MPI_Recv", 10, 0, comm=0, source=peer(1), receive_tag=2, receives=8)
    assert ends(recorded.write(tmp_path, ranks)) == pytest.approx([220, 230, 10], rel=NEAR)


def test_what_cannot_be_replayed_is_said(tmp_path: Path) -> None:
    a, b = job(tmp_path, 2)
    a.call("MPI_Recv", 1, comm=0, source=peer(1), receive_tag=3, receives=8)
    b.call("MPI_Barrier", 1, comm=0)
    files = recorded.write(tmp_path, [a, b], finished=False)
    assert recordings.replay(files)["failure"].endswith("1 in MPI_Barrier 1 in MPI_Recv")
    found = analysis.analyse(files)
    assert not found.whole and found.efficiencies.parallel > 0


def test_files(tmp_path: Path, inside) -> None:
    ranks = job(tmp_path, 3)
    for each in ranks:
        each.call("MPI_Barrier", 10 * (each.rank + 1), comm=0)
    files = recorded.write(tmp_path, ranks)
    packed = tmp_path / "all.stretto"
    recordings.ask("pack", [packed, *files])
    assert recordings.summary([packed]) == recordings.summary(files)
    assert recordings.replay([packed]) == recordings.replay(files)
    assert recordings.files_of(tmp_path / "job") == recordings.files_of(files[1]) == files
    assert recordings.is_recording(packed) and recordings.is_recording(files[0])
    files[1].unlink()
    assert "rank 1 of 3 is missing" in inside("model", "job", tmp_path / "job").stderr
    assert "no recording" in inside("model", "job", tmp_path / "other").stderr
    packed.write_bytes(packed.read_bytes()[:-5])
    assert "is damaged" in inside("report", packed).stderr
    assert "a factor above 0" in inside("model", "job", tmp_path / "job", "--compute", "-1").stderr


def test_goal_is_whole(tmp_path: Path, inside) -> None:
    """Every line is one of the format's, every send has its receive, and no label is missing."""
    small_job(tmp_path)
    inside("report", tmp_path / "job", "--export", f"goal={tmp_path / 'x.goal'}")
    text = (tmp_path / "x.goal").read_text()
    assert text.startswith("num_ranks 3\n") and text.count("\nrank ") == text.count("\n}") == 3
    messages: dict[str, list] = {"send": [], "recv": []}
    for rank, body in re.findall(r"\nrank (\d+) \{\n(.*?)\n\}", text, re.DOTALL):
        labels = set()
        for line in body.split("\n"):
            calc = re.fullmatch(r"l(\d+): calc \d+", line)
            message = re.fullmatch(r"l(\d+): (send|recv) (\d+)b (?:to|from) (\d) tag (\d+)", line)
            needs = re.fullmatch(r"l(\d+) requires l(\d+)", line)
            assert calc or message or needs, line
            if needs:
                assert {needs[1], needs[2]} <= labels, line
            if message:
                way = (rank, message[4]) if message[2] == "send" else (message[4], rank)
                messages[message[2]].append((*way, message[3], message[5]))
            if not needs:
                labels.add((calc or message)[1])
    assert sorted(messages["send"]) == sorted(messages["recv"]) and len(messages["send"]) > 6


@pytest.mark.skipif(shutil.which("smpirun") is None, reason="needs SimGrid")
def test_simgrid_replays_the_job(tmp_path: Path, inside) -> None:
    small_job(tmp_path)
    inside("report", tmp_path / "job", "--export", f"ti={tmp_path / 'x.ti'}")
    (tmp_path / "index").write_text(f"{tmp_path / 'x.ti'}\n")
    (tmp_path / "hosts").write_text("h0\nh1\nh2\n")
    (tmp_path / "platform.xml").write_text(PLATFORM)
    line = ["smpirun", "-np", "3", "-platform", "platform.xml", "-hostfile", "hosts", "-replay", "index"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    simulated = float(re.search(r"Simulation time ([\d.]+)", done.stdout + done.stderr)[1])
    assert simulated == pytest.approx(recordings.replay([tmp_path / f"job.{r}" for r in range(3)])["seconds"], rel=0.05)


@pytest.mark.skipif(shutil.which("otf2-print") is None, reason="needs OTF2's tools")
def test_otf2_is_read_by_its_own_tool(tmp_path: Path, inside) -> None:
    small_job(tmp_path)
    said = inside("report", tmp_path / "job", "--export", f"otf2={tmp_path / 'archive'}").stderr
    if "this build writes no OTF2" in said:
        pytest.skip("the library is not here")
    line = ["otf2-print", tmp_path / "archive/traces.otf2"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    for event, count in (("ENTER", 21), ("LEAVE", 21), ("MPI_ISEND", 3), ("MPI_IRECV", 3), ("MPI_COLLECTIVE_END", 6)):
        assert len(re.findall(rf"^{event} ", done.stdout, re.MULTILINE)) == count, event
    assert "Operation: ALLREDUCE" in done.stdout and 'Sender: 2 ("rank 2" <2>)' in done.stdout
    assert "it is a directory" in inside("report", tmp_path / "job", "--export", f"otf2={tmp_path / 'archive'}").stderr


def test_perfetto_gets_each_call(tmp_path: Path, inside) -> None:
    small_job(tmp_path)
    said = inside("report", tmp_path / "job", "--export", f"chrome={tmp_path / 'x.json'}").stderr
    assert "written:" in said
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    calls = [event for event in events if event["ph"] == "X"]
    assert len(calls) == 18 and {event["tid"] for event in calls} == {0, 1, 2}
    assert calls[0]["ts"] == pytest.approx(100, rel=NEAR) and calls[0]["name"] == "MPI_Irecv"
    assert "one of chrome, goal, otf2, ti" in inside("report", tmp_path / "job", "--export", "x=y").stderr


def test_the_critical_path_goes_from_rank_to_rank(tmp_path: Path) -> None:
    """Rank 0 computes 700 us, sends, and rank 1 computes 500 more: both are on the path, and nothing else."""
    a, b, c = job(tmp_path, 3)
    a.call("MPI_Send", 700, comm=0, destination=peer(1), send_tag=3, sends=8)
    b.call("MPI_Recv", 100, 600, comm=0, source=peer(-1), receive_tag=3, receives=8)
    c.call("MPI_Send", 900, comm=0, destination=peer(-2), send_tag=3, sends=8)
    a.call("MPI_Recv", 10, 190, comm=0, source=peer(2), receive_tag=3, receives=8)
    for each, gap in ((a, 100), (b, 500), (c, 50)):
        each.call("MPI_Barrier", gap, comm=0)
    answer = recordings.replay(recorded.write(tmp_path, [a, b, c]), ["--critical"])
    path = {(line["rank"], line["call"]): line["compute"] * 1e6 for line in answer["critical"]}
    assert path == pytest.approx({(0, "MPI_Send"): 700, (1, "MPI_Barrier"): 500}, rel=NEAR)


def test_efficiencies_multiply() -> None:
    found = efficiencies.of(10, 8, [2, 4, 6])
    assert found.load_balance == pytest.approx(4 / 6) and found.serialisation == pytest.approx(6 / 8)
    assert found.transfer == pytest.approx(8 / 10) and found.parallel == pytest.approx(4 / 10)
    assert sum(found.costs().values()) == pytest.approx(10 - 4)


PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="h" suffix="" radical="0-2" speed="1Gf" bw="100GBps" lat="10ns"/>
</platform>
"""
PROGRAM = """
#include <mpi.h>
#include <unistd.h>
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 20; i++) {
    usleep(rank == 0 ? 10000 : 30000);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
"""


def test_from_end_to_end(tmp_path: Path, stretto) -> None:
    """Computation by sleeping: rank 0 has a third of rank 1's."""
    mpi = next(m for m in find_all() if m.origin == "wheel" and m.kind == "mpich")
    source = tmp_path / "unbalanced.c"
    source.write_text(PROGRAM)
    program = build.compile_program(mpi, [source], "cli-unbalanced")
    recording = tmp_path / "app.stretto"
    ran = stretto("run", "-n", "2", "--mpi", "mpich@wheel", "--record", recording, "--", program)
    assert ran.returncode == 0 and "recorded:" in ran.stderr, ran.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".app")] == []
    said = stretto("report", recording, "-o", tmp_path / "out.html").stdout
    assert "load balance costs most" in said and "MPI_Barrier" in said
    page = (tmp_path / "out.html").read_text()
    timeline = json.loads(re.search(r"const job = (\{.*\});", page)[1])
    assert len(timeline["ranks"]) == 2 and "MPI_Barrier" in timeline["functions"]
    done = stretto("model", "job", recording, "--balance", "--compute", "x2", "--json", "-")
    found = json.loads(done.stdout)
    assert found["schema"] == "stretto.model.job/1" and found["ranks"] == 2
    assert 0.55 < found["efficiencies"]["load_balance"] < 0.8
    by_name = {row["name"]: row["predicted_s"] / found["measured_s"] for row in found["what_if"]}
    assert by_name["as recorded"] == pytest.approx(1, abs=0.001)
    assert by_name["compute x2"] == pytest.approx(2, abs=0.1) and by_name["in balance"] < 0.85
