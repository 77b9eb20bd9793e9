# SPDX-License-Identifier: BSD-3-Clause
"""Where things lie: in a checkout beside the sources, in an installed package in the user's cache."""
from __future__ import annotations

import os
from pathlib import Path

from stretto import __version__

_PACKAGE = Path(__file__).resolve().parent


def root() -> Path:
    """The source tree: the checkout this package lies in, or the copy an installed package carries."""
    checkout = _PACKAGE.parent.parent
    return checkout if (checkout / "CMakePresets.json").exists() else _PACKAGE / "source"


def is_checkout() -> bool:
    return root() != _PACKAGE / "source"


def base() -> Path:
    """Directory that holds build/ and .venv/."""
    if is_checkout():
        return root()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "stretto" / __version__


def build_root() -> Path:
    return base() / "build"


def cache_root() -> Path:
    """Directory of what was installed for us and costs time to install again."""
    return base() / ".venv"
