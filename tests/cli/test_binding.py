# SPDX-License-Identifier: BSD-3-Clause
"""When `stretto run` binds ranks, and when it leaves that to others."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from stretto.mpi import binding

CORES = 8


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is added on a machine of 8 cores without hardware threads."""
    for name in list(os.environ):
        if name.startswith(("HYDRA_", "MPICH_", "OMP_")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(binding, "usable_cores", lambda: CORES)
    monkeypatch.setattr(binding.os, "cpu_count", lambda: CORES)
    monkeypatch.setattr(binding.os, "sched_getaffinity", lambda _: set(range(CORES)))

    def ask(
        np: int, *extra: str, kind: str = "mpich", argv: tuple[str, ...] = ("app",), spread: bool = False
    ) -> list[str]:
        return binding.words_for(SimpleNamespace(kind=kind), np, argv, extra, spread)  # type: ignore[arg-type]

    return ask


def test_ranks_that_fill_the_machine_are_bound(words: Any) -> None:
    assert words(CORES) == ["-bind-to", "core"]
    assert words(CORES, "-print-all-exitcodes") == ["-bind-to", "core"]
    assert words(1, argv=("a", ":", "-n", str(CORES - 1), "b")) == ["-bind-to", "core"]


@pytest.mark.parametrize("np", [1, 3, 5, CORES - 1, CORES + 1, 64])
def test_fewer_or_more_ranks_are_not(words: Any, np: int) -> None:
    assert words(np) == []


def test_open_mpi_binds_by_itself(words: Any) -> None:
    assert words(CORES, kind="openmpi") == [] and words(CORES, kind="impi") == []


@pytest.mark.parametrize(
    "extra",
    [("-bind-to", "none"), ("--bind-to=socket",), ("-map-by", "numa"), ("-binding", "cpu"), ("-rankmap", "(v)")],
)
def test_the_users_words_count(words: Any, extra: tuple[str, ...]) -> None:
    assert words(CORES, *extra) == []


def test_ranks_on_other_hosts_are_left_alone(words: Any) -> None:
    assert words(CORES, spread=True) == []


@pytest.mark.parametrize(("name", "value"), [("HYDRA_BINDING", "user:0"), ("OMP_NUM_THREADS", "2")])
def test_variables_count(words: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert words(CORES) == []


def test_a_process_with_fewer_processors_has_been_told(words: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding.os, "sched_getaffinity", lambda _: {0, 1})
    assert words(CORES) == []
