# SPDX-License-Identifier: BSD-3-Clause
"""Lines of source from what Stretto's messages say of a call: `at /path/app+0x1234`.

The library knows in which file of code a call lies, and where. It reads no debug information: that
is work for a tool beside the job. Where there is none, or no tool, the text stays as it is.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

# A place never contains the beginning of another one.
PLACE = re.compile(r"(?<![^ ])(?P<file>/(?:(?! at /)[^\n])*?)\+0x(?P<offset>[0-9a-f]+)\b")
SECONDS = 20  # that a tool may take; the stream of messages waits for it
HEADER = re.compile(r"0x[0-9a-f]+:?\s*$")
SOURCE = re.compile(r"(?P<file>.*?):(?P<line>\d+|\?)(?::\d+)?(?: \(.*\))?$")
FORTRAN = re.compile(r"__(?P<module>\w+?)_MOD_(?P<name>\w+)$")
FORTRAN_FILES = (".f", ".for", ".f90", ".f95", ".f03", ".f08", ".f18")


@dataclass(frozen=True)
class Line:
    """What a tool says of an address. Each part may be missing."""

    function: str | None = None
    file: str | None = None
    line: int | None = None


def parse(text: str, count: int) -> list[Line]:
    """The answers of addr2line -a -f to so many addresses. Of inlined functions, the innermost one counts."""
    answers: list[Line] = []
    rows = iter(text.splitlines())
    for row in rows:
        if not HEADER.match(row):
            continue
        function, source = next(rows, ""), next(rows, "")
        found = SOURCE.match(source)
        file = found["file"] if found and found["file"] not in ("", "??") else None
        line = int(found["line"]) if found and file and found["line"].isdigit() and found["line"] != "0" else None
        answers.append(Line(None if function in ("", "??") else function, file if line else None, line))
    return (answers + [Line()] * count)[:count]


@functools.cache
def tool() -> tuple[str, ...] | None:
    """The command of a tool that knows lines. None: there is none."""
    for name in ("eu-addr2line", "addr2line", "llvm-addr2line"):
        if found := shutil.which(name):
            return (found, "-a", "-f", "-C", "-i", "-e")
    if found := shutil.which("llvm-symbolizer"):
        return (found, "--output-style=GNU", "-a", "-f", "-C", "-i", "-e")
    return None


def ask(file: str, offsets: Sequence[str]) -> list[Line]:
    command = tool()
    if command is None or not os.path.isfile(file):
        return [Line()] * len(offsets)
    try:
        done = subprocess.run(
            [*command, file, *(f"0x{offset}" for offset in offsets)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            env={**os.environ, "DEBUGINFOD_URLS": ""},  # nothing is fetched
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return [Line()] * len(offsets)
    return parse(done.stdout, len(offsets))


def function_name(name: str, file: str | None) -> str:
    """A function as its source calls it."""
    if found := FORTRAN.match(name):
        return f"{found['module']}::{found['name']}"
    if name == "MAIN__":
        return "the main program"
    return name.removesuffix("_") if file and file.lower().endswith(FORTRAN_FILES) else name


def shown(file: str) -> str:
    """A path, from here if it lies below."""
    path = os.path.normpath(file)
    here = os.getcwd() + "/"
    return path[len(here) :] if path.startswith(here) else path


class Resolver:
    """Answers from memory what it has been asked before."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], str] = {}

    def learn(self, places: Iterable[tuple[str, str]]) -> None:
        """Asks for several places: once for each file."""
        offsets: dict[str, list[str]] = {}
        for file, offset in dict.fromkeys(places):
            if (file, offset) not in self.known:
                offsets.setdefault(file, []).append(offset)
        for file, wanted in offsets.items():
            for offset, found in zip(wanted, ask(file, wanted)):
                where = f"{shown(found.file)}:{found.line}" if found.file else f"{file}+0x{offset}"
                name = f" in {function_name(found.function, found.file)}" if found.function else ""
                self.known[file, offset] = where + name

    def place(self, file: str, offset: str) -> str:
        """`step.c:33 in step`, or `app+0x1234 in step`, or the place as it came."""
        self.learn([(file, offset)])
        return self.known[file, offset]

    def text(self, text: str) -> str:
        """A text with lines in place of addresses."""
        return PLACE.sub(lambda found: self.place(found["file"], found["offset"]), text)


class Stream:
    """Passes on what programs write. Lines of Stretto that name addresses wait until they are whole."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.held = b""

    def feed(self, data: bytes) -> bytes:
        *lines, rest = (self.held + data).split(b"\n")
        out = b"".join(self.line(line) + b"\n" for line in lines)
        self.held = rest if b"stretto: " in rest else b""
        return out + (b"" if self.held else rest)

    def end(self) -> bytes:
        held, self.held = self.held, b""
        return self.line(held)

    def line(self, line: bytes) -> bytes:
        if b"stretto: " not in line or b"+0x" not in line:
            return line
        return os.fsencode(self.resolver.text(os.fsdecode(line)))


def split_place(text: str) -> tuple[str, str] | None:
    """File and offset of a place as a person writes it: `./app+0x1234`."""
    file, plus, offset = text.rpartition("+0x")
    if not plus or not re.fullmatch("[0-9a-f]+", offset):
        return None
    return str(Path(file).absolute()), offset
