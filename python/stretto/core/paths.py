# SPDX-License-Identifier: BSD-3-Clause
"""Directories and files of Stretto.

A checkout has them beside its sources. An installed package, and a checkout that the user may not
write to, have them in the user's cache.
"""

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
    """The source tree: this checkout, or the copy that an installed package carries."""
    checkout = _PACKAGE.parent.parent
    return checkout if (checkout / "CMakePresets.json").exists() else _PACKAGE / "source"


def is_checkout() -> bool:
    return root() != _PACKAGE / "source"


def base() -> Path:
    """The directory of build/ and .venv/. For a checkout that this user may not write to, it is in
    the user's cache, as in ./stretto."""
    if not is_checkout():
        return user_cache() / __version__
    return root() if os.access(root(), os.W_OK) else user_cache() / re.sub("[/ :]", "-", str(root()).lstrip("/"))


def user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or _home("XDG_CACHE_HOME") / ".cache") / "stretto"


def _home(instead: str) -> Path:
    """The user's home. `instead`: the variable that does without."""
    home = os.path.expanduser("~")  # of the password file, without HOME
    if os.environ.get("HOME") == "" or not os.path.isabs(home):
        raise NoPlace(f"HOME is not set: set it, or {instead}, to a directory that you may write to")
    return Path(home)


def make_directory(path: Path) -> None:
    """Makes a directory. Where that fails, the error says what to do."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoPlace(
            f"cannot make {path}: {(error.strerror or '').lower()}; set XDG_CACHE_HOME to a directory that you "
            "may write to"
        ) from None


class NoPlace(RuntimeError):
    """Stretto finds no directory to build in."""


def preloadable(library: Path) -> Path:
    """A name of `library` without spaces and colons, at which the dynamic linker splits LD_PRELOAD.
    It is a link if the library's own name has some."""
    if not _splits(library):
        return library
    folder = user_cache() / "preload"
    if _splits(folder):
        folder = _temporary_directory_of_links()
    link = folder / short_hash(library) / library.name
    make_directory(link.parent)
    link_to(library, link)
    return link


def short_hash(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:12]


def link_to(target: Path, link: Path) -> None:
    """Makes `link` lead to `target`. Others see the old link or the new one."""
    if not link.is_symlink() or Path(os.readlink(link)) != target:
        fresh = link.with_name(f".{link.name}.{os.getpid()}")
        fresh.symlink_to(target)
        os.replace(fresh, link)


def _splits(path: Path) -> bool:
    return re.search(r"[\s:]", str(path)) is not None


def _temporary_directory_of_links() -> Path:
    if _splits(Path(tempfile.gettempdir())):
        raise NoPlace(
            f"LD_PRELOAD can name no file in {user_cache()} nor in {tempfile.gettempdir()}: both have a space or a "
            "colon in their names; set TMPDIR"
        )
    return own_temporary_directory("stretto")


def own_temporary_directory(name: str) -> Path:
    """A directory that only this user can write to: ranks load libraries or start programs from it."""
    folder = Path(tempfile.gettempdir(), f"{name}-{os.getuid()}")
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
    """The directory of what Stretto has installed, such as MPIs from PyPI."""
    return base() / ".venv"


def own_profile(cluster: str | None = None) -> Path:
    """The profile that `stretto model measure` writes, and that all other commands look for first."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or _home("XDG_CONFIG_HOME") / ".config")
    return config / "stretto" / (f"cluster-{cluster}.toml" if cluster else "profile.toml")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an advisory lock on `path` while inside, so that parallel callers take turns."""
    make_directory(path.parent)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
