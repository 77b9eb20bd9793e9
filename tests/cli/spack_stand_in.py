# SPDX-License-Identifier: BSD-3-Clause
"""A stand-in for the parts of Spack that packaging/spack uses. It runs all code of the recipe, where
Spack cannot be had. It knows nothing of Spack's solver, and so takes directives as they are."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

DIRECTIVES = ("conflicts", "depends_on", "license", "requires", "variant", "version")


class Executable:
    def __init__(self, path: str | Path) -> None:
        self.path, self.environment = str(path), {}

    def add_default_env(self, name: str, value: str) -> None:
        self.environment[name] = value

    def __call__(self, *words: Any, output: Any = None, error: Any = None) -> str:
        line, pipe = [self.path, *map(str, words)], subprocess.PIPE
        done = subprocess.run(line, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **self.environment})
        if done.returncode:
            raise RuntimeError(f"{line}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return (done.stdout if output is str else "") + (done.stderr if error is str else "")


class Prefix(str):
    def __getattr__(self, name: str) -> Prefix:
        return Prefix(os.path.join(self, name))


class Spec:
    def __init__(self, variants: set[str], dependencies: dict[str, Path]) -> None:
        self.variants, self.dependencies = variants, dependencies

    def satisfies(self, text: str) -> bool:
        assert text.startswith("+"), text
        return text[1:] in self.variants

    def __getitem__(self, name: str) -> Any:
        command = SimpleNamespace(path=sys.executable)
        return SimpleNamespace(prefix=Prefix(self.dependencies[name]), command=command)


class CMakePackage:
    """Of a checkout in `source`, built and installed below `place`."""

    after: list[str] = []

    def __init__(self, source: Path, place: Path, spec: Spec) -> None:
        self.spec, self.place, self.prefix = spec, place, Prefix(place / "prefix")
        self.stage = SimpleNamespace(source_path=str(source))
        self.builder = SimpleNamespace(build_directory=str(place / "build"))
        self.test_suite = SimpleNamespace(current_test_cache_dir=str(place / "cache"))

    def define(self, name: str, value: Any) -> str:
        return f"-D{name}:BOOL={'ON' if value else 'OFF'}" if isinstance(value, bool) else f"-D{name}:STRING={value}"

    def install(self) -> None:
        source, build = self.stage.source_path, self.builder.build_directory
        words = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_INSTALL_PREFIX={self.prefix}"]
        cmake = Executable("cmake")
        cmake("-S", source, "-B", build, *words, *self.cmake_args())
        cmake("--build", build)
        cmake("--install", build)
        for name in self.after:
            getattr(self, name)()


def run_after(phase: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    assert phase == "install"

    def add(function: Callable[[Any], None]) -> Callable[[Any], None]:
        CMakePackage.after.append(function.__name__)
        return function

    return add


def find_libraries(name: str, root: str, recursive: bool) -> list[str]:
    return [str(path) for path in (Path(root).rglob if recursive else Path(root).glob)(f"{name}.so")]


def cache_extra_test_sources(package: CMakePackage, names: list[str]) -> None:
    for name in names:
        shutil.copytree(Path(package.stage.source_path, name), package.place / "cache" / name)


@contextlib.contextmanager
def working_dir(path: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


@contextlib.contextmanager
def nothing(*_: Any, **__: Any) -> Iterator[None]:
    yield


def modules() -> dict[str, ModuleType]:
    """What the recipe imports, by name."""
    package, build_systems = ModuleType("spack.package"), ModuleType("spack_repo.builtin.build_systems.cmake")
    for name in DIRECTIVES:
        setattr(package, name, lambda *_, **__: None)
    for each in (Executable, cache_extra_test_sources, find_libraries, run_after, working_dir):
        setattr(package, each.__name__, each)
    package.join_path = os.path.join
    package.test_part = package.when = nothing
    build_systems.CMakePackage, build_systems.generator = CMakePackage, lambda *_: None
    return {module.__name__: module for module in (package, build_systems)}
