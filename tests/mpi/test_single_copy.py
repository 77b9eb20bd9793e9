# SPDX-License-Identifier: BSD-3-Clause
"""Single copy: forced, refused from the start, refused later. Right results every time, by the path that remains."""

from __future__ import annotations

import json

import pytest
from harness import without_cma
from oracle import SMALL_RING

ALWAYS = {"STRETTO_SINGLE_COPY": "always"}


def _paths(mpi, run_mpi, build_program, np, env, *, before=(), preload=True, extra=()):
    argv = [*before, build_program(mpi, "options_check.c"), 2, 100_000]
    job = run_mpi(mpi, np, argv, env=env, preload=preload, extra=extra, timeout=90).ok()
    assert len(job.results()) == np and job.messages() == [], job.describe()
    return {r["bcast"] for r in job.results()}


@pytest.mark.few
@pytest.mark.parametrize("np", [2, 3])
def test_readers_copy_out_of_the_senders_memory(mpi, run_mpi, build_program, np):
    assert _paths(mpi, run_mpi, build_program, np, ALWAYS) == {"single"}
    assert _paths(mpi, run_mpi, build_program, np, {"STRETTO_SINGLE_COPY": "off"}) == {"cico"}


@pytest.mark.few
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_against_oracle(mpi, run_mpi, build_cxx, ranks, long_mode):
    program = build_cxx("differential.cpp")
    cases = 20_000 if long_mode else 300
    line = [program, "--cases", str(cases), "--seed", str(77 + ranks), "--expect-native", "99"]
    job = run_mpi(mpi, ranks, line, env=ALWAYS | SMALL_RING, timeout=60 + cases * ranks * 0.02).ok()
    assert f"{cases} cases ok, with us" in job.stdout


@pytest.mark.few
def test_refused_by_a_system_call_filter(mpi, run_mpi, build_program):
    env, extra = without_cma(mpi)
    before = [build_program(mpi, "namespace_seccomp.c"), "cma"]
    assert _paths(mpi, run_mpi, build_program, 2, env | ALWAYS, before=before, extra=extra) == {"cico"}


@pytest.mark.one_mpi
@pytest.mark.parametrize("error", ["EPERM", "EFAULT"])
@pytest.mark.parametrize("nth", ["*", "1", "2", "3", "4"])
def test_refused_sooner_or_later(mpi, run_mpi, build_program, nth, error):
    """Every rank's n-th read fails: the first two are the trials."""
    fault = {"STRETTO_FAULT": f"peer_memory_read:{nth}:{error}"}
    paths = _paths(mpi, run_mpi, build_program, 3, ALWAYS | fault, preload="faulty")
    assert paths == {"cico"} if nth in {"*", "1", "2"} else paths <= {"cico", "single"}


def _refusals(mpi, run_mpi, build_program, report, env, **options):
    """What the statistics of every rank say of single copy on its first communicator."""
    _paths(mpi, run_mpi, build_program, 3, env | {"STRETTO_STATS": f"json:{report}"}, **options)
    return [rank["communicators"][0].get("single_copy_refused") for rank in json.loads(report.read_text())["per_rank"]]


@pytest.mark.one_mpi
def test_the_reason_is_in_the_statistics(mpi, run_mpi, build_program, tmp_path):
    env, extra = without_cma(mpi)
    before = [build_program(mpi, "namespace_seccomp.c"), "cma"]
    said = _refusals(mpi, run_mpi, build_program, tmp_path / "filter.json", env | ALWAYS, before=before, extra=extra)
    assert said == [{"rank": 0, "error": "EPERM", "call": 0}] * 3
    assert _refusals(mpi, run_mpi, build_program, tmp_path / "none.json", ALWAYS) == [None] * 3
    fault = {"STRETTO_FAULT": "peer_memory_read:3:EFAULT"}
    later = _refusals(mpi, run_mpi, build_program, tmp_path / "later.json", ALWAYS | fault, preload="faulty")
    assert all(r is None or (r["error"] == "EFAULT" and r["call"] > 0) for r in later) and any(later), later


@pytest.mark.one_mpi
def test_the_reason_is_in_the_text(mpi, run_mpi, build_program):
    fault = {"STRETTO_FAULT": "peer_memory_read:*:ENOSYS", "STRETTO_STATS": "text"}
    argv = [build_program(mpi, "options_check.c"), 2, 100_000]
    job = run_mpi(mpi, 2, argv, env=ALWAYS | fault, preload="faulty").ok()
    assert "single copy was refused to rank 0: ENOSYS, from the start" in job.stderr, job.describe()
