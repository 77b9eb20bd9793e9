# SPDX-License-Identifier: BSD-3-Clause
"""Installs Stretto below a prefix, for all users of a machine, and removes it again.

What is where:

    bin/stretto                         the command
    LIBDIR/stretto/python               its Python package, and those that it needs
    LIBDIR/stretto/native               preload libraries, and programs that commands run
    LIBDIR/libstretto-kv.so             the key-value store, LIBDIR/cmake and pkgconfig, include/
    share/modulefiles/stretto           environment modules
    share/man, completions of shells    made from the tree of commands
    share/stretto/manifest              all these files
"""

from __future__ import annotations

import compileall
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto import __version__
from stretto.core.paths import root
from stretto.mpi import finding
from stretto.mpi.abis import ABIS
from stretto.native import build, portable, prebuilt, programs
from stretto.packaging import manual, parts

MANIFEST = "share/stretto/manifest"
TEMPLATES = Path(__file__).with_name("templates")
STORE = "libstretto-kv.so"
STORE_VERSION = "0"  # SOVERSION of CMake


class NotInstalled(RuntimeError):
    """The prefix cannot be installed to, or has no installation. The text says why."""


@dataclass(frozen=True)
class Layout:
    prefix: Path  # where it will be used
    libdir: str = "lib"
    python: str = sys.executable  # the interpreter of the command
    packages: str = "all"  # Python packages that come with it: all, pure or none
    wheels: Path | None = None  # a directory of them, in the place of PyPI
    native: Path | None = None  # a build's directory, whose libraries are taken
    replace: bool = False  # also files that others have put there

    @property
    def own(self) -> Path:
        """The directory of what nobody else uses, below the prefix."""
        return Path(self.libdir, "stretto")


def install(layout: Layout, tree: Any, destination: Path | None = None) -> list[str]:
    """Installs, and returns the names of the files. `destination`: the directory that stands for
    the root of the file system, for those who make packages."""
    there = destination / layout.prefix.relative_to("/") if destination else layout.prefix
    _make_writable(there)
    with tempfile.TemporaryDirectory(prefix="stretto-install-") as folder:
        stage = Path(folder)
        _fill(stage, layout, tree)
        if not destination:  # a package compiles when it is installed
            _compile(stage / layout.own, stage, layout.prefix)
        names = sorted(_files(stage))
        if not destination:
            _make_room(there, names, layout.replace)
            _write_manifest(there, names)
        for name in names:
            _replace(stage / name, there / name)
    return names


def uninstall(prefix: Path) -> int:
    """Removes an installation, and returns the number of its files."""
    names = _installed(prefix)
    if not names:
        raise NotInstalled(f"{prefix} has no {MANIFEST}: nothing was installed there by `stretto install`")
    for name in names:
        (prefix / name).unlink(missing_ok=True)
    (prefix / MANIFEST).unlink()
    for name in [*names, MANIFEST]:
        _remove_empty((prefix / name).parent, prefix)
    return len(names)


# ---- contents ------------------------------------------------------------------------------------


def _fill(stage: Path, layout: Layout, tree: Any) -> None:
    own = stage / layout.own
    parts.copy_tool(own / "python" / "stretto")
    _fill_native(own / "native", layout.native)
    (own / "python/stretto/prebuilt").symlink_to("../../native")
    if (own / "native" / STORE).exists():
        _fill_store(stage, layout)
    if layout.packages == "all":
        parts.add_dependencies(own / "python", layout.wheels)
    elif layout.packages == "pure":
        parts.add_pure_dependencies(own / "python", parts.OLDEST_PYTHON, layout.wheels)
    words = {"PREFIX": str(layout.prefix), "LIBDIR": layout.libdir, "VERSION": __version__, "PYTHON": layout.python}
    modules = stage / "share/modulefiles/stretto"
    _write(TEMPLATES / "stretto", stage / "bin/stretto", words)
    _write(TEMPLATES / "modulefile.tcl", modules / __version__, words)
    _write(TEMPLATES / "modulefile.lua", modules / f"{__version__}.lua", words)
    (stage / "bin/stretto").chmod(0o755)
    manual.write(stage, tree)
    (stage / "share/doc/stretto").mkdir(parents=True)
    shutil.copy(root() / "LICENSE", stage / "share/doc/stretto/LICENSE")


def _fill_native(folder: Path, made: Path | None) -> None:
    if made:
        folder.mkdir(parents=True)
        for name in (name for target in parts.NATIVE for name in (f"lib{target}.so", target)):
            if (made / name).is_file():
                shutil.copy(made / name, folder / name)
        for abi in ABIS:  # MPI programs, if it is the directory of dev/wheel.py
            if (made / abi).is_dir():
                shutil.copytree(made / abi, folder / abi)
    elif prebuilt.has(portable.LIBRARIES):
        shutil.copytree(prebuilt.FOLDER, folder)
    else:
        mpis = {mpi.abi: mpi for mpi in reversed(finding.find_abis()) if mpi.include}
        absent = [f"stretto-{abi}" for abi in ABIS if not build.headers(abi)]
        portable.collect(folder, [target for target in parts.NATIVE if target not in absent])
        portable.collect_programs(folder, mpis.values(), programs.carried())


def _fill_store(stage: Path, layout: Layout) -> None:
    """The store for C programs: library, header, and what finds them."""
    library, versioned = stage / layout.libdir, f"{STORE}.{STORE_VERSION}"
    private = stage / layout.own / "native" / STORE
    private.replace(library / versioned)
    private.symlink_to(f"../../{versioned}")
    (library / STORE).symlink_to(versioned)
    (stage / "include/stretto").mkdir(parents=True)
    shutil.copy(root() / "include/stretto/kv.h", stage / "include/stretto/kv.h")
    up = "/".join(".." for _ in Path(layout.libdir).parts)
    words = {"LIBDIR": layout.libdir, "UP": up, "VERSION": __version__}
    for name, place in {
        "StrettoConfig.cmake": "cmake/Stretto",
        "StrettoConfigVersion.cmake": "cmake/Stretto",
        "stretto-kv.pc": "pkgconfig",
    }.items():
        _write(root() / f"cmake/install/{name}.in", library / place / name, words)


def _write(template: Path, target: Path, words: dict[str, str]) -> None:
    text = template.read_text(encoding="utf-8")
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


def _replace(source: Path, target: Path) -> None:
    """A process that has loaded the old file keeps it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


def _compile(folder: Path, stage: Path, prefix: Path) -> None:
    """Beside the sources, wherever this process keeps what it has compiled."""
    kept, sys.pycache_prefix = sys.pycache_prefix, None
    try:
        compileall.compile_dir(folder, quiet=2, stripdir=str(stage), prependdir=str(prefix))
    finally:
        sys.pycache_prefix = kept


# ---- the manifest --------------------------------------------------------------------------------


def _files(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        links = [name for name in folders if Path(place, name).is_symlink()]
        yield from (str(Path(place, name).relative_to(folder)) for name in (*names, *links))


def _installed(prefix: Path) -> list[str]:
    """The files of the installation that is there; none: there is none. Names that lead out of the
    prefix are not taken."""
    try:
        names = (prefix / MANIFEST).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [name for name in names if name and not name.startswith("/") and ".." not in Path(name).parts]


def _make_writable(prefix: Path) -> None:
    """Fails before anything is built."""
    try:
        prefix.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=prefix).close()
    except OSError as error:
        raise NotInstalled(f"cannot write to {prefix}: {(error.strerror or '').lower()}") from None


def _make_room(prefix: Path, names: Sequence[str], replace: bool) -> None:
    """Fails if a file is there that no installation of Stretto has put there, unless `replace`.
    Removes an older installation."""
    before = _installed(prefix)
    for name in () if replace else names:
        if name not in before and ((prefix / name).is_symlink() or (prefix / name).is_file()):
            raise NotInstalled(f"{prefix / name} is there, and no `stretto install` has written it")
    if before:
        uninstall(prefix)


def _write_manifest(prefix: Path, names: Sequence[str]) -> None:
    """Before the files, so that an interrupted installation can be removed."""
    (prefix / MANIFEST).parent.mkdir(parents=True, exist_ok=True)
    (prefix / MANIFEST).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


def _remove_empty(folder: Path, prefix: Path) -> None:
    while folder != prefix.parent and folder.is_relative_to(prefix):
        cache = folder / "__pycache__"
        if cache.is_dir() and not cache.is_symlink() and len(os.listdir(folder)) == 1:
            shutil.rmtree(cache)  # root ran the command
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent


def base_python() -> str:
    """The interpreter of the system that runs this, outside of a virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))
