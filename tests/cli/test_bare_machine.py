# SPDX-License-Identifier: BSD-3-Clause
"""A checkout on a bare Debian: the two commands that a newcomer types, in both orders.

Each brings packages, and what the first one has configured must find what the second one brings.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_system import bare_debian, inside_of

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.long, pytest.mark.xdist_group("bare machine"), pytest.mark.timeout(5400)]
# Packages of the tests bring a pmix.h.
COMMANDS = {
    "demo": "./stretto demo --only node",
    "test": "./stretto test --part pytest tests/mpi/test_pmix.py tests/cli/test_kv.py",
}


@pytest.fixture
def system() -> Iterator[Path]:
    """A bare Debian 12 with this checkout."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with bare_debian("bookworm") as place:
        for name in tracked.splitlines():
            copy = place / "opt/stretto" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy)
        yield place


@pytest.mark.parametrize("order", [("demo", "test"), ("test", "demo")], ids="-then-".join)
def test_the_two_commands_in_a_row(system: Path, order: tuple[str, str]) -> None:
    for name in order:
        inside_of(system, f"cd /opt/stretto && {COMMANDS[name]}", timeout_s=2400)
