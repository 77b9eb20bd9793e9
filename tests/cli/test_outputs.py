# SPDX-License-Identifier: BSD-3-Clause
"""Files that commands are to write: what cannot be written is said before the work, and no directory is made for it."""
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
CALL = ["--op", "bcast", "-a", "binomial"]


@pytest.mark.parametrize("line", [
    ["model", "measure", "--profile"], ["model", "measure", "--json"], ["model", "rules", "--to"], ["model", "export", *CALL, "--goal"], ["model", "diagram", *CALL, "--plot"],
    ["model", "scale", *CALL, "--plot"], ["model", "chains", "--plot"], ["model", "compare", *CALL, "--json"], ["explain", *CALL[:2], "--json"],
    ["tune", "--json"], ["verify", "--json"], ["kv", "bench", "--json"], ["kv", "bench", "--plot"],
], ids=" ".join)
def test_said_before_the_work(stretto: Tool, tmp_path: Path, line: list[str]) -> None:
    to = tmp_path / "none" / "x.svg"
    done = stretto(*line, to, timeout=60)
    assert done.returncode == 2 and f"cannot write {to}: No such file or directory" in done.stderr.replace("\n", " "), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_what_stands_in_the_way(tmp_path: Path) -> None:
    from stretto import outputs
    (tmp_path / "file").write_text("")
    assert outputs.obstacle(tmp_path) == "Is a directory"
    assert outputs.obstacle(tmp_path / "file" / "x") == "Not a directory"
    assert outputs.obstacle(tmp_path / "none" / "x") == "No such file or directory"
    assert outputs.obstacle(tmp_path / "file") is outputs.obstacle(tmp_path / "new") is outputs.obstacle(Path("new")) is None
    assert not (tmp_path / "new").exists()


def test_a_picture_of_no_known_kind(stretto: Tool, tmp_path: Path) -> None:
    done = stretto("model", "diagram", *CALL, "--plot", tmp_path / "x.foo")
    assert done.returncode == 2 and ".svg" in done.stderr and "Traceback" not in done.stderr
