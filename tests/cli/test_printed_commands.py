# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the tutorial and of the README run as they are printed.

A block of the tutorial that begins with ```sh runs in a shell, at the top of the tree. The lines of
the ```text block behind it must come, with `...` for anything.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs/tutorial.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.skipif(not shutil.which("mpicc"), reason="the tutorial needs mpicc in PATH")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place that looks like the top of the tree. Its `./stretto` is this Python's, which needs no preparing."""
    top = tmp_path_factory.mktemp("tree")
    (top / "examples").symlink_to(ROOT / "examples")
    (top / "build").mkdir()
    stretto = top / "stretto"
    stretto.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT / "python"))} exec {sys.executable} -m stretto "$@"\n'
    )
    stretto.chmod(0o755)
    return top


def shell(tree: Path, script: str) -> str:
    """What a script prints. `!` inverts a status, so each command is a line of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("STRETTO") or k == "STRETTO_MPI_VENVS"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(f"{line} || exit 1" for line in script.splitlines() if line)],
        cwd=tree,
        env={**kept, "XDG_CONFIG_HOME": "/dev/null"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def missing(expected: str, said: str) -> list[str]:
    """The expected lines that did not come."""
    patterns = [re.sub(r"([\[?*])", r"[\1]", line).replace("...", "*") for line in expected.splitlines()]
    return [each for each in patterns if not fnmatch.filter(said.splitlines(), each)]


def test_the_tutorial_runs_as_printed(tree: Path) -> None:
    blocks = BLOCK.findall(TUTORIAL.read_text())
    assert len(blocks) > 6
    for script, expected in blocks:
        said = shell(tree, script)
        assert missing(expected, said) == [], said


def readme_commands() -> list[str]:
    block = re.search(r"## Two commands\n\n[^`]*```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


def test_the_readme_runs_as_printed(tree: Path) -> None:
    demo, run = readme_commands()
    assert demo == "./stretto demo"  # its own tests are in test_demo.py
    shell(tree, "mpicc -O2 examples/cg.c -o app -lm")
    assert "right" in shell(tree, run)
