#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""Messages that users see, as the sources have them.

    dev/messages.py          list the library's errors and warnings, which docs/troubleshooting.md explains
    dev/messages.py --tool   print a page of what the command-line tool says; the site has it (dev/site.py)

What a message fills in stands as `…`.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GAP = "…"

# ---- the library ---------------------------------------------------------------------------------

LITERAL = r'"(?:[^"\\]|\\.)*"'
# Functions whose text, or whose format, is what a user reads.
CALLS = re.compile(
    r"\b(?:log_line|report\.add)\(\s*(?:[\w. ]+\?\s*)?LogLevel::(?:error|warn)(?:\s*:\s*LogLevel::warn)?,\s*"
    rf"(?P<log>(?:{LITERAL}\s*)+)"
    rf"|\braise\(call_?, \w+, (?P<raised>{LITERAL})"
    rf"|\bOwnCode g_\w+ = \{{\s*(?P<code>{LITERAL})"
    r'|\breturn (?P<rule>"all ranks must[^"]*")'
)


def plain(text: str) -> str:
    """A format with gaps in place of what it fills in. Gaps that touch are one."""
    text = re.sub(r"%[-.*\d]*(?:ll|z|l)?[a-zA-Z]", GAP, text.replace('\\"', '"').replace("%%", "%"))
    return re.sub(f"{GAP}+", GAP, text)


def library_messages() -> list[str]:
    found = set()
    for path in sorted((ROOT / "src").rglob("*.[ch]pp")):
        for call in CALLS.finditer(path.read_text()):
            literals = re.findall(LITERAL, next(filter(None, call.groups())))
            found.add(plain("".join(literal[1:-1] for literal in literals)))
    return sorted(found - {GAP})


# ---- the tool ------------------------------------------------------------------------------------

SPEAKERS = {"fail", "complain"}


def text_of(node: ast.expr) -> str:
    """The text of an expression, with gaps where it is not literal."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return GAP


def spoken(node: ast.AST) -> list[ast.expr]:
    """The expressions whose text a user reads: of fail(...), raise Error(...), Verdict(...)."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        return node.exc.args[:1]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in SPEAKERS:
            return node.args[:1]
        if node.func.id == "Verdict":
            return [each for each in (*node.args[2:], *(word.value for word in node.keywords)) if each]
    return []


def tool_messages() -> Iterator[tuple[str, str]]:
    """A room of python/stretto, or a command, and one of its messages."""
    for path in sorted((ROOT / "python/stretto").rglob("*.py")):
        parts = path.relative_to(ROOT / "python/stretto").with_suffix("").parts
        room = f"stretto {'bench' if parts[1] == 'suites' else parts[1]}" if parts[0] == "commands" else parts[0]
        for node in ast.walk(ast.parse(path.read_text())):
            for expression in spoken(node):
                text = re.sub(rf"{GAP}+|\n", lambda gap: GAP if GAP in gap[0] else " ", text_of(expression)).strip()
                if re.search(r"\w{3}", text) and not text.startswith("unknown"):
                    yield room, text


def page() -> str:
    rooms: dict[str, set[str]] = {}
    for room, text in tool_messages():
        rooms.setdefault(room, set()).add(text)
    lines = [
        "# Messages of the command-line tool",
        "",
        "Errors of `stretto`, and what `stretto doctor` says. What a message fills in stands as `…`. The",
        "library's messages are in [troubleshooting](../troubleshooting.md).",
    ]
    for room in sorted(rooms):
        lines += ["", f"## {room}", "", "| message |", "|---|"]
        lines += [f"| {code(text)} |" for text in sorted(rooms[room])]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """A text as code in a table."""
    fence = "``" if "`" in text else "`"
    pad = " " if fence == "``" else ""
    return fence + pad + text.replace("|", "\\|") + pad + fence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", action="store_true")
    print(page() if parser.parse_args().tool else "\n".join(library_messages()))


if __name__ == "__main__":
    main()
