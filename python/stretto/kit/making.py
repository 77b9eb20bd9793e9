# SPDX-License-Identifier: BSD-3-Clause
"""Makes the archive: libraries and programs that are ready to run, the tool, MPIs, and what the tool
needs of Python's packages."""

from __future__ import annotations

import csv
import re
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stretto import __version__
from stretto.core.paths import build_root, is_checkout, locked, root
from stretto.mpi import Mpi, finding, wheels
from stretto.mpi.abis import ABIS
from stretto.native import build, portable
from stretto.native.build import BuildError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MPIS = ("openmpi", "mpich")
PYTHON = "3.9"  # the oldest that the kit runs on
PROGRAMS = (
    "stretto-core-to-core",
    "stretto-probe",
    "stretto-topology",
    "stretto-model",
    "stretto-verify",
    "stretto-top",
)
# The kit measures without them, and they have code for one version of Python.
NOT_NEEDED = ("numpy", "matplotlib")
SUFFIXES = {".tar.gz": "w:gz", ".tar.xz": "w:xz"}
NAME = f"stretto-kit-{__version__}"
PACKAGE = Path(__file__).resolve().parents[1]
SCRIPT = PACKAGE / "kit" / "scripts" / "stretto"
SCRIPT_NAMES = ("stretto", "measure")
PAGES = {"docs/measuring/kit.md": "README.md", "LICENSE": "LICENSE"}


def make(archive: Path) -> None:
    """Writes the archive."""
    if not is_checkout():
        raise BuildError("the kit is made from a checkout of Stretto, which this is not")
    folder = build_root() / "kit" / NAME
    with locked(build_root() / "kit.lock"):
        shutil.rmtree(folder, ignore_errors=True)
        package = folder / "python" / "stretto"
        _copy_tool(package)
        for name in SCRIPT_NAMES:
            shutil.copy(SCRIPT, folder / name)
        for page, name in PAGES.items():
            shutil.copy(root() / page, folder / name)
        mpis = [wheels.install_wheel(kind) for kind in MPIS]
        _copy_native(package / "prebuilt", mpis)
        for mpi in mpis:
            _copy_mpi(mpi, folder / "mpi" / mpi.kind)
        for wheel in _python_packages():
            zipfile.ZipFile(wheel).extractall(folder / "python")
        _pack(folder, archive)
        shutil.rmtree(folder)


def suffix_of(archive: Path) -> str | None:
    """The kind of an archive, by its name; None: not a known one."""
    return next((suffix for suffix in SUFFIXES if archive.name.endswith(suffix)), None)


# ---- parts ---------------------------------------------------------------------------------------


def _copy_tool(package: Path) -> None:
    """The Python package and, as in an installed one, the sources beside it."""
    ignore = shutil.ignore_patterns("__pycache__", "source", "prebuilt")
    shutil.copytree(PACKAGE, package, ignore=ignore)
    for part in source_parts():
        source, target = root() / part, package / "source" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def source_parts() -> list[str]:
    """What a package carries of the source tree."""
    return list(_project()["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"])


def _project() -> dict[str, Any]:
    return tomllib.loads((root() / "pyproject.toml").read_text(encoding="utf-8"))


def _copy_native(target: Path, mpis: Iterable[Mpi]) -> None:
    libraries = [f"stretto-{abi}" for abi in ABIS]
    for abi in ABIS:
        if not build.headers(abi):
            raise BuildError(f"no mpi.h for the {abi} ABI on this machine")
    built = portable.built([*libraries, *PROGRAMS])
    target.mkdir(parents=True)
    for name in (*(f"lib{library}.so" for library in libraries), *PROGRAMS):
        shutil.copy(built / name, target / name)
    for mpi in mpis:
        program = portable.mpi_program(mpi, "collectives", f"$ORIGIN/../../../../mpi/{mpi.kind}/lib")
        (target / mpi.abi).mkdir()
        shutil.copy(program, target / mpi.abi / "collectives")


def _copy_mpi(mpi: Mpi, target: Path) -> None:
    """The files of an installed wheel, without the virtual environment around them."""
    (listing,) = mpi.prefix.glob(f"lib/python3*/site-packages/{mpi.kind}-*.dist-info/RECORD")
    packages = listing.parents[1]
    for name, *_ in csv.reader(listing.read_text().splitlines()):
        source = (packages / name).resolve()
        place = source.relative_to(mpi.prefix.resolve())
        if place.suffix != ".pyc":
            if place.parts[2:3] == ("site-packages",):
                place = Path("share", *place.parts[3:])  # licences
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target / place)
    (target / finding.COMPLETE).touch()


def _python_packages() -> list[Path]:
    """Wheels of what the tool needs, in versions for the oldest Python."""
    # Without the conditions: pip would judge them by this Python.
    lines = [line.partition(";")[0].strip() for line in _project()["project"]["dependencies"]]
    wanted = [line for line in lines if re.match(r"[\w-]+", line).group() not in NOT_NEEDED]
    folder = build_root() / "kit" / "wheels"
    build.run_tool(
        [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--only-binary=:all:"]
        + ["--python-version", PYTHON, "--implementation", "py", "--platform", "any", "-d", str(folder), *wanted]
    )
    return sorted(folder.glob("*.whl"))


def _pack(folder: Path, archive: Path) -> None:
    """The same files give the same archive, whoever packs them and when."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = 0
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with tarfile.open(archive, SUFFIXES[suffix_of(archive)]) as packed:
        packed.add(folder, folder.name, filter=plain)
