# SPDX-License-Identifier: BSD-3-Clause
"""Options that differ between ranks, that are wrong, or that turn us off: right results, or one clear message."""

from __future__ import annotations

import re

import pytest
from harness import per_rank_script

pytestmark = pytest.mark.one_mpi  # options are read and agreed in the same way whatever the version

OPERATIONS = ("barrier", "bcast", "gather", "gatherv", "allgather", "allgatherv")


def _check(mpi, run_mpi, build_program, np=2, env=None, cases=None, tmp_path=None, ok=True, **options):
    """The checking program, with `cases` of environment variables for single ranks."""
    argv = [build_program(mpi, "options_check.c"), 2, 100_000]
    if cases:
        argv.insert(0, per_rank_script(tmp_path, cases))
    job = run_mpi(mpi, np, argv, env=env, **options)
    return job.ok() if ok else job


def _paths(job, operation):
    return {r[operation] for r in job.results()}


def test_without_options_everything_is_ours_and_silent(mpi, run_mpi, build_program):
    job = _check(mpi, run_mpi, build_program)
    assert len(job.results()) == 2
    for operation in OPERATIONS:
        assert _paths(job, operation) <= {"inline", "cico"}, job.describe()
    assert _paths(job, "bcast") == {"cico"}
    assert job.messages() == [], job.describe()


@pytest.mark.only(abi="openmpi")
@pytest.mark.parametrize("np", [1, 3, 4, 7])
def test_other_numbers_of_ranks(mpi, run_mpi, build_program, np):
    job = _check(mpi, run_mpi, build_program, np)
    assert len(job.results()) == np and job.messages() == []


def test_parts_of_the_world(mpi, run_mpi, build_program):
    program = build_program(mpi, "options_check.c")
    job = run_mpi(mpi, 5, [program, 1, 60_000, 2], timeout=120).ok()
    assert sorted(r["size"] for r in job.results()) == [2, 2, 3, 3, 3]
    assert _paths(job, "bcast") == {"cico"}


def test_off(mpi, run_mpi, build_program):
    job = _check(mpi, run_mpi, build_program, env={"STRETTO": "off"})
    for operation in OPERATIONS:
        assert _paths(job, operation) <= {"host", "none"}, job.describe()
    assert job.messages() == [], job.describe()


def test_off_on_one_rank(mpi, run_mpi, build_program, tmp_path):
    job = _check(mpi, run_mpi, build_program, 3, cases={1: {"STRETTO": "off"}}, tmp_path=tmp_path)
    for operation in OPERATIONS:
        assert _paths(job, operation) <= {"host", "none"}, job.describe()


def test_one_operation_left_to_the_host(mpi, run_mpi, build_program):
    job = _check(mpi, run_mpi, build_program, env={"STRETTO_BCAST": "mpi"})
    assert _paths(job, "bcast") == {"host"}
    assert _paths(job, "allgatherv") == {"cico"}


def test_one_operation_left_to_the_host_by_one_rank(mpi, run_mpi, build_program, tmp_path):
    job = _check(mpi, run_mpi, build_program, 3, cases={2: {"STRETTO_BCAST": "mpi"}}, tmp_path=tmp_path)
    assert _paths(job, "bcast") == {"host"}
    assert _paths(job, "allgatherv") == {"cico"}


def test_ring_shapes_differ_between_ranks(mpi, run_mpi, build_program, tmp_path):
    cases = {
        0: {"STRETTO_SLOT_BYTES": "4096", "STRETTO_SLOTS": "3"},
        1: {"STRETTO_SLOT_BYTES": "65536"},
        2: {"STRETTO_SLOTS": "32"},
    }
    job = _check(mpi, run_mpi, build_program, 3, cases=cases, tmp_path=tmp_path)
    assert _paths(job, "bcast") == {"cico"} and job.messages() == [], job.describe()


@pytest.mark.parametrize("fragments", [("64", "0"), ("1M", "4K"), ("0", "20032")])
def test_fragments_differ_between_ranks(mpi, run_mpi, build_program, tmp_path, fragments):
    """Two ranks, because with fewer processors than ranks messages are not cut by this option."""
    cases = {rank: {"STRETTO_FRAGMENT_BYTES": value} for rank, value in enumerate(fragments)}
    job = _check(mpi, run_mpi, build_program, 2, cases=cases, tmp_path=tmp_path)
    assert _paths(job, "bcast") == {"cico"} and job.messages() == [], job.describe()


@pytest.mark.parametrize("wait", ["spin", "yield", "nap", "auto"])
def test_ways_of_waiting(mpi, run_mpi, build_program, wait):
    job = _check(mpi, run_mpi, build_program, env={"STRETTO_WAIT": wait})
    assert _paths(job, "bcast") == {"cico"} and job.messages() == [], job.describe()


def test_ways_of_waiting_differ_between_ranks(mpi, run_mpi, build_program, tmp_path):
    cases = {0: {"STRETTO_WAIT": "spin"}, 1: {"STRETTO_WAIT": "nap"}}
    assert _paths(_check(mpi, run_mpi, build_program, cases=cases, tmp_path=tmp_path), "bcast") == {"cico"}


def _one_message(job, *words):
    """Exactly one message of ours in the whole job, and what it must name."""
    messages = job.messages()
    assert len(messages) == 1, job.describe()
    for word in words:
        assert word in messages[0], messages


def test_an_unknown_option_is_named_once(mpi, run_mpi, build_program):
    job = _check(mpi, run_mpi, build_program, 3, env={"STRETTO_SLOT_BITES": "4096"})
    _one_message(job, "STRETTO_SLOT_BITES")
    assert _paths(job, "bcast") == {"cico"}


def test_a_bad_value_is_an_error_that_names_it(mpi, run_mpi, build_program):
    job = _check(mpi, run_mpi, build_program, 3, env={"STRETTO_SLOT_BYTES": "lots"}, ok=False)
    _one_message(job, "STRETTO_SLOT_BYTES", "lots")


@pytest.mark.parametrize("rank", [0, 2])
def test_a_bad_value_on_one_rank(mpi, run_mpi, build_program, tmp_path, rank):
    cases = {rank: {"STRETTO_WAIT": "sometimes"}}
    job = _check(mpi, run_mpi, build_program, 3, cases=cases, tmp_path=tmp_path, ok=False)
    _one_message(job, "STRETTO_WAIT", "sometimes")


def test_check_mode_runs_both_and_finds_no_difference(mpi, run_mpi, build_program):
    job = _check(mpi, run_mpi, build_program, env={"STRETTO_CHECK": "3"})
    assert _paths(job, "bcast") == {"cico"} and job.messages() == [], job.describe()


def test_explain_names_the_algorithms_over_shared_memory(mpi, run_mpi, build_program):
    """Where the length decides, rank 0 says which algorithm serves which lengths."""
    job = run_mpi(mpi, 3, [build_program(mpi, "some_ranks.c")], env={"STRETTO_EXPLAIN": "1"}).ok()
    said = re.search(
        r"communicator 0 of 3 ranks, over shared memory: allreduce by flat, from (\d+) bytes on by slices", job.stderr
    )
    assert said and 1 < int(said[1]) < 1 << 20, job.describe()
