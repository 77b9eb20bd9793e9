# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures of the tests of the command-line tool."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forked
import pytest

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / "python", ROOT / "tests" / "mpi"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


import short_run  # noqa: E402


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    short_run.choose(config, items)


@pytest.fixture(scope="session")
def command_tree() -> Any:

    from stretto import cli

    return cli.command_tree()


@pytest.fixture
def inside(command_tree: Any, capsys: pytest.CaptureFixture[str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """inside("bench", "--sizes", "x") runs the tool in this process, for what ends before anything
    is built or started."""

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        line = [*map(str, arguments)]
        with pytest.raises(SystemExit) as end:
            command_tree(line, prog_name="stretto")
        said = capsys.readouterr()
        return subprocess.CompletedProcess(line, end.value.code, said.out, said.err)

    return call


@pytest.fixture(scope="session")
def stretto() -> Callable[..., subprocess.CompletedProcess[str]]:
    """stretto("info", "--json", "-", env={...}): the tool in a process of its own."""

    def call(
        *arguments: str | Path,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 100,
        attempts: int = 2,
    ) -> subprocess.CompletedProcess[str]:
        kept = {
            k: v
            for k, v in os.environ.items()
            if k not in ("LD_PRELOAD", "COLUMNS") and (not k.startswith("STRETTO") or k == "STRETTO_MPI_VENVS")
        }
        for _ in range(attempts - 1):  # an MPI may hang in its own start: see stretto.mpi.launching.capture
            with contextlib.suppress(subprocess.TimeoutExpired):
                return call(*arguments, env=env, cwd=cwd, timeout=timeout, attempts=1)
        return forked.run([*map(str, arguments)], {**kept, "XDG_CONFIG_HOME": "/dev/null", **(env or {})}, cwd, timeout)

    return call
