# SPDX-License-Identifier: BSD-3-Clause
"""Manual pages and completion of shells, made from the tree of commands: a page for each command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.markup import render
from rich.text import Text
from typer import completion

from stretto import __version__

# Where each shell looks for completions, below a prefix.
COMPLETIONS = {
    "bash": "share/bash-completion/completions/stretto",
    "zsh": "share/zsh/site-functions/_stretto",
    "fish": "share/fish/vendor_completions.d/stretto.fish",
}


def write(prefix: Path, tree: Any) -> None:
    """Writes pages and completions below a prefix."""
    pages = prefix / "share/man/man1"
    pages.mkdir(parents=True, exist_ok=True)
    for path, command in commands(tree):
        (pages / f"{name_of(path)}.1").write_text(page(path, command))
    for shell, place in COMPLETIONS.items():
        (prefix / place).parent.mkdir(parents=True, exist_ok=True)
        (prefix / place).write_text(completion_script(shell))


def completion_script(shell: str) -> str:
    return completion.get_completion_script(prog_name="stretto", complete_var="_STRETTO_COMPLETE", shell=shell) + "\n"


def commands(command: Any, path: tuple[str, ...] = ("stretto",)) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command that help shows, with its words; a group before its own commands, a command before
    its parts."""
    yield path, command
    for typed, each in getattr(command, "parts", {}).items():
        yield (*path, typed), each
    for name, each in sorted(getattr(command, "commands", {}).items()):
        if not each.hidden:
            yield from commands(each, (*path, name))


def name_of(path: tuple[str, ...]) -> str:
    """Of a page: `stretto bench --suite kind` has stretto-bench-kind(1)."""
    return "-".join(words.split()[-1].lstrip("-") for words in path)


def page(path: tuple[str, ...], command: Any) -> str:
    """The manual page of a command, for man(1)."""
    context = command.make_context("stretto", [], resilient_parsing=True)
    texts = [text for text in re.split(r"\n\s*\n", command.help or "") if text.strip()]
    lines = [
        f'.TH "{name_of(path).upper()}" "1" "" "stretto {__version__}" "Stretto"',
        ".SH NAME",
        f"{name_of(path)} \\- {first_sentence(texts[0] if texts else '')}",
        ".SH SYNOPSIS",
        f"\\fB{' '.join(path)}\\fR {usage(command)}",
        ".SH DESCRIPTION",
        *(line for text in texts for line in paragraph(text)),
    ]
    lines += section("ARGUMENTS", [argument(each) for each in _parameters(command, "argument")])
    lines += section("OPTIONS", [option(each, context) for each in _parameters(command, "option")])
    below = [(n, c) for n, c in sorted(getattr(command, "commands", {}).items()) if not c.hidden]
    below += getattr(command, "parts", {}).items()
    lines += section(
        "COMMANDS",
        [(f"\\fB{name_of((*path, name))}\\fR(1)", first_sentence((each.help or "").strip())) for name, each in below],
    )
    if len(path) > 1:
        lines += [".SH SEE ALSO", f"\\fB{name_of(path[:-1])}\\fR(1)"]
    return "\n".join(lines) + "\n"


def paragraph(text: str) -> list[str]:
    """Dim lines are examples: each stays a line."""
    if text.lstrip().startswith("[dim]"):
        return [".PP", ".nf", ".RS 4", *map(roff, text.strip().splitlines()), ".RE", ".fi"]
    return [".PP", roff(text)]


def section(title: str, entries: list[tuple[str, str]]) -> list[str]:
    if not entries:
        return []
    return [f".SH {title}", *(line for name, text in entries for line in (".TP", name, text))]


def _parameters(command: Any, kind: str) -> list[Any]:
    return [each for each in command.params if each.param_type_name == kind and not getattr(each, "hidden", False)]


def usage(command: Any) -> str:
    named = [each.metavar or each.name.upper() for each in _parameters(command, "argument")]
    below = ["COMMAND [ARGS]..."] if getattr(command, "commands", None) else []
    return roff(" ".join(["[OPTIONS]", *named, *below]))


def argument(parameter: Any) -> tuple[str, str]:
    return f"\\fI{roff(parameter.metavar or parameter.name.upper())}\\fR", roff(parameter.help or "")


def option(parameter: Any, context: Any) -> tuple[str, str]:
    names, text = parameter.get_help_record(context)
    return re.sub(r"(?<![\w-])(-[\w-]+)", lambda name: f"\\fB{roff(name[0])}\\fR", names), roff(text)


def first_sentence(text: str) -> str:
    """Of a help text, without its full stop, for the list of whatis(1)."""
    plain = " ".join(rendered(text).plain.split())
    return roff(re.split(r"(?<=[a-z\])])\.(?: |$)", plain)[0])


def roff(text: str) -> str:
    """A help text for troff. What Rich prints bold is bold."""
    words = rendered(" ".join(text.split()))
    bold = {i for span in words.spans if str(span.style) == "b" for i in range(span.start, span.end)}
    made = ""
    for i, letter in enumerate(words.plain):
        if (i in bold) != (i - 1 in bold):
            made += "\\fB" if i in bold else "\\fR"
        made += {"\\": "\\e", "-": "\\-", "'": "\\(aq", "`": "\\(ga"}.get(letter, letter)
    made += "\\fR" if len(words.plain) - 1 in bold else ""
    return "\\&" + made if made.startswith(".") else made


def rendered(text: str) -> Text:
    """Typer adds defaults and ranges in brackets, which are no markup."""
    return render(re.sub(r"\[(?!(?:b|dim|/)\])", r"\\[", text))
