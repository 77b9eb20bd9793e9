# SPDX-License-Identifier: BSD-3-Clause
"""What Python's TOML library makes of documents, for the comparison in options_fuzz_test.cpp.

Reads documents from a file. Each follows a line with its length in bytes. Prints for each
a line: "error", "other" or "flat". "other" is good TOML with something that stretto.toml does not
use. A "flat" line goes on with the entries as key=kind:value, with the value in hexadecimal UTF-8.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path


def documents(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        newline = data.index(b"\n", at)
        length = int(data[at:newline])
        at = newline + 1
        yield data[at : at + length]
        at += length


def entry(key: str, value: object) -> str | None:
    """One entry in the oracle's words, None if stretto.toml does not use such keys or values."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,63}", key):
        return None
    if isinstance(value, bool):
        text, kind = str(value).lower(), "word"
    elif isinstance(value, int):
        text, kind = str(value), "integer"
    elif isinstance(value, str):
        text, kind = value, "string"
    else:
        return None
    raw = text.encode()
    return f"{key}={kind}:{raw.hex()}" if len(raw) < 1024 and b"\0" not in raw else None


def judge(document: bytes) -> str:
    try:
        table = tomllib.loads(document.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return "error"
    entries = [entry(key, value) for key, value in table.items()]
    if any(found is None for found in entries):
        return "other"
    return " ".join(["flat", *sorted(str(found) for found in entries)])


def main() -> None:
    for document in documents(Path(sys.argv[1]).read_bytes()):
        print(judge(document))


if __name__ == "__main__":
    main()
