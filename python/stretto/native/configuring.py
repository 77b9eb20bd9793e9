# SPDX-License-Identifier: BSD-3-Clause
"""Configures a build by CMake, when that is needed."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from pathlib import Path

from stretto.core.console import note
from stretto.core.paths import is_checkout, root
from stretto.mpi import finding
from stretto.mpi.abis import ABIS
from stretto.native.tools import run_tool


def configure(preset: str, directory: Path, quiet: bool) -> None:
    """Runs CMake if the configuration has changed, or what it found on this machine."""
    _leave_other_place(directory)
    definitions = _definitions(preset, directory)
    key = json.dumps({"source": str(root()), "definitions": definitions}, sort_keys=True)
    stamp = directory / "stretto-configured.json"
    configured = (directory / "build.ninja").exists()
    if configured and stamp.exists() and stamp.read_text() == key and _finds_the_same(directory):
        return
    if not configured:
        shutil.rmtree(directory / "CMakeFiles", ignore_errors=True)
        (directory / "CMakeCache.txt").unlink(missing_ok=True)
    arguments = [f"-D{name}={value}" for name, value in definitions.items()]
    run_tool(["cmake", "--preset", preset, "-B", str(directory), *arguments], quiet=quiet, cwd=root())
    stamp.write_text(key)


def _leave_other_place(directory: Path) -> None:
    """Removes a build that was made for sources, or in a directory, of another name: the checkout
    was copied or moved. CMake would refuse it."""
    try:
        cache = (directory / "CMakeCache.txt").read_text(errors="replace")
    except OSError:
        return
    for name, place in (("CMAKE_HOME_DIRECTORY:INTERNAL", root()), ("CMAKE_CACHEFILE_DIR:INTERNAL", directory)):
        made = re.search(rf"^{name}=(.*)$", cache, re.MULTILINE)
        if made and os.path.realpath(made[1]) != os.path.realpath(place):
            note(f"{directory} was built at {made[1]}: it is built anew")
            shutil.rmtree(directory)
            return


def _finds_the_same(directory: Path) -> bool:
    """Whether headers of optional parts are where they were when CMake looked for them
    (cmake/StrettoOptional.cmake)."""
    try:
        lines = (directory / "stretto-looked-at.txt").read_text().splitlines()
    except OSError:
        return False
    looked_at = (line.split(" ", 1) for line in lines)
    return all(os.path.exists(place) == (there == "1") for there, place in looked_at)


def _definitions(preset: str, directory: Path) -> dict[str, str]:
    places = (
        ["/usr/src/googletest/googletest/include"] if preset == "aarch64" else ["/usr/include", "/usr/local/include"]
    )
    tests = is_checkout() and any(Path(place, "gtest/gtest.h").exists() for place in places)
    definitions = {"STRETTO_TESTS": "ON" if tests else "OFF"}
    if preset not in ("asan", "tsan"):  # asan and tsan build no preload libraries
        definitions |= {f"STRETTO_{abi.upper()}_INCLUDE": path for abi, path in includes(directory).items()}
    return definitions


def includes(directory: Path) -> dict[str, str]:
    """The directory of mpi.h by ABI: our own where there is one. A build keeps the one that it uses,
    so that installing another MPI rebuilds nothing."""
    kept = _kept_includes(directory / "stretto-configured.json")
    own = {abi: str(facts.own_include) for abi, facts in ABIS.items() if facts.own_include}
    return {abi: path for abi in ABIS if (path := own.get(abi) or kept.get(abi) or _first_include(abi))}


def _kept_includes(stamp: Path) -> dict[str, str]:
    if not stamp.exists():
        return {}
    definitions = json.loads(stamp.read_text())["definitions"]
    kept = {abi: definitions.get(f"STRETTO_{abi.upper()}_INCLUDE", "") for abi in ABIS}
    return {abi: path for abi, path in kept.items() if path and Path(path, "mpi.h").exists()}


@functools.cache
def _first_include(abi: str) -> str | None:
    # The lowest version first: a library built with older headers works with a newer MPI.
    headers = [m for m in finding.find_all() if m.abi == abi and m.include]
    headers.sort(key=lambda m: (m.kind != m.abi, [int(n) for n in m.version.split(".") if n.isdigit()]))
    return str(headers[0].include) if headers else None
