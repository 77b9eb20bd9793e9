# SPDX-License-Identifier: BSD-3-Clause
"""Runs that are stopped: their statistics and reports are written, marked as cut short, they name the late rank, and
nothing is left behind."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import harness
import pytest
from job_processes import TOKEN, end_processes, hear_ctrl_c, processes_of, segments_of

ROOT = Path(__file__).resolve().parents[2]
RANKS = 3
pytestmark = pytest.mark.slow


def until(true: Callable[[], object], seconds: float = 60) -> bool:
    """False: it did not come true in time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def start(line: list, token: str) -> subprocess.Popen:
    return subprocess.Popen(
        [str(word) for word in line],
        env=harness.clean_environment() | {"PYTHONPATH": str(ROOT / "python"), TOKEN: token},
        start_new_session=True,
        preexec_fn=hear_ctrl_c,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def stretto_run(mpi, program, how, folder, *words, before=()) -> Iterator[subprocess.Popen]:
    """`stretto run` of a program that comes to its end, or has come to where it hangs. Nothing of it is left.

    A job that does not begin is tried again: MPICH 5 may hang in its own MPI_Init on a busy machine."""
    harness.library(mpi.abi)  # building takes its time
    ready = folder / "ready"
    line = [*before, sys.executable, "-m", "stretto", "run", "--mpi", mpi.name, "-n", RANKS, "--force", *words]
    for _ in range(3):
        token = uuid.uuid4().hex
        process = start([*line, "--", program, how, ready], token)
        try:
            if not until(lambda: ready.exists() or process.poll() is not None):  # noqa: B023
                continue
            segments = segments_of(token)
            yield process
            assert process.poll() is not None
            assert until(lambda: not processes_of(token), 10), processes_of(token)  # noqa: B023
            assert [segment for segment in segments if segment.exists()] == []
            return
        finally:
            end_processes(token)
            process.wait()
    pytest.fail("the job does not begin")


def judge(stats: dict) -> None:
    """They name the last rank, and have what happened before."""
    cut = stats["cut_short"]
    assert [call["op"] for call in cut["open"]] == ["barrier"], cut
    (barrier,) = cut["open"]
    assert barrier["late"] == [RANKS - 1] and barrier["waiting"] == list(range(RANKS - 1)), cut
    assert cut["not_read"] == [] and cut["first"] and cut["after_ns"] > 0.5e9
    assert stats["collectives"]["allreduce"]["calls"] == 20 * RANKS
    caused = {rank["rank"]: rank["caused_ns"] for rank in stats["per_rank"]}
    assert max(caused, key=caused.get) == RANKS - 1 and caused[RANKS - 1] > 0.5e9, caused
    assert sorted(caused) == list(range(RANKS))


def stop(process: subprocess.Popen, how: str) -> None:
    if how == "int":  # as a terminal does
        os.killpg(process.pid, signal.SIGINT)
    elif how == "timeout":  # its time is over
        process.send_signal(signal.SIGALRM)
    else:
        process.send_signal({"term": signal.SIGTERM, "hup": signal.SIGHUP}[how])


STATUS = {"int": -signal.SIGINT, "term": -signal.SIGTERM, "hup": -signal.SIGHUP, "timeout": 124}
ENDS = {"kill": 137, "segv": 139, "abort": 7}


@pytest.mark.parametrize("how", ["int", "term", pytest.param("hup", marks=pytest.mark.long), "timeout"])
def test_a_run_that_is_told_to_end(mpi, build_program, tmp_path, how):
    json_file, report = tmp_path / "stats.json", tmp_path / "report.html"
    words = ["--json", json_file, "--report", report]
    before = ["timeout", "600"] if how == "timeout" else []
    with stretto_run(mpi, build_program(mpi, "stopped.c"), "hang", tmp_path, *words, before=before) as process:
        stop(process, how)
        out, err = process.communicate(timeout=60)
    assert process.returncode == STATUS[how], out + err
    judge(json.loads(json_file.read_text()))
    assert "Cut short after" in out and "for rank 2" in " ".join(out.split()), out + err
    html = report.read_text()
    assert "Cut short after" in html and "had waited" in html


@pytest.mark.parametrize("how", list(ENDS))
def test_a_rank_that_ends_badly(mpi, build_program, tmp_path, how):
    json_file, report = tmp_path / "stats.json", tmp_path / "report.html"
    with stretto_run(
        mpi, build_program(mpi, "stopped.c"), how, tmp_path, "--json", json_file, "--report", report
    ) as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == ENDS[how], out + err
    stats = json.loads(json_file.read_text())
    judge(stats)
    first = stats["cut_short"]["first"]
    assert RANKS - 1 in [rank["rank"] for rank in first]
    assert how != "abort" or first == [{"rank": RANKS - 1, "end": "MPI_Abort"}]
    assert "Cut short after" in report.read_text() and "Cut short after" in out


def test_the_text_of_a_stopped_run(mpi, build_program, tmp_path):
    with stretto_run(mpi, build_program(mpi, "stopped.c"), "hang", tmp_path, "--stats") as process:
        stop(process, "term")
        _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert "stretto statistics, cut short" in err and "allreduce" in err
    assert re.search(r"rank 0,1 had waited .* in barrier for rank 2", err), err
    assert "the job was cut short after" in err


@pytest.mark.parametrize("how", ["kill", "_exit"])
def test_a_job_without_our_launcher(mpi, run_mpi, build_program, tmp_path, how):
    """The library alone is preloaded. A name with parts, in a folder that is made."""
    pattern = tmp_path / "%u" / "new" / "stats-%d-%h.json"
    environment = {"STRETTO_STATS": f"json:{pattern}", "USER": "somebody"}
    job = run_mpi(mpi, RANKS, [build_program(mpi, "stopped.c"), how, tmp_path / "ready"], env=environment)
    assert how != "kill" or job.returncode != 0
    (file,) = (tmp_path / "somebody" / "new").glob("stats-20??-??-??-*.json")
    judge(json.loads(file.read_text()))


@pytest.mark.one_mpi
def test_a_job_that_ends_well_is_not_cut_short(mpi, run_mpi, build_program, tmp_path):
    file = tmp_path / "stats-%p%%.json"
    run_mpi(
        mpi, RANKS, [build_program(mpi, "stopped.c"), "go", tmp_path / "ready"], env={"STRETTO_STATS": f"json:{file}"}
    ).ok()
    (written,) = tmp_path.glob("stats-[0-9]*%.json")
    assert "cut_short" not in json.loads(written.read_text())
    assert sorted(f.name for f in tmp_path.iterdir()) == sorted(["ready", written.name])


@pytest.mark.one_mpi
@pytest.mark.parametrize("name", ["/proc/no-such/stats.json", "/dev/null/stats.json"])
@pytest.mark.parametrize("how", ["go", "kill"])
def test_a_place_that_cannot_be_written_fails_no_job(mpi, run_mpi, build_program, tmp_path, name, how):
    job = run_mpi(
        mpi, RANKS, [build_program(mpi, "stopped.c"), how, tmp_path / "ready"], env={"STRETTO_STATS": f"json:{name}"}
    )
    if how == "go":
        assert job.ok() and len([m for m in job.messages() if "STRETTO_STATS" in m]) == 1, job.describe()
    assert 1 <= job.stderr.count(f"cannot write {name}") <= 2, job.describe()


@pytest.mark.one_mpi
def test_a_pattern_that_means_nothing(mpi, run_mpi, build_program, tmp_path):
    words = [build_program(mpi, "stopped.c"), "go", tmp_path / "ready"]
    job = run_mpi(mpi, RANKS, words, env={"STRETTO_STATS": "json:stats-%q.json"}).ok()
    assert job.stderr.count("stats-%q.json names no file") == 1, job.describe()
