# SPDX-License-Identifier: BSD-3-Clause
"""The commands of the tool, each from a module of its own."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.completion import completion_init

from stretto import __version__
from stretto.commands import (
    bench,
    clean,
    cluster,
    demo,
    doctor,
    env,
    explain,
    info,
    install,
    kit,
    model,
    report,
    run,
    test,
    tune,
    verify,
    where,
)
from stretto.commands.top import command as top
from stretto.core import arguments
from stretto.core.parts import Tool, with_parts

HELP = """Faster MPI collectives for programs that are not changed for it.

[b]stretto demo[/] shows it on this machine; [b]stretto run -n 8 -- ./app[/] uses it.
"""

NAMES_OF_HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    cls=Tool,
    help=HELP,
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    context_settings=NAMES_OF_HELP,
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"stretto {__version__}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


USE, LOOK, CHECK, KEEP = "Use it", "Look at it", "Measure and check it", "Install and remove it"
app.command("demo", rich_help_panel=USE)(demo.command)
app.command("run", rich_help_panel=USE, context_settings={"allow_interspersed_args": False})(run.command)
app.command("env", rich_help_panel=USE)(env.command)
app.add_typer(cluster.app, name="cluster", rich_help_panel=USE)
app.command("report", rich_help_panel=LOOK, cls=with_parts(report.PARTS))(report.command)
app.command("info", rich_help_panel=LOOK)(info.command)
app.command("top", rich_help_panel=LOOK)(top.command)
app.command("where", rich_help_panel=LOOK)(where.command)
app.command("doctor", rich_help_panel=LOOK)(doctor.command)
app.command("explain", rich_help_panel=LOOK)(explain.command)
app.add_typer(model.app, name="model", rich_help_panel=LOOK)
app.command("test", rich_help_panel=CHECK, context_settings={"ignore_unknown_options": True})(test.command)
app.command("verify", rich_help_panel=CHECK)(verify.command)
app.command("tune", rich_help_panel=CHECK, cls=with_parts(tune.PARTS))(tune.command)
app.command("bench", rich_help_panel=CHECK, cls=with_parts(bench.SUITES))(bench.command)
app.add_typer(kit.app, name="kit", rich_help_panel=CHECK)
app.command("install", rich_help_panel=KEEP)(install.install)
app.command("uninstall", rich_help_panel=KEEP)(install.uninstall)
app.command("clean", rich_help_panel=KEEP)(clean.command)


def command_tree() -> Any:
    completion_init()  # shells ask by a variable: stretto/packaging/manual.py
    command = typer.main.get_command(app)
    arguments.tidy_options(command, typer.Context(command, **NAMES_OF_HELP))
    return command
