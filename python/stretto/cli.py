# SPDX-License-Identifier: BSD-3-Clause
"""The commands. Each lives in a module of its own; this file puts them together."""

from __future__ import annotations

import errno
import signal
import sys
from typing import Annotated, Any

import typer

from stretto import (
    __version__,
    arguments,
    demo,
    doctor,
    explain,
    info,
    kv,
    launch,
    model,
    model_chains,
    model_measure,
    testing,
    top,
    tune,
    verify,
)
from stretto.build import BuildError
from stretto.cluster import command as cluster
from stretto.console import STDOUT, complain, flush_stdout, give_up_stdout, watch_stdout
from stretto.mpi import MpiNotFound
from stretto.places import NoPlace

HELP = """Faster MPI collectives for programs that are not changed for it.

[b]stretto demo[/] shows it on this machine; [b]stretto run -n 8 -- ./app[/] uses it.
"""

NAMES_OF_HELP = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    help=HELP, rich_markup_mode="rich", no_args_is_help=True, add_completion=False, context_settings=NAMES_OF_HELP
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


USE, LOOK, CHECK = "Use it", "Look at it", "Measure and check it"
app.command("demo", rich_help_panel=USE)(demo.command)
app.command(rich_help_panel=USE, context_settings={"allow_interspersed_args": False})(launch.run)
app.command(rich_help_panel=USE)(launch.env)
app.command(rich_help_panel=USE)(launch.lib)
app.add_typer(cluster.app, name="cluster", rich_help_panel=USE)
app.command("info", rich_help_panel=LOOK)(info.command)
app.command("top", rich_help_panel=LOOK)(top.command)
app.command("doctor", rich_help_panel=LOOK)(doctor.command)
app.command("test", rich_help_panel=CHECK, context_settings={"ignore_unknown_options": True})(testing.command)
app.command("verify", rich_help_panel=CHECK)(verify.command)
app.command("tune", rich_help_panel=CHECK)(tune.command)
app.add_typer(kv.app, name="kv", rich_help_panel=CHECK)
app.command("explain", rich_help_panel=LOOK)(explain.command)
assert model_measure and model_chains  # bring commands of model's
app.add_typer(model.app, name="model", rich_help_panel=LOOK)
try:  # measuring comes with its own module
    from stretto import bench

    app.command("bench", rich_help_panel=CHECK)(bench.command)
except ImportError:
    pass


def tidy_options(command: Any) -> None:
    """Help shows no type for what takes no value (newer versions of Typer would say <bool>), and no name that an option once had."""
    for parameter in command.get_params(typer.Context(command, **NAMES_OF_HELP)):
        if getattr(parameter, "is_bool_flag", False):
            parameter.metavar = ""
        if parameter.param_type_name == "option":
            arguments.hide_old_names(parameter)
    for each in getattr(command, "commands", {}).values():
        tidy_options(each)


def command_tree() -> Any:
    command = typer.main.get_command(app)
    tidy_options(command)
    return command


REQUESTS_TO_END = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def end(number: int, _frame: object) -> None:
    for each in REQUESTS_TO_END:
        signal.signal(each, signal.SIG_IGN)  # a terminal that hangs up may say so twice
    sys.exit(128 + number)


def perform() -> None:
    try:
        command_tree()(prog_name="stretto")
    finally:
        flush_stdout()


def main() -> None:
    # What a command has begun ends with it, as after Ctrl-C.
    for number in REQUESTS_TO_END:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, end)
    watch_stdout()
    try:
        perform()
    except (BuildError, MpiNotFound, NoPlace) as error:
        complain(str(error))
        sys.exit(2)
    except OSError as error:
        if error.filename != STDOUT:
            raise
        if error.errno != errno.EPIPE:  # whoever reads may have read enough
            complain(f"cannot write to stdout: {error.strerror}")
        give_up_stdout()
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
