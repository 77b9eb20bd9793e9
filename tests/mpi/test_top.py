# SPDX-License-Identifier: BSD-3-Clause
"""`stretto top` on running jobs: what it shows is right, and it ends when the job ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import clean_environment
from stretto.commands.top import jobs


class Running:
    """A job in the background. It ends when a file exists, whose path is in its command line."""

    def __init__(self, folder: Path) -> None:
        self.end_file, self.job = folder / uuid.uuid4().hex, None
        self.failure: BaseException | None = None

    def run(self, run_mpi, *arguments: Any, **options: Any) -> None:
        try:
            self.job = run_mpi(*arguments, **options)
        except BaseException as error:  # the test's own thread raises it
            self.failure = error

    def ranks(self, count: int) -> list[dict[str, Any]]:
        """Waits until all processes of the job are visible. Returns them by rank."""
        program, end = jobs.looker(), time.monotonic() + 30
        while time.monotonic() < end and self.failure is None:
            found = [p for p in jobs.survey(program)["processes"] if str(self.end_file) in p["command"]]
            if len(found) == count:
                return sorted(found, key=lambda p: p["rank"])
            time.sleep(0.1)
        raise AssertionError(f"not seen: {self.failure}")

    def end(self) -> None:
        self.end_file.touch()


Start = Callable[..., contextlib.AbstractContextManager[Running]]


@pytest.fixture
def start(run_mpi, build_program, mpi, tmp_path: Path) -> Start:
    """`with start(3, "late") as job:` runs a job, and tells it to end afterwards."""

    @contextlib.contextmanager
    def running(ranks: int, how: str, **options: Any) -> Iterator[Running]:
        job = Running(tmp_path)
        line = [build_program(mpi, "watched.c"), how, job.end_file]
        thread = threading.Thread(target=job.run, args=(run_mpi, mpi, ranks, line), kwargs={"timeout": 130, **options})
        thread.start()
        try:
            yield job
        finally:
            job.end()
            thread.join()
        if job.failure:
            raise job.failure

    return running


def call_top(*arguments: Any, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stretto", "top", *map(str, arguments)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def look(pid: int) -> dict[str, Any]:
    done = call_top(pid, "--json", "-")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def until_waiting(pid: int) -> dict[str, Any]:
    """A snapshot in which all ranks but the last wait."""
    for _ in range(10):
        view = look(pid)
        if all(row["waits_for"] and row["time_waiting"] > 0.95 for row in view["rows"][:-1]):
            return view
    raise AssertionError(f"they never waited: {view}")


@contextlib.contextmanager
def watched(processes: list[dict[str, Any]]) -> Iterator[subprocess.Popen[str]]:
    """Starts `stretto top` and waits until it has mapped all segments of the job."""
    line = [sys.executable, "-m", "stretto", "top", str(processes[0]["pid"]), "--interval", "0.2"]
    wanted = f"watch\0{processes[0]['job']}\0".encode()
    with subprocess.Popen(
        line, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watcher:
        try:
            for _ in range(300):
                if any(
                    wanted in command and segments.count(b"/memfd:stretto") == len(processes)
                    for command, segments in command_lines_and_maps()
                ):
                    break
                time.sleep(0.1)
            else:
                raise AssertionError("it does not look")
            yield watcher
        finally:
            watcher.kill()


def command_lines_and_maps() -> Iterator[tuple[bytes, bytes]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield (folder / "cmdline").read_bytes(), (folder / "maps").read_bytes()


@pytest.mark.one_mpi("openmpi")
def test_who_waits_for_whom(start: Start):
    with start(3, "late") as job:
        pids = [p["pid"] for p in job.ranks(3)]
        view = until_waiting(pids[1])
    rows = view["rows"]
    assert [row["rank"] for row in rows] == [0, 1, 2] and [row["pid"] for row in rows] == pids and view["ranks"] == 3
    assert [row["doing"] for row in rows] == ["allreduce", "allreduce", "outside collectives"]
    assert [row["waits_for"] for row in rows] == [[2], [2], []]
    assert [(h["rank"], h["waited_for_by"]) for h in view["held_up"]] == [(2, [0, 1])]
    for row in rows[:2]:
        assert row["by"] == "engine" and 0 < row["waiting_s"] <= row["since_s"] < 60
        assert row["time_in_collectives"] > 0.95 and row["time_waiting"] > 0.95 and row["calls_per_s"] == 0
    assert rows[2]["time_in_collectives"] == 0 and rows[2]["waiting_s"] is None
    for row in rows:
        done = {name: sum(c["calls"].values()) for name, c in row["collectives"].items()}
        assert done == {"barrier": 100, "bcast": 100, "allreduce": 100}, row
        assert row["collectives"]["bcast"]["bytes"] == 100 * 32768 * 8
        assert (
            row["collectives"]["barrier"]["calls"]["inline"]
            == row["collectives"]["allreduce"]["calls"]["inline"]
            == 100
        )
        assert row["collectives"]["bcast"]["calls"]["inline"] == 0
    job.job.ok()


@pytest.mark.one_mpi("openmpi")
def test_ranks_of_another_communicator_and_calls_of_the_mpi(start: Start):
    """`stretto top` shows the rank that is missing by its rank in the job.

    The communicator has the ranks in reverse order. Calls that the MPI serves show, too.
    """
    env = {"STRETTO_BCAST": "mpi"}
    with start(3, "split", env=env) as job:
        rows = until_waiting(job.ranks(3)[0]["pid"])["rows"]
    assert [row["waits_for"] for row in rows] == [[2], [2], []]
    for row in rows:
        assert row["collectives"]["bcast"]["calls"]["host"] == 100, row
    job.job.ok()


def looks_come_when_due() -> bool:
    return subprocess.run(["chrt", "--fifo", "1", "true"], capture_output=True).returncode == 0


@pytest.mark.one_mpi("openmpi")
def test_rates_of_a_busy_job(start: Start):
    with start(2, "busy", env={"STRETTO_STATS": "text"}) as job:
        pid = job.ranks(2)[0]["pid"]
        view = look(pid)
        picture = call_top(pid, "--once").stdout
    for row in view["rows"]:
        assert row["calls_per_s"] > 10 and row["bytes_per_s"] > 10 * 32768 * 8 / 3, row
        assert 0 <= row["time_waiting"] <= row["time_in_collectives"] <= 1
        # Samples from outside agree with the clocks of the calls themselves. The last rank rests,
        # so samples must also come at other times.
        if looks_come_when_due():
            calls, ns = (
                sum(counts) for counts in zip(*((sum(c["calls"].values()), c["ns"]) for c in row["recent"].values()))
            )
            assert abs(row["time_in_collectives"] - ns / 1e9 * row["calls_per_s"] / calls) < 0.2, row
    assert f"job {view['job']}" in picture and re.search(r"Bcast +\S+ k?\S* ", picture), picture
    job.job.ok()


@pytest.mark.one_mpi("openmpi")
def test_ends_with_its_job(start: Start):
    with start(2, "late") as job, watched(job.ranks(2)) as watcher:
        job.end()
        said, complaints = watcher.communicate(timeout=60)
    assert watcher.returncode == 0 and "The job has ended." in said, said + complaints
    job.job.ok()


@pytest.mark.one_mpi("openmpi")
def test_metrics_of_a_running_job(start: Start, tmp_path: Path):
    """The file is there while the job runs, and at the end says that all ranks have finished."""
    file = tmp_path / "stretto.prom"
    with start(2, "late") as job:
        pids = [process["pid"] for process in job.ranks(2)]
        line = [sys.executable, "-m", "stretto", "top", "--metrics", str(file), str(pids[0])]
        with subprocess.Popen(line, env=clean_environment()) as writer:
            while not file.exists() and writer.poll() is None:
                time.sleep(0.1)
            running = file.read_text()
            job.end()
            assert writer.wait(60) == 0
    assert "stretto_ranks 2\n" in running and running.count("stretto_finished{") == 2
    assert re.search(
        r'^stretto_calls_total\{rank="1",host="[^"]+",collective="\w+",path="\w+"\} \d+$', running, re.MULTILINE
    )
    assert re.findall(r"^stretto_finished\{.*\} (\d)$", file.read_text(), re.MULTILINE) == ["1", "1"]
    job.job.ok()


@pytest.mark.one_mpi("openmpi")
def test_survives_the_death_of_a_rank(start: Start):
    with start(3, "late", ranks_may_stay=True) as job:
        ranks = job.ranks(3)
        with watched(ranks) as watcher:
            os.kill(ranks[2]["pid"], signal.SIGKILL)
            said, complaints = watcher.communicate(timeout=60)
    assert watcher.returncode == 0 and "Traceback" not in complaints, complaints
    assert re.search(r"The job has ended; ranks that did not come to MPI_Finalize.*2", " ".join(said.split())), said
    assert job.job.returncode != 0


@pytest.mark.one_mpi("openmpi")
def test_nothing_to_watch(mpi):
    del mpi  # the test needs no MPI
    bystander = subprocess.Popen(["sleep", "30"])
    try:
        done = call_top(bystander.pid)
        assert done.returncode == 2 and f"process {bystander.pid} has no part" in " ".join(done.stderr.split()), (
            done.stderr
        )
    finally:
        bystander.kill()
        bystander.wait()
    done = call_top(bystander.pid)
    assert done.returncode == 2 and "there is no process" in done.stderr, done.stderr


@pytest.mark.one_mpi("openmpi")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_no_permission(start: Start):
    """Another user's job does not show, but the reason does."""
    with start(2, "late") as job, tempfile.TemporaryDirectory() as folder:
        pid = job.ranks(2)[0]["pid"]
        program = shutil.copy(jobs.looker(), folder)
        Path(folder).chmod(0o755)
        found = json.loads(
            subprocess.run(
                [program, "list", str(pid)], user=65534, group=65534, extra_groups=[], capture_output=True, check=True
            ).stdout
        )
    assert found == {"processes": [], "refused": [], "denied": [pid]}
    assert "no permission" in jobs.why_not(
        "", str(os.getpid()), {"processes": [], "refused": [], "denied": [os.getpid()]}
    )
