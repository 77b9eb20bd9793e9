# SPDX-License-Identifier: BSD-3-Clause
"""Rules that name algorithms over shared memory (shm:NAME)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Job
from oracle import seed
from stretto.mpi import Mpi


def written(path: Path, text: str) -> dict[str, str]:
    path.write_text(text)
    return {"STRETTO_RULES": str(path), "STRETTO_EXPLAIN": "1"}


@pytest.fixture
def check(mpi: Mpi, run_mpi: Callable, build_program: Callable) -> Callable[..., Job]:
    def run(env: dict[str, str]) -> Job:
        return run_mpi(mpi, 3, [build_program(mpi, "options_check.c"), 2, 100_000], env=env).ok()

    return run


NAMED = {
    "first": {"barrier": "flat", "reduce": "root", "allreduce": "flat", "scan": "flat", "exscan": "flat"},
    "last": {"barrier": "dissemination", "reduce": "slices", "allreduce": "slices", "scan": "chain", "exscan": "chain"},
}


@pytest.mark.few
@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("which", NAMED)
@pytest.mark.parametrize("source", ["differential.cpp", "reductions.cpp"])
def test_named_algorithms_over_shared_memory_are_right(
    mpi: Mpi, run_mpi: Callable, build_cxx: Callable, tmp_path: Path, source: str, which: str, ranks: int
) -> None:
    """Each algorithm serves all lengths, without the way over schedules."""
    rules = "".join(f"{collective}: shm:{name}\n" for collective, name in NAMED[which].items())
    line = [build_cxx(source), "--cases", "60", "--seed", str(seed()), "--expect-native", "50"]
    env = written(tmp_path / "rules", rules)
    job = run_mpi(mpi, ranks, line, env=env, timeout=90).ok()
    assert "60 cases ok, with us" in job.stdout, job.describe()
    for number, (collective, name) in enumerate(NAMED[which].items(), 1):
        said = f" of {ranks} ranks, over shared memory: {collective} by {name} (line {number} of the rules)"
        assert said in job.stderr, job.describe()
    assert not any("as rules say" in text for text in job.messages()), job.describe()


@pytest.mark.few
def test_lengths_choose_among_named_algorithms(check: Callable, tmp_path: Path) -> None:
    """Some lengths go by a named algorithm, some to the MPI, and others by what is built in."""
    text = "allreduce: shm:slices\nallreduce bytes=65-1K: builtin\nreduce: shm:slices\nreduce bytes=0-16: mpi\n"
    job = check(env=written(tmp_path / "rules", text))
    said = [line.split("explain: ")[1] for line in job.messages()]
    assert (
        "communicator 0 of 3 ranks, over shared memory: allreduce by slices (line 1 of the rules), from 65 bytes on by "
        "flat, from 1025 bytes on by slices (line 1 of the rules)" in said
    ), said
    assert "communicator 0 of 3 ranks, as rules say: reduce" in said, said


@pytest.mark.few
@pytest.mark.only(abi="openmpi")
def test_without_shared_memory_a_named_algorithm_is_passed_over(check: Callable, tmp_path: Path) -> None:
    """Lanes that do not fit into the segment keep the ranks from sharing memory. Rank 0 says so in one line."""
    env = written(tmp_path / "rules", "bcast: shm:board\nallreduce: shm:slices\n")
    job = check(env=env | {"STRETTO_SEGMENT_BYTES": "16M", "STRETTO_SLOTS": "64", "STRETTO_SLOT_BYTES": "1M"})
    lines = [line for line in job.messages() if "which these ranks do not share" in line]
    assert len(lines) == 1 and "communicator 0 of 3 ranks: line 1 of the rules names an algorithm" in lines[0]
    assert {rank["bcast"] for rank in job.results()} == {"host"}, job.describe()
