# SPDX-License-Identifier: BSD-3-Clause
"""top --stacks: of any process, and what it says where it may not look."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from stretto.commands.top import jobs, stacks

SLEEPER = """
import time

def inner():
    print(flush=True)
    time.sleep(60)

inner()
"""


def test_a_program_in_python_shows_its_own_frames(tmp_path: Path) -> None:
    script = tmp_path / "sleeper.py"
    script.write_text(SLEEPER)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as child:
        try:
            child.stdout.readline()
            rows = []
            for _ in range(100):  # until it has come to the call
                rows = stacks.looked(jobs.looker(), stacks.chosen(jobs.looker(), str(child.pid)))
                if rows[0]["threads"][0]["frames"][:1] == [f"{script}:6 in inner"]:
                    break
        finally:
            child.kill()
    frames = rows[0]["threads"][0]["frames"]
    assert frames[:2] == [f"{script}:6 in inner", f"{script}:8 in <module>"], rows
    text = "\n".join(line.plain for line in stacks.lines(rows))
    assert text.startswith(f"not a rank  pid {child.pid}  ") and f"    {script}:6 in inner\n" in text, text


def test_ranks_with_the_same_stack_stand_together() -> None:
    def row(rank: int, *frames: str) -> jobs.Row:
        threads = [{"frames": list(frames), "error": None}] * 2
        return {"rank": rank, "pid": 100 + rank, "command": "./app", "threads": threads}

    rows = [row(0, "a.c:1 in f", "a.c:9 in main"), row(1, "b.c:2 in g"), row(2, "a.c:1 in f", "a.c:9 in main")]
    text = [line.plain for line in stacks.lines(rows)]
    assert text[:4] == [
        "ranks 0, 2  pid 100, 102  ./app",
        "    a.c:1 in f",
        "    a.c:9 in main",
        "    and 1 more thread",
    ]
    assert text[4] == "rank 1  pid 101  ./app"


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ("0", "the stack of process {pid} cannot be read: Operation not permitted"),
        ("1", "kernel.yama.ptrace_scope is 1, so this system lets only root look at stacks. Root may change it"),
        ("3", "kernel.yama.ptrace_scope is 3, so this system lets nobody look at stacks"),
    ],
)
def test_it_says_what_forbids_a_look(tmp_path, monkeypatch, scope: str, said: str) -> None:
    yama = tmp_path / "ptrace_scope"
    yama.write_text(scope + "\n")
    monkeypatch.setattr(stacks, "YAMA", yama)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    nobody = 0x3FFFFFFF  # no process has this number
    assert said.format(pid=nobody) in stacks.why("Operation not permitted", nobody)
