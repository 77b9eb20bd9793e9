# SPDX-License-Identifier: BSD-3-Clause
"""rules: reads a file of rules as the library does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stretto.core import arguments
from stretto.core.console import out
from stretto.model import rules_file

app = typer.Typer(
    help="Files of rules for the library (STRETTO_RULES).",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def group() -> None:
    pass


@app.command("check")
def check(file: Annotated[Path, typer.Argument(metavar="FILE", help="The file.", callback=arguments.readable)]) -> None:
    """Say how many rules a file has, or where its first mistake is. `stretto explain --rules` says
    which rule decides a call."""
    number = rules_file.check(file)
    out.print(f"{file}: {number} rule{'' if number == 1 else 's'}", markup=False, highlight=False)
