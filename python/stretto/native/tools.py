# SPDX-License-Identifier: BSD-3-Clause
"""Runs compilers, CMake, ninja and their like."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stretto.core.processes import child


class BuildError(RuntimeError):
    """A compiler or CMake failed. The text is what it said."""


def run_tool(
    line: Sequence[str], quiet: bool = True, env: dict[str, str] | None = None, cwd: Path | None = None
) -> str:
    """Runs a build tool and returns its output. Raises BuildError if it fails."""
    full = {**os.environ, **(env or {})}
    full.pop("LD_PRELOAD", None)
    # ninja passes its job-server variables to nested calls, such as a build started from ctest.
    full.pop("MAKEFLAGS", None)
    try:
        with child(
            line,
            env=full,
            cwd=cwd,
            text=True,
            stdout=subprocess.PIPE if quiet else None,
            stderr=subprocess.STDOUT if quiet else None,
        ) as tool:
            said = tool.communicate()[0] or ""
    except FileNotFoundError:
        raise BuildError(f"{line[0]} is not installed (`stretto doctor` says what is missing)") from None
    if tool.returncode:
        raise BuildError(f"$ {shlex.join(map(str, line))}\n{said.rstrip()}\nexit status {tool.returncode}")
    return said
