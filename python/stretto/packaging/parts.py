# SPDX-License-Identifier: BSD-3-Clause
"""What packages of Stretto are made of: its Python package with the sources, and Python packages of
others."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.core import pypi
from stretto.core.paths import build_root, root
from stretto.native import build, portable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = Path(__file__).resolve().parents[1]
# What commands run, and what is preloaded: targets of the build.
NATIVE = (
    *portable.LIBRARIES,
    "stretto-kv",
    "stretto-pmix",
    "stretto-core-to-core",
    "stretto-keeper",
    "stretto-kv-bench",
    "stretto-model",
    "stretto-node-model",
    "stretto-probe",
    "stretto-top",
    "stretto-topology",
    "stretto-verify",
)
OLDEST_PYTHON = "3.10"
# Most commands work without them. They, or what they need, have code for one version of Python.
COMPILED = ("numpy", "matplotlib", "jinja2")


def copy_tool(package: Path) -> None:
    """The Python package and, as in an installed one, the sources beside it."""
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "source", "prebuilt"))
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


def add_dependencies(folder: Path, wheels: Path | None = None) -> None:
    """The Python packages that the tool needs, for this version of Python. `wheels`: a directory
    that has them; None: PyPI."""
    _pip("install", "-q", "--target", str(folder), *_from(wheels), *_project()["project"]["dependencies"])
    shutil.rmtree(folder / "bin", ignore_errors=True)


def add_pure_dependencies(folder: Path, python: str, wheels: Path | None = None) -> None:
    """The same without compiled packages, in versions for Python `python` and later."""
    # Without the conditions: pip would judge them by this Python.
    lines = [line.partition(";")[0].strip() for line in _project()["project"]["dependencies"]]
    wanted = [line for line in lines if re.match(r"[\w-]+", line).group() not in COMPILED]
    store = build_root() / "wheels" / python
    shutil.rmtree(store, ignore_errors=True)
    target = ["--python-version", python, "--implementation", "py", "--platform", "any", "-d", str(store)]
    _pip("download", "-q", "--only-binary=:all:", *target, *_from(wheels), *wanted)
    for wheel in sorted(store.glob("*.whl")):
        zipfile.ZipFile(wheel).extractall(folder)


def _pip(command: str, *words: str) -> None:
    try:
        build.run_tool([sys.executable, "-m", "pip", command, "--disable-pip-version-check", *words])
    except build.BuildError as error:
        raise build.BuildError(f"Python packages cannot be had: {pypi.why_failed(str(error))}; see --wheels") from None


def _from(wheels: Path | None) -> Sequence[str]:
    return ["--no-index", "--find-links", str(wheels.absolute())] if wheels else []
