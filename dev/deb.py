#!/usr/bin/env -S sh -c 'exec "${0%/*}/../stretto" --script "build test deb" "$0" "$@"'
# SPDX-License-Identifier: BSD-3-Clause
"""Makes Debian packages of this checkout, by dpkg-buildpackage and packaging/debian.

    dev/deb.py [--native DIR] [DIRECTORY]

DIRECTORY: of the packages; default: build/deb. DIR has libraries and programs that are built
already, as build/wheel/prebuilt after dev/wheel.py.
Debian: apt-get install debhelper dh-python lintian
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from stretto import __version__  # noqa: E402
from stretto.core.paths import build_root  # noqa: E402
from stretto.native.build import BuildError, run_tool  # noqa: E402


def copy_sources(target: Path) -> None:
    """What git knows of this checkout, with debian/ where Debian's tools look for it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            place = target / (name.removeprefix("packaging/") if name.startswith("packaging/debian/") else name)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place)


def make(directory: Path, native: Path | None) -> list[Path]:
    source = build_root() / "deb-source" / f"stretto-{__version__}"
    shutil.rmtree(source.parent, ignore_errors=True)
    copy_sources(source)
    environment = {"STRETTO": f"{sys.executable} -m stretto", "PYTHONPATH": str(source / "python")} | (
        {"NATIVE": str(native.resolve())} if native else {}
    )
    line = ["dpkg-buildpackage", "-us", "-uc", "-b"] + (["-d"] if native else [])
    run_tool(line, env=environment, cwd=source)
    made = []
    for path in sorted(source.parent.glob("*.deb")):
        made.append(Path(shutil.move(path, directory / path.name)))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes Debian packages of this checkout.")
    parser.add_argument("--native", type=Path, metavar="DIR")
    parser.add_argument("directory", type=Path, nargs="?", default=build_root() / "deb")
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    try:
        for path in make(asked.directory, asked.native):
            print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")
    except BuildError as error:
        sys.exit(f"dev/deb.py: {error}")


if __name__ == "__main__":
    main()
