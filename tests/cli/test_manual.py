# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages and completion of shells, as they are made from the tree of commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stretto.packaging import manual

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.xdist_group("manual")


@pytest.fixture(scope="module")
def prefix(command_tree: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual")
    manual.write(folder, command_tree)
    command = folder / "bin/stretto"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/python exec {sys.executable} -m stretto "$@"\n')
    command.chmod(0o755)
    return folder


def plain(page: Path) -> str:
    return re.sub(r"\\f.", "", page.read_text()).replace("\\-", "-").replace("\\(aq", "'")


def test_each_command_has_a_page_with_its_options(command_tree: Any, prefix: Path) -> None:
    commands = list(manual.commands(command_tree))
    assert len(commands) > 40
    for path, command in commands:
        text = plain(prefix / f"share/man/man1/{manual.name_of(path)}.1")
        for name in [name for each in command.params if each.param_type_name == "option" for name in each.opts]:
            assert re.search(rf"(^|[ ,/]){re.escape(name)}\b", text, re.MULTILINE), (path, name)
        for name in (*getattr(command, "commands", {}), *getattr(command, "parts", {})):
            assert f"{manual.name_of((*path, name))}(1)" in text
    run = plain(prefix / "share/man/man1/stretto-run.1")
    assert "[default: 2; x>=1]" in run and "[b]" not in run
    assert "\nstretto run -n 4 --stats -- python script.py\n" in run


def test_troff_has_no_complaint(prefix: Path) -> None:
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    pages = sorted((prefix / "share/man/man1").iterdir())
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *pages], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_stretto_completion stretto
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(shell: str, prefix: Path, *words: str) -> set[str]:
    """The words that a shell offers for the last one of these."""
    script = str(prefix / manual.COMPLETIONS[shell])
    line = ["bash", "-c", BASH, "bash", script, *words]
    if shell == "fish":
        line = ["fish", "--no-config", "-c", f"source {script}; complete -C '{' '.join(words)}'"]
    if not shutil.which(line[0]):
        pytest.skip(f"needs {shell}")
    environment = {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": str(prefix)}
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=environment)
    return {row.split("\t")[0] for row in done.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shells_complete(prefix: Path, shell: str) -> None:
    assert complete(shell, prefix, "stretto", "ru") == {"run"}
    assert "--method" in complete(shell, prefix, "stretto", "bench", "--m")
    assert "--scheme" in complete(shell, prefix, "stretto", "bench", "--suite", "kv", "--s")


def test_zsh_takes_its_script(prefix: Path) -> None:
    if not shutil.which("zsh"):
        pytest.skip("needs zsh")
    script = prefix / manual.COMPLETIONS["zsh"]
    assert script.read_text().startswith("#compdef stretto\n")
    subprocess.run(["zsh", "-n", script], check=True, timeout=20)
