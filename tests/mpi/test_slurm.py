# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that Slurm's srun starts.

The recommended lines work, Stretto sees ranks without the library, and `stretto top` finds the jobs.
The tests are skipped if Slurm and munge are not installed (Debian: slurm-wlm, munge) or do not start.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import harness
import pytest
import slurm
from test_partly_preloaded import SEEN

# Ranks must begin within the time that they wait for one another's marks.
pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    if not slurm.is_installed():
        pytest.skip("Slurm is not installed, or this user may not start it")
    with tempfile.TemporaryDirectory(prefix="slurm-test-") as folder:  # its path is short enough for a socket's
        try:
            files = slurm.control() | slurm.plugin(Path(folder))
            with slurm.running(Path(folder), slurm.this_machine(), files) as one:
                yield one.variables | {"plugin": "yes"} if "plugstack.conf" in files else one.variables
        except TimeoutError as error:
            pytest.skip(f"Slurm does not start here: {error}")


def _line(mpi, np, argv, option=None):
    return ["srun", option or mpi.srun_option, "-n", str(np), "-O", "--quiet", *map(str, argv)]


def _environment(mpi, cluster):
    return (
        harness.clean_environment()
        | mpi.environment()
        | cluster
        | {"STRETTO_AGREE": "first", "LD_PRELOAD": str(harness.library(mpi.abi))}
    )


def _run(mpi, cluster, np, argv, option=None, **more):
    line = _line(mpi, np, argv, option)
    done = subprocess.run(
        line, env=_environment(mpi, cluster) | more, capture_output=True, text=True, timeout=60, check=False
    )
    return harness.Job(line, done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("lacking", [False, True])
def test_ranks_of_srun(mpi, cluster, build_program, tmp_path, lacking):
    script = tmp_path / "lacking.sh"
    script.write_text(f'#!/bin/sh\n[ "$SLURM_PROCID" = {1 if lacking else -1} ] && unset LD_PRELOAD\nexec "$@"\n')
    script.chmod(0o755)
    job = _run(mpi, cluster, 3, [script, build_program(mpi, "some_ranks.c")]).ok()
    results = job.results()
    assert sorted(r["rank"] for r in results) == [0, 1, 2] and all(
        r["size"] == 3 and r["wrong"] == 0 for r in results
    ), job.describe()
    if lacking:
        assert {r["path"] for r in results} == {"host", "none"}, job.describe()
        assert re.search(SEEN, *job.messages()).groups() == ("2", "3"), job.describe()
    else:
        assert {r["path"] for r in results} == {"inline"} and job.messages() == [], job.describe()


@pytest.mark.few
@pytest.mark.only(abi="mpich")
def test_jobs_of_one_rank_are_told(mpi, cluster, build_program):
    job = _run(mpi, cluster, 3, [build_program(mpi, "some_ranks.c")], option="--mpi=none").ok()
    assert [r["size"] for r in job.results()] == [1, 1, 1], job.describe()
    (message,) = job.messages()
    assert "3 processes were started together" in message and mpi.srun_option in message


@pytest.mark.one_mpi
def test_top_finds_the_job(mpi, cluster, build_program, tmp_path):
    end = tmp_path / "end"
    line = _line(mpi, 2, [build_program(mpi, "watched.c"), "busy", end])
    with subprocess.Popen(
        line, env=_environment(mpi, cluster), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as srun:
        try:
            numbers = _until(lambda: _top(srun.pid), "not found by srun's process")
            assert len(numbers["rows"]) == 2
            (rank, *_) = [row["pid"] for row in numbers["rows"]]
            environment = dict(
                e.split("=", 1) for e in Path(f"/proc/{rank}/environ").read_text().split("\0") if "=" in e
            )
            for name in (environment["SLURM_JOB_ID"], f"{environment['SLURM_JOB_ID']}.{environment['SLURM_STEP_ID']}"):
                found = _top(name)
                assert found and found["job"] == numbers["job"]
        finally:
            end.touch()
            srun.wait(timeout=30)


def _top(what):
    done = subprocess.run(
        [sys.executable, "-m", "stretto", "top", str(what), "--json", "-"],
        env=harness.clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def _until(get, complaint, seconds=30):
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        if found := get():
            return found
        time.sleep(0.2)
    raise AssertionError(complaint)


@pytest.mark.few
@pytest.mark.only(abi="mpich")
def test_a_dead_rank_is_told_and_nothing_else(mpi, cluster, build_program):
    """srun does not end the other ranks at once, so Stretto finds the dead rank.

    MPICH prints no errors about networks.
    """
    job = _run(mpi, cluster, 3, [build_program(mpi, "crash_end.c"), "kill", 1])
    assert job.returncode != 0 and "has ended after" in job.stderr, job.describe()
    assert not re.search("inet_pton|Fatal error", job.output), job.describe()


# ---- srun --stretto ----


def _with_plugin(mpi, cluster, folder, option, *argv, more=()):
    """A job that only srun's option gives the library."""
    if "plugin" not in cluster:
        pytest.skip("Slurm's headers are not installed (Debian: libslurm-dev)")
    line = ["srun", mpi.srun_option, "-n", "3", "-O", "--quiet", option, *more, *map(str, argv)]
    env = {k: v for k, v in _environment(mpi, cluster).items() if k != "LD_PRELOAD"}
    done = subprocess.run(line, env=env, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return harness.Job(line, done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("export", ["ALL", "HOME,PATH"])  # Open MPI 5 needs HOME
def test_the_option_preloads_the_library_into_the_ranks(mpi, cluster, build_program, tmp_path, export):
    words = [build_program(mpi, "some_ranks.c")]
    job = _with_plugin(mpi, cluster, tmp_path, "--stretto", *words, more=[f"--export={export}"]).ok()
    assert job.results() and all(r["size"] == 3 and r["path"] != "none" for r in job.results()), job.describe()
    assert not list(tmp_path.glob("stretto-*"))


@pytest.mark.one_mpi
def test_the_option_prints_statistics(mpi, cluster, build_program, tmp_path):
    job = _with_plugin(mpi, cluster, tmp_path, "--stretto=stats", build_program(mpi, "some_ranks.c")).ok()
    assert "stretto statistics, sums over all ranks" in job.stderr, job.describe()


@pytest.mark.one_mpi
def test_the_option_writes_a_report(mpi, cluster, build_program, tmp_path):
    job = _with_plugin(mpi, cluster, tmp_path, "--stretto=report", build_program(mpi, "some_ranks.c")).ok()
    (report,) = tmp_path.glob("stretto-*")
    assert re.fullmatch(r"stretto-\d+\.\d+\.html", report.name) and "collectives" in report.read_text(), job.describe()


@pytest.mark.one_mpi
def test_a_report_of_a_job_that_ends_badly(mpi, cluster, build_program, tmp_path):
    words = [build_program(mpi, "stopped.c"), "kill", tmp_path / "ready"]
    job = _with_plugin(mpi, cluster, tmp_path, "--stretto=report", *words, more=["--kill-on-bad-exit=1"])
    assert job.returncode != 0
    (report,) = tmp_path.glob("stretto-*.html")
    text = report.read_text()
    assert "Cut short after" in text and re.search(r"had waited .* for rank 2", text), job.describe()


@pytest.mark.one_mpi
def test_a_wrong_word_and_a_program_without_mpi(mpi, cluster, tmp_path):
    job = _with_plugin(mpi, cluster, tmp_path, "--stretto=loud", "true")
    assert job.returncode != 0 and "expected --stretto, --stretto=stats or --stretto=report" in job.stderr
    assert _with_plugin(mpi, cluster, tmp_path, "--stretto", "true").returncode == 0


def test_a_cancelled_job_leaves_its_statistics(mpi, cluster, build_program, tmp_path):
    """The library alone is preloaded, and scancel ends the ranks."""
    file, ready = tmp_path / "stats.json", tmp_path / "ready"
    line = _line(mpi, 3, [build_program(mpi, "stopped.c"), "hang", ready])
    env = _environment(mpi, cluster) | {"STRETTO_STATS": f"json:{file}"}
    with subprocess.Popen(line, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as srun:
        try:
            _until(ready.exists, "the job does not begin")
        finally:
            subprocess.run(["scancel", "--user=root"], env=env, check=True, timeout=30)
        assert srun.wait(timeout=60) != 0
    _until(file.exists, "no statistics", 20)
    assert [call["late"] for call in json.loads(file.read_text())["cut_short"]["open"]] == [[2]]
