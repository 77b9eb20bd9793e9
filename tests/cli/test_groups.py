# SPDX-License-Identifier: BSD-3-Clause
"""Tests of one xdist_group run in one worker, so that what they share is built once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = """
import os
import pytest

pytestmark = pytest.mark.xdist_group("shared")


@pytest.mark.parametrize("number", range(8))
def test_one(number):
    print(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_a_group_has_one_worker(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    line = [sys.executable, "-m", "pytest", "-n", "3", "--dist", "loadgroup", "-rP", "-p", "no:cacheprovider", tmp_path]
    said = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=120).stdout
    workers = [text for text in said.splitlines() if text in ("gw0", "gw1", "gw2")]
    assert len(workers) == 8 and len(set(workers)) == 1, said
