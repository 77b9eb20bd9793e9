# SPDX-License-Identifier: BSD-3-Clause
"""Tests that somebody names: files of Python and of C++, and cases by a word (-k)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stretto.core.paths import root

CASE = re.compile(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
PROGRAMS = ("unit", "threads", "fuzz", "fault", "kv")  # each has its sources in tests/NAME


@dataclass(frozen=True)
class Chosen:
    """What the arguments of `stretto test` name. Without names: everything."""

    words: tuple[str, ...]  # for pytest, or none
    cases: dict[str, str]  # of C++: gtest's filter by program

    @property
    def by_name(self) -> bool:
        return bool(self.cases) or any(is_path(word) or word.startswith("-k") for word in self.words)


def is_path(word: str) -> bool:
    """Whether a word is the path of tests. Other words may belong to an option before them."""
    file = word.split("::")[0]
    return not word.startswith("-") and (file.endswith((".py", ".cpp")) or word.startswith("tests/"))


def is_cpp(word: str) -> bool:
    return is_path(word) and word.endswith(".cpp")


def chosen(arguments: Sequence[str]) -> Chosen:
    files = [Path(word) for word in arguments if is_cpp(word)]
    words = tuple(word for word in arguments if not is_cpp(word))
    wanted = word_of(arguments)
    named = any(map(is_path, arguments))
    if files and not any(map(is_path, words)):
        words = ()
    if not named:
        files = sorted(file for name in PROGRAMS for file in (root() / "tests" / name).glob("*.cpp"))
        files = files if wanted else []
    return Chosen(words, filters(files, wanted))


def word_of(arguments: Sequence[str]) -> str | None:
    """The one word of `-k`. Expressions of several are pytest's alone."""
    for i, each in enumerate(arguments):
        word = arguments[i + 1] if each == "-k" and i + 1 < len(arguments) else each.removeprefix("-k")
        if each.startswith("-k") and re.fullmatch(r"\w+", word):
            return word
    return None


def filters(files: Iterable[Path], word: str | None) -> dict[str, str]:
    """gtest's filter by program: the cases of files whose names have the word."""
    found: dict[str, list[str]] = {}
    for file in files:
        text = (root() / file).read_text()
        for suite, case in CASE.findall(text):
            if word is None or word.lower() in f"{suite}.{case}".lower():
                # A suite with parameters or types has words around its name.
                names = (f"{suite}.{case}", f"*/{suite}.{case}/*", f"{suite}/*.{case}")
                found.setdefault(file.parent.name, []).extend(names)
    return {program: ":".join(names) for program, names in found.items()}
