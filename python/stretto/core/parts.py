# SPDX-License-Identifier: BSD-3-Clause
"""Commands with parts that have options of their own, and old spellings of commands."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from stretto.core.console import note


def before_program(words: list[str]) -> list[str]:
    """The words that the tool reads; behind `--` stand those of a program."""
    return words[: words.index("--")] if "--" in words else words


# ---- parts ---------------------------------------------------------------------------------------


def with_parts(known: dict[str, Any]) -> type[TyperCommand]:
    """The class of a command that another one stands in for when its line has some words: for `bench
    --suite kind` it is the command that is known by `--suite kind`."""

    class Parted(TyperCommand):
        parts = known

        def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
            for typed, command in known.items():
                chosen = typed.split()
                words = split_value(args, chosen[0])
                for i in range(len(before_program(words))):
                    if words[i : i + len(chosen)] == chosen:
                        rest = [*words[:i], *words[i + len(chosen) :]]
                        return command.make_context(f"{info_name} {typed}", rest, parent, **extra)
            return super().make_context(info_name, args, parent, **extra)

    return Parted


def commands_of(app: typer.Typer) -> dict[str, Any]:
    return dict(typer.main.get_group(app).commands)


def split_value(words: list[str], option: str) -> list[str]:
    """`--suite=kind` is `--suite kind`."""
    ours = before_program(words)
    split = [part for word in ours for part in (word.split("=", 1) if word.startswith(f"{option}=") else [word])]
    return [*split, *words[len(ours) :]]


# ---- old spellings -------------------------------------------------------------------------------

# They go on working. Help does not show them.
OLD_SPELLINGS = {
    ("kind",): "bench --suite kind",
    ("overlap", "bench"): "bench --suite overlap",
    ("overlap", "pages"): "bench --suite pages",
    ("overlap", "report"): "report --overlap",
    ("overlap",): "bench --suite overlap",
    ("kv", "bench"): "bench --suite kv",
    ("kv", "lib"): "env --pmix",
    ("kv",): "bench --suite kv",
    ("lib",): "env --library",
    ("rules", "check"): "model rules --check",
    ("rules",): "model rules",
}


class Tool(TyperGroup):
    """All commands, under their old spellings, too."""

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if not extra.get("resilient_parsing"):
            args = renewed(args)
        return super().make_context(info_name, args, parent, **extra)


def renewed(words: list[str]) -> list[str]:
    """A line in the new spelling. If it was in an old one, stderr has the new."""
    for old, new in OLD_SPELLINGS.items():
        if tuple(words[: len(old)]) == old:
            note(f"stretto: `stretto {' '.join(old)}` is now `stretto {new}`")
            return [*new.split(), *words[len(old) :]]
    return words
