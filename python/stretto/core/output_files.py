# SPDX-License-Identifier: BSD-3-Clause
"""Files that a command is to write: whether it can is found out before the work, which would be lost."""

from __future__ import annotations

import os
from pathlib import Path

from stretto.core.console import fail

PICTURES = (".png", ".svg", ".pdf")


def obstacle(path: Path) -> str | None:
    """Why a file cannot be written there; None: nothing is known of that would prevent it. Directories are not made: a name with a typo would make one."""
    if path.is_dir():
        return "it is a directory"
    if not path.parent.is_dir():
        return f"there is no directory {path.parent}"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return "no permission" if path.exists() else f"no permission to make files in {path.parent}"
    return None


def check_picture(path: Path | None) -> None:
    """Its name says of which kind it is to be."""
    if path and path.suffix.lower() not in PICTURES:
        fail(f"cannot draw {path}: the name of a picture ends in {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")


def check_outputs(*files: Path | None, picture: Path | None = None) -> None:
    for path in filter(None, (*files, picture)):
        if str(path) != "-" and (why := obstacle(path)):
            fail(f"cannot write {path}: {why}")
    check_picture(picture)


def writable(path: Path | None) -> Path | None:
    """Callback of options that name a file to write."""
    check_outputs(path)
    return path


def drawable(path: Path | None) -> Path | None:
    """And of those that name a picture."""
    check_outputs(picture=path)
    return path
