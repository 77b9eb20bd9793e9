# SPDX-License-Identifier: BSD-3-Clause
"""What checks of the house stand on: the tree's files, and the list of checks.

A check is a function that yields a file and a text for each fault.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Faults = Iterator[tuple[str, str]]
CHECKS: dict[str, Callable[[], Faults]] = {}


def check(function: Callable[[], Faults]) -> Callable[[], Faults]:
    CHECKS[function.__name__] = function
    return function


def listed(*patterns: str) -> list[str]:
    """What git tracks or would track, by the patterns of git."""
    return subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def files(*patterns: str) -> list[str]:
    """Files of the project, also new ones that git does not track yet; generated ones apart."""
    return [name for name in listed(*patterns) if ".gen." not in name and path_of(name).exists()]


def path_of(name: str) -> Path:
    return ROOT / name


def lines(name: str) -> list[str]:
    return path_of(name).read_text().splitlines()
