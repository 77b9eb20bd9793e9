# SPDX-License-Identifier: BSD-3-Clause
"""Where things lie: in a checkout beside the sources; in the user's cache for an installed package, and for a checkout that is not the user's."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stretto import __version__

_PACKAGE = Path(__file__).resolve().parents[1]


def root() -> Path:
    """The source tree: the checkout this package lies in, or the copy an installed package carries."""
    checkout = _PACKAGE.parent.parent
    return checkout if (checkout / "CMakePresets.json").exists() else _PACKAGE / "source"


def is_checkout() -> bool:
    return root() != _PACKAGE / "source"


def base() -> Path:
    """Directory that holds build/ and .venv/. A checkout that this user may not write to has it in his cache, as ./stretto does."""
    if not is_checkout():
        return user_cache() / __version__
    return root() if os.access(root(), os.W_OK) else user_cache() / re.sub("[/ :]", "-", str(root()).lstrip("/"))


def user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "stretto"


def make_directory(path: Path) -> None:
    """Makes a directory of ours; what is in the way is told with what to do."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoPlace(
            f"cannot make {path}: {(error.strerror or '').lower()}; set XDG_CACHE_HOME to a directory that you may write to"
        ) from None


class NoPlace(RuntimeError):
    """There is no directory for what Stretto builds."""


def preloadable(library: Path) -> Path:
    """A name of `library` without spaces and colons, at which the dynamic linker splits LD_PRELOAD: a link, where its own has some."""
    if not _splits(library):
        return library
    folder = user_cache() / "preload"
    if _splits(folder):
        folder = _own_temporary_directory()
    link = folder / hashlib.sha256(str(library).encode()).hexdigest()[:12] / library.name
    make_directory(link.parent)
    if not link.is_symlink() or Path(os.readlink(link)) != library:
        fresh = link.with_name(f".{link.name}.{os.getpid()}")
        fresh.symlink_to(library)
        os.replace(fresh, link)
    return link


def _splits(path: Path) -> bool:
    return re.search(r"[\s:]", str(path)) is not None


def _own_temporary_directory() -> Path:
    """One that nobody else can write to: a library is loaded from it."""
    folder = Path(tempfile.gettempdir(), f"stretto-{os.getuid()}")
    if _splits(folder):
        raise NoPlace(
            f"LD_PRELOAD can name no file in {user_cache()} nor in {folder.parent}: both have a space or a colon in their names; set TMPDIR"
        )
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise NoPlace(f"cannot make {folder}: {error.strerror}") from None
    if found.st_uid != os.getuid() or found.st_mode & 0o77 or not folder.is_dir() or folder.is_symlink():
        raise NoPlace(f"{folder} is not a directory of yours alone; remove it, or set TMPDIR")
    return folder


def build_root() -> Path:
    return base() / "build"


def cache_root() -> Path:
    """Directory of what was installed for us and costs time to install again."""
    return base() / ".venv"


def own_profile(cluster: str | None = None) -> Path:
    """Where `stretto model measure` writes to and everything else looks first."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return config / "stretto" / (f"cluster-{cluster}.toml" if cluster else "profile.toml")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an advisory lock on `path` while inside: parallel callers of one preparation take turns."""
    make_directory(path.parent)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
