# SPDX-License-Identifier: BSD-3-Clause
"""The reduction kernels as AArch64 runs them: built by a cross compiler, checked under qemu's user emulation."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

MISSING = 77  # neon.sh's exit status where a tool is missing


@pytest.mark.long
def test_neon_kernels_do_as_the_reference(tmp_path: Path) -> None:
    script = Path(__file__).with_name("neon.sh")
    run = subprocess.run(["sh", script, tmp_path], capture_output=True, text=True, timeout=1800)
    if run.returncode == MISSING:
        pytest.skip(f"{run.stderr.strip()}; Debian: apt-get install g++-aarch64-linux-gnu qemu-user")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "neon: every kernel does as the reference" in run.stdout
