# SPDX-License-Identifier: BSD-3-Clause
"""install, uninstall: Stretto below a prefix, for all users of a machine."""

from __future__ import annotations

import enum
import re
from pathlib import Path
from typing import Annotated, Optional

import typer

from stretto.core.console import fail, note, working
from stretto.packaging import prefix as installation
from stretto.packaging.prefix import Layout, NotInstalled

PREFIX_HELP = "The directory: a path from / on, without spaces and colons."


class Packages(str, enum.Enum):
    all = "all"
    pure = "pure"
    none = "none"


def absolute(path: Path) -> Path:
    """Callback of --prefix. LD_PRELOAD splits names at spaces and colons."""
    if not path.is_absolute():
        fail(f"--prefix {path}: a path from / on is needed")
    if re.search(r"[\s:]", str(path)):
        fail(f"--prefix {path}: LD_PRELOAD can name no file in a directory with a space or a colon in its name")
    return path


def install(
    context: typer.Context,
    prefix: Annotated[Path, typer.Option("--prefix", metavar="DIR", callback=absolute, help=PREFIX_HELP)],
    libdir: Annotated[
        str, typer.Option("--libdir", metavar="NAME", help="Of libraries, below the prefix; for instance lib64.")
    ] = "lib",
    packages: Annotated[
        Packages,
        typer.Option(
            "--python-packages",
            help="Python packages that come with it: all; pure: not NumPy and Matplotlib; none. The interpreter must "
            "have the others.",
        ),
    ] = Packages.all,
    wheels: Annotated[
        Optional[Path],
        typer.Option(
            "--wheels", metavar="DIR", exists=True, file_okay=False, help="Take them from here. Default: from PyPI."
        ),
    ] = None,
    python: Annotated[
        Optional[str],
        typer.Option("--python", metavar="FILE", help="The command's interpreter. Default: the one that runs this."),
    ] = None,
    native: Annotated[
        Optional[Path],
        typer.Option(
            "--native", metavar="DIR", exists=True, file_okay=False, help="Take the libraries from a build's directory."
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace files that something else has put there.")
    ] = False,
    destination: Annotated[
        Optional[Path],
        typer.Option("--destdir", metavar="DIR", help="Stands for / while it installs: for those who make packages."),
    ] = None,
) -> None:
    """Install the command, the libraries, modules, manual pages and completion below a prefix, for all users.

    A list of the files is in share/stretto/manifest. The same command updates, [b]stretto uninstall[/] removes.
    """
    layout = Layout(prefix, libdir, python or installation.base_python(), packages.value, wheels, native, replace)
    try:
        with working(f"installing to {prefix}"):
            files = installation.install(layout, context.find_root().command, destination)
    except NotInstalled as error:
        fail(str(error))
    note(f"installed: {len(files)} files in {prefix}")
    note(f"{prefix}/share/modulefiles has environment modules: module use {prefix}/share/modulefiles")


def uninstall(
    prefix: Annotated[Path, typer.Option("--prefix", metavar="DIR", help="The directory of the installation.")],
) -> None:
    """Remove what [b]stretto install[/] has put below a prefix."""
    try:
        files = installation.uninstall(prefix.absolute())
    except NotInstalled as error:
        fail(str(error))
    note(f"removed: {files} files from {prefix}")
