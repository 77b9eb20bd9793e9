# SPDX-License-Identifier: BSD-3-Clause
"""`stretto clean`: it removes what nobody uses, and says so; what lives stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.cluster import registry
from stretto.core import paths
from stretto.packaging import cleaning

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
HOLD = "import mmap, sys\nf = open(sys.argv[1], 'r+b')\nm = mmap.mmap(f.fileno(), 0)\nprint(1, flush=True)\ninput()"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with leftovers of each kind, all of them old."""
    cache, temporary, shared, clusters = (tmp_path / name for name in ("cache", "tmp", "shm", "clusters"))
    made = [
        cache / "stretto/0.1.0/build/release/libstretto-mpich.so",
        cache / "stretto/preload/x",
        temporary / "stretto-demo-abc/result.json",
        temporary / "other/file",
        shared / "vader_segment.node.0.1.2",
        shared / "mpich_shar_tmp123",
        shared / "somebody_elses",
        clusters / "dead/cluster.json",
    ]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 5000)
    before = time.time() - cleaning.YOUNG_S - 60
    for path in tmp_path.rglob("*"):
        os.utime(path, (before, before))
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(paths, "base", lambda: tmp_path / "checkout")
    monkeypatch.setattr(cleaning.tempfile, "gettempdir", lambda: str(temporary))
    monkeypatch.setattr(cleaning, "SHARED", shared)
    monkeypatch.setattr(registry, "runtime", lambda: clusters)
    monkeypatch.setattr(registry, "_made_runtime", lambda: clusters)
    monkeypatch.setattr(cleaning, "sees_all", lambda: True)
    return tmp_path


def left(machine: Path) -> set[str]:
    return {str(path.relative_to(machine)) for path in machine.rglob("*") if path.is_file()}


def test_it_says_what_it_would_remove(machine: Path, inside: Tool) -> None:
    before = left(machine)
    said = inside("clean", "--dry-run").stdout
    assert (
        said.count("would go") == 6
        and "dead cluster" in said
        and "shared memory of a job" in said
        and "somebody_elses" not in said
    )
    assert left(machine) == before


def test_it_removes_what_nobody_uses(machine: Path, inside: Tool) -> None:
    (machine / "checkout/build/release").mkdir(parents=True)
    elsewhere = machine / "another checkout's"
    elsewhere.mkdir()
    (elsewhere / "mpi").mkdir()
    (elsewhere / "mpi/libmpi.so").touch()
    (machine / "checkout/.venv").symlink_to(elsewhere)
    fresh = machine / "shm/vader_segment.node.0.9.9"
    fresh.touch()
    said = inside("clean").stdout
    assert said.count("removed") == 7, said
    assert left(machine) == {
        "tmp/other/file", "shm/somebody_elses", "shm/vader_segment.node.0.9.9", "another checkout's/mpi/libmpi.so",
    }  # fmt: skip
    assert not (machine / "checkout/build").exists() and not (machine / "cache/stretto").exists()


@pytest.mark.parametrize("name", ["shm/mpich_shar_tmp123", "cache/stretto/0.1.0/build/release/libstretto-mpich.so"])
def test_what_a_process_uses_stays(machine: Path, inside: Tool, name: str) -> None:
    line = [sys.executable, "-c", HOLD, str(machine / name)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"1\n"
        said = inside("clean").stdout
        assert f"stays: process {holder.pid} uses it" in said and said.count("removed") == 5, said
        assert name in left(machine)
        holder.communicate(b"\n")
    inside("clean")
    assert name not in left(machine)


def test_shared_memory_of_other_containers_stays(machine: Path, inside: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleaning, "sees_all", lambda: False)
    assert "another container" in inside("clean").stderr
    assert "shm/mpich_shar_tmp123" in left(machine)
