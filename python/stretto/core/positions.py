# SPDX-License-Identifier: BSD-3-Clause
"""Places in a file, for error messages.

All errors in files read FILE:LINE:COLUMN: WHAT, as those of the library and of compilers do.
Columns count from 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from stretto.core.console import fail

HEADER = re.compile(r"^[ \t]*(\[\[?)[ \t]*([\w.-]+)[ \t]*\]", re.MULTILINE)  # of a table, in TOML


class WrongText(ValueError):
    """An error in a text, and its offset in characters."""

    def __init__(self, what: str, offset: int = 0) -> None:
        super().__init__(what)
        self.offset = offset


@dataclass(frozen=True)
class Source:
    """A file that was read."""

    name: str
    text: str = ""

    def at(self, offset: int, what: str) -> str:
        """The message for an error at this offset."""
        before = self.text[:offset]
        return f"{self.name}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}: {what}"

    def says(self, error: ValueError) -> str:
        """The message for an error of a decoder, or of ours, with its place."""
        offset = getattr(error, "pos", getattr(error, "offset", 0))
        return self.at(offset, getattr(error, "msg", None) or str(error))

    # ---- TOML

    def decoding(self, error: ValueError) -> str:
        """The message for an error of tomllib, which says `(at line 1, column 4)` or `(at end of
        document)`."""
        what, _, place = str(error).partition(" (at ")
        if found := re.match(r"line (\d+), column (\d+)\)", place):
            return f"{self.name}:{found[1]}:{found[2]}: {what}"
        return self.at(len(self.text.rstrip()), what)

    def in_table(self, what: str, table: str = "", index: int = 0, key: str = "") -> str:
        """The message for an error at a key, or at the header, of the table of that name and
        number. Table "": the keys before all tables."""
        headers = list(HEADER.finditer(self.text))
        begin, end = 0, headers[0].start() if headers else len(self.text)
        of_table = [i for i, header in enumerate(headers) if header[2] == table]
        if table and index < len(of_table):
            at = of_table[index]
            begin, end = headers[at].start(1), headers[at + 1].start() if at + 1 < len(headers) else len(self.text)
        found = (
            re.compile(rf"^[ \t]*({re.escape(key or table)})[ \t]*=", re.MULTILINE).search(self.text, begin, end)
            if key or table
            else None
        )
        return self.at(found.start(1) if found else begin, what)


def read(path: Path) -> Source:
    """Reads a text file. If that fails, the command ends."""
    try:
        data = path.read_bytes()
        return Source(str(path), data.decode())
    except OSError as error:
        fail(f"cannot read {path}: {error.strerror}")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode()
        fail(Source(str(path), good).at(len(good), "it is not UTF-8 text"))
