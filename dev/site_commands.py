# SPDX-License-Identifier: BSD-3-Clause
"""The page of the command line, made from the commands themselves."""

from __future__ import annotations

from typing import Any

from rich.text import Text


def plain(text: str | None) -> str:
    """Help without the tool's markup, on one line."""
    return " ".join(Text.from_markup(text or "").plain.split())


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def options_of(command: Any, context: Any) -> list[str]:
    rows = []
    for parameter in command.get_params(context):
        if record := parameter.get_help_record(context):
            names, text = record
            rows.append(f"| `{names.replace('|', chr(92) + '|')}` | {cell(plain(text))} |")
    return ["| option | |", "|---|---|", *rows] if rows else []


def section(name: str, command: Any, context: Any) -> list[str]:
    examples = [line.strip() for line in (command.help or "").splitlines() if line.strip().startswith("[dim]")]
    paragraphs = [
        plain(paragraph)
        for paragraph in (command.help or "").split("\n\n")
        if not paragraph.strip().startswith("[dim]")
    ]
    usage = f"{name} {' '.join(command.collect_usage_pieces(context))}"
    lines = [f"## {name}", "", *(line for each in paragraphs for line in (cell(each), "")), "```", usage, "```", ""]
    if examples:
        lines += ["```", *map(plain, examples), "```", ""]
    return [*lines, *options_of(command, context), ""]


def page() -> str:
    from stretto import cli
    from stretto.packaging import manual

    lines = ["# Command line", "", "As `--help` of each command says it.", ""]
    for words, command in manual.commands(cli.command_tree()):
        lines += section(" ".join(words), command, command.make_context(words[-1], [], resilient_parsing=True))
    return "\n".join(lines)
