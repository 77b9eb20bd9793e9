# SPDX-License-Identifier: BSD-3-Clause
"""Makes the archive: libraries and programs that are ready to run, the tool, MPIs, and what the tool
needs of Python's packages."""

from __future__ import annotations

import csv
import shutil
import tarfile
from pathlib import Path

from stretto import __version__
from stretto.core.paths import build_root, is_checkout, locked, root
from stretto.mpi import Mpi, finding, wheels
from stretto.native import portable
from stretto.native.build import BuildError
from stretto.packaging import parts

MPIS = ("openmpi", "mpich")
PYTHON = "3.9"  # the oldest that the kit runs on
PROGRAMS = (
    "stretto-core-to-core",
    "stretto-keeper",
    "stretto-probe",
    "stretto-topology",
    "stretto-model",
    "stretto-verify",
    "stretto-top",
)
SUFFIXES = {".tar.gz": "w:gz", ".tar.xz": "w:xz"}
NAME = f"stretto-kit-{__version__}"
SCRIPT = parts.PACKAGE / "kit" / "scripts" / "stretto"
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
        copy_texts(folder)
        mpis = [wheels.install_wheel(kind) for kind in MPIS]
        places = ":".join(f"$ORIGIN/../../../../mpi/{mpi.kind}/lib" for mpi in mpis)
        portable.collect(package / "prebuilt", [*portable.LIBRARIES, *PROGRAMS])
        portable.collect_programs(package / "prebuilt", mpis, ["collectives"], places)
        for mpi in mpis:
            _copy_mpi(mpi, folder / "mpi" / mpi.kind)
        parts.add_pure_dependencies(folder / "python", PYTHON)
        _pack(folder, archive)
        shutil.rmtree(folder)


def copy_texts(folder: Path) -> None:
    """What need not be built: the tool, its scripts and pages."""
    parts.copy_tool(folder / "python" / "stretto")
    for name in SCRIPT_NAMES:
        shutil.copy(SCRIPT, folder / name)
    for page, name in PAGES.items():
        shutil.copy(root() / page, folder / name)


def suffix_of(archive: Path) -> str | None:
    """The kind of an archive, by its name; None: not a known one."""
    return next((suffix for suffix in SUFFIXES if archive.name.endswith(suffix)), None)


# ---- parts ---------------------------------------------------------------------------------------


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
