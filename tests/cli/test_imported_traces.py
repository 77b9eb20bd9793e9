# SPDX-License-Identifier: BSD-3-Clause
"""Traces of other tools (OTF2) as recordings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import recorded
from stretto.job import recordings

PROGRAM = Path(__file__).with_name("programs") / "otf2_trace.c"
pytestmark = pytest.mark.skipif(not Path("/usr/include/otf2/otf2.h").is_file(), reason="needs OTF2's library")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory):
    """trace("threads"): the anchor file of an archive as Score-P writes it."""
    folder = tmp_path_factory.mktemp("otf2")
    program = folder / "otf2_trace"
    subprocess.run(["cc", "-o", program, PROGRAM, "-lotf2"], check=True)

    def make(how: str = "plain") -> Path:
        subprocess.run([program, folder / how, how], check=True)
        return folder / how / "traces.otf2"

    return make


def test_an_archive_of_ours_gives_the_same_replay(tmp_path: Path, inside) -> None:
    files = recorded.small_job(tmp_path)
    inside("report", tmp_path / "job", "--export", f"otf2={tmp_path / 'archive'}")
    anchor = tmp_path / "archive/traces.otf2"
    back = recordings.files_of(anchor)
    was, now = recordings.replay(files), recordings.replay(back)
    for name in ("seconds", "messages", "bytes"):
        assert now[name] == pytest.approx(was[name], rel=0.01), name
    assert [rank["end"] for rank in now["ranks"]] == pytest.approx([rank["end"] for rank in was["ranks"]], rel=0.01)
    calls = {call["call"]: call for call in recordings.calls(back, 1)}
    assert calls["MPI_Allreduce"]["sends"] == [8] and calls["MPI_Scan"]["sends"] == [64]


def test_a_trace_as_score_p_writes_it(trace, capsys) -> None:
    files = recordings.files_of(trace())
    said = capsys.readouterr().err
    assert "1 threads or devices" in said and "3 one-sided operations" in said
    calls = recordings.calls(files, 2)
    assert [call["call"][4:] for call in calls] == (
        "Sendrecv Comm_split Irecv Irecv Isend Test Cancel Waitall Allreduce Bcast Ibarrier Wait Put Finalize".split()
    )
    assert {call["place"] for call in calls[:-1]} == {"solve.c:33 in solve"}
    assert calls[0]["gap"] == pytest.approx(1200e-6, rel=0.01), "the gap begins at the end of MPI_Init"
    exchange, split, irecv, nothing = calls[:4]
    assert exchange["destination"] == [recorded.peer(-2)] and exchange["source"] == [recorded.peer(-1)]
    assert irecv["source"] == [recorded.peer(-1)] and irecv["receives"] == [100] and irecv["made"] == [0]
    assert "source" not in nothing and nothing["made"] == [1], "it is cancelled"
    wait, allreduce, bcast = calls[7:10]
    assert sorted(wait["waited"]) == [0, 1, 2]
    assert allreduce["sends"] == [64] and bcast["sends"] == [16] and bcast["root"] == [1]
    assert split["made_comm"] == bcast["comm"] != [0]
    summary = recordings.summary(files)
    assert summary["mpi"] == "traced by Score-P 8.4" and [rank["host"] for rank in summary["ranks"]][1:] == [
        "host-a",
        "host-b",
    ]


def test_its_replay_waits_as_it_did(trace) -> None:
    """Rank 1 gets what rank 0 sends 3 ms after the first exchange; the others wait for it in the Allreduce."""
    answer = recordings.replay(recordings.files_of(trace("again")))
    assert "failure" not in answer and answer["messages"] == 6
    assert answer["seconds"] == pytest.approx(1400e-6 + 3000e-6 + 100e-6, rel=0.03)


def test_what_a_recording_cannot_say_is_refused(trace, tmp_path: Path, inside) -> None:
    assert "several threads of a rank call MPI" in inside("report", trace("threads")).stderr
    assert "a communicator without definition" in inside("report", trace("strange")).stderr
    anchor = tmp_path / "x.otf2"
    anchor.write_text("nothing")
    assert "no anchor file" in inside("model", "job", anchor).stderr
