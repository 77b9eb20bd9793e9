# SPDX-License-Identifier: BSD-3-Clause
"""Lines of source in messages: what is read of tools, and how a stream passes through."""

from __future__ import annotations

import random

import pytest
from stretto.core import source_lines
from stretto.core.source_lines import Line, Stream, function_name, parse

ANSWER = """0x0000000000001269
step
/home/u/step.c:8 (discriminator 2)
main
/home/u/step.c:13
0x000000000000126f
??
??:0
0x0000000000001270
work
??:?
"""


def test_the_innermost_function_counts():
    step, unknown, named = parse(ANSWER, 3)
    assert step == Line("step", "/home/u/step.c", 8)
    assert unknown == Line() and named == Line("work")


@pytest.mark.parametrize("text", ["", "0x1", "0x1\n", "0x1\nf", "??\n??:0\n"])
def test_short_answers(text):
    assert len(parse(text, 2)) == 2


def test_any_answer_is_read():
    chosen = random.Random(1)
    for _ in range(2000):
        text = "".join(
            chosen.choice(["0x12", "\n", "??", ":", "8", "step", " (", ")", "\r", "é", "\0"]) for _ in range(30)
        )
        assert len(parse(text, 3)) == 3


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [
        ("__solver_MOD_step", "a.f90", "solver::step"),
        ("MAIN__", "a.f90", "the main program"),
        ("step_", "a.F90", "step"),
        ("step_", "a.c", "step_"),
    ],
)
def test_fortran_names(name, file, said):
    assert function_name(name, file) == said


@pytest.fixture
def resolver(monkeypatch):
    monkeypatch.setattr(
        source_lines, "ask", lambda file, offsets: [Line("step", f"{file}.c", int(o, 16)) for o in offsets]
    )
    return source_lines.Resolver()


def test_places_in_a_message(resolver):
    text = "(rank 0 at solve.py:3 in f; rank 1 at /a b/app+0x10; rank 2 at /lib/x.so+0x11)"
    said = "(rank 0 at solve.py:3 in f; rank 1 at /a b/app.c:16 in step; rank 2 at /lib/x.so.c:17 in step)"
    assert resolver.text(text) == said


def test_a_stream_holds_back_only_what_it_may_change(resolver):
    stream = Stream(resolver)
    assert stream.feed(b"50 %\r") == b"50 %\r", "a progress bar is seen at once"
    assert stream.feed(b"100 %\nstretto: rank 0: at /app+0x1") == b"100 %\n"
    assert stream.feed(b"0\nplain /app+0x10\n") == b"stretto: rank 0: at /app.c:16 in step\nplain /app+0x10\n"
    assert stream.feed(b"stretto: rank") == b"" and stream.end() == b"stretto: rank"


def test_any_bytes_pass():
    chosen = random.Random(2)
    data = bytes(chosen.choice(b"ab\n\xff\0 ") for _ in range(5000))
    stream, passed, at = Stream(source_lines.Resolver()), b"", 0
    while at < len(data):
        piece = chosen.randrange(1, 50)
        passed += stream.feed(data[at : at + piece])
        at += piece
    assert passed + stream.end() == data
