#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""The house in numbers: what tests/cli/house.py checks, counted. Each should be 0.

dev/house.py            a line for each count
dev/house.py --names    and the places
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/cli"))

import house  # noqa: E402
import house_pages  # noqa: E402
import house_tree  # noqa: E402

MOST_IN_FILE = 400
CPP = ("src/*.cpp", "src/*.hpp")
LAMBDA = re.compile(r"\[[^\[\]]*\]\s*\(")
# A line that opens a block, but of no function.
NO_FUNCTION = re.compile(r"\s*(namespace|struct|class|union|enum|extern|if|for|while|switch|do|else|case|\}|\{|@)\b")


def circles() -> Iterator[str]:
    """Units (a header and its .cpp) that include each other, by room."""
    for circle in house.circles(house.cpp_units()):
        yield ", ".join(sorted(circle))


def up_arrows() -> Iterator[str]:
    """Includes and imports against the layers."""
    for check in (house.includes_go_downward, house.python_imports_go_downward):
        yield from (f"{name}: {text}" for name, text in check())


def long_files() -> Iterator[str]:
    for name in house_tree.files(*CPP):
        if (length := len(house_tree.lines(name))) > MOST_IN_FILE:
            yield f"{name}: {length} lines"


def head_of(lines: list[str], at: int) -> int:
    """Where the statement begins that goes on in a line."""
    while at and not re.search(r"([;{}]|^\s*(//|#|public:|private:|protected:).*|^)$", lines[at - 1]):
        at -= 1
    return at


def cpp_functions(name: str) -> Iterator[tuple[str, int]]:
    """Functions as clang-format leaves them: from the head to the brace at its depth."""
    lines = house_tree.lines(name)
    for i, line in enumerate(lines):
        head = head_of(lines, i)
        opens = re.search(r"\)[^;()]*\{$", line) and not LAMBDA.search(line)
        if opens and not NO_FUNCTION.match(lines[head]):
            depth = len(lines[head]) - len(lines[head].lstrip())
            end = next((at for at in range(i + 1, len(lines)) if re.match(rf" {{{depth}}}\}}", lines[at])), i)
            yield lines[head].strip(), end - head + 1


def long_functions() -> Iterator[str]:
    for name in house_tree.files(*CPP):
        for head, length in cpp_functions(name):
            if length > house.MOST_IN_FUNCTION:
                yield f"{name}: {length} lines: {head}"
    yield from (f"{name}: {text}" for name, text in house.python_functions_are_short())


def typed_tables() -> Iterator[str]:
    yield from (f"{name}: {text}" for name, text in house_pages.figures_are_written_by_the_script())


COUNTS = {
    "circles of includes": circles,
    "includes and imports that go up": up_arrows,
    f"C++ files above {MOST_IN_FILE} lines": long_files,
    f"functions above {house.MOST_IN_FUNCTION} lines": long_functions,
    "tables of figures that were typed": typed_tables,
    "figures of commits that were not clean": lambda: iter(sorted(house_pages.BEFORE_THE_RULE)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="name the places")
    names = parser.parse_args().names
    for title, count in COUNTS.items():
        found = list(count())
        print(f"{len(found):5}  {title}")
        if names:
            print("".join(f"         {place}\n" for place in found), end="")


if __name__ == "__main__":
    main()
