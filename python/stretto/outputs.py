# SPDX-License-Identifier: BSD-3-Clause
"""Files that a command is to write: whether it can is found out before the work, not after."""
from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Optional

from stretto.console import fail


def obstacle(path: Path) -> str | None:
    """Why a file cannot be written there; None: nothing is known of that would prevent it."""
    number = None
    if path.is_dir():
        number = errno.EISDIR
    elif not path.parent.is_dir():
        number = errno.ENOTDIR if path.parent.exists() else errno.ENOENT
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        number = errno.EACCES
    return os.strerror(number) if number else None


def writable(path: Optional[Path]) -> Optional[Path]:
    """Callback of options that name a file to write. Directories are not made: a name with a typo would make one."""
    if path is not None and str(path) != "-" and (why := obstacle(path)):
        fail(f"cannot write {path}: {why}")
    return path


def drawable(path: Optional[Path]) -> Optional[Path]:
    """The same of pictures, whose names say what kind they are."""
    if path is None:
        return None
    from matplotlib.backend_bases import FigureCanvasBase
    kinds = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        fail(f"cannot draw {path}: a name with .png, .svg or .pdf at its end expected")
    return writable(path)
