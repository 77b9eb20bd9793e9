# SPDX-License-Identifier: BSD-3-Clause
"""Files that a command will write. They are checked before the work begins, so that no result is
lost."""

from __future__ import annotations

import os
from pathlib import Path

from stretto.core.console import fail

PICTURES = (".png", ".svg", ".pdf")


def obstacle(path: Path) -> str | None:
    """Why a file cannot be written there; None: no obstacle is known. Directories are not made,
    because a misspelt name would make one."""
    if path.is_dir():
        return "it is a directory"
    if not path.parent.is_dir():
        return f"there is no directory {path.parent}"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return "no permission" if path.exists() else f"no permission to make files in {path.parent}"
    return None


def check_picture(path: Path | None) -> None:
    """Fails when the suffix of a picture's name is not supported."""
    if path and path.suffix.lower() not in PICTURES:
        fail(f"cannot draw {path}: the name of a picture ends in {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")


def check_outputs(*files: Path | None, picture: Path | None = None) -> None:
    """Fails when one of these files cannot be written."""
    for path in filter(None, (*files, picture)):
        if str(path) != "-" and (why := obstacle(path)):
            fail(f"cannot write {path}: {why}")
    check_picture(picture)


def writable(path: Path | None) -> Path | None:
    """Callback of options that name a file to write."""
    check_outputs(path)
    return path


def drawable(path: Path | None) -> Path | None:
    """Callback of options that name a picture to draw."""
    check_outputs(picture=path)
    return path
