# SPDX-License-Identifier: BSD-3-Clause
"""When something is configured and built, and what serves where building is no choice."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from stretto.core import batch
from stretto.native import build, configuring, packages, ready

Tool = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]


# ---- configuring ---------------------------------------------------------------------------------

# Its part "extra" needs a header in the folder `packages`.
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(small LANGUAGES NONE)
include(StrettoOptional.cmake)
stretto_find_header(EXTRA_INCLUDE extra.h ${CMAKE_SOURCE_DIR}/nowhere ${CMAKE_SOURCE_DIR}/packages)
if(EXTRA_INCLUDE)
  add_custom_target(extra)
endif()
stretto_write_looked_at()
"""
PRESETS = '{"version": 3, "configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "x"}]}'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "project"
    (place / "packages").mkdir(parents=True)
    (place / "CMakeLists.txt").write_text(PROJECT)
    (place / "CMakePresets.json").write_text(PRESETS)
    shutil.copy(ROOT / "cmake/StrettoOptional.cmake", place)
    monkeypatch.setattr(configuring, "_definitions", lambda *_: {})
    return place


@pytest.fixture
def has_extra(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Configures as an up-to-date build does, and says whether the part is known."""

    def ask(place: Path = project) -> bool:
        monkeypatch.setattr(configuring, "root", lambda: place)
        configuring.configure("release", place / "build", quiet=True)
        return "build extra:" in (place / "build/build.ninja").read_text()

    return ask


def test_what_packages_bring_and_take_is_found_and_missed(project: Path, has_extra: Callable[[], bool]) -> None:
    """`./stretto test` installs Debian's Open MPI, with pmix.h, after `./stretto demo` has built."""
    assert not has_extra()
    (project / "packages/extra.h").touch()
    assert has_extra()
    (project / "packages/extra.h").unlink()
    assert not has_extra()


def test_nothing_is_configured_twice(
    project: Path, has_extra: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    has_extra()
    monkeypatch.setattr(configuring, "run_tool", lambda *_, **__: pytest.fail("configured again"))
    has_extra()


def test_every_optional_header_is_looked_at_again() -> None:
    """In CMake, find_path of its own would remember for good what it has not found."""
    for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")]:
        assert "find_path(" not in path.read_text() or path.name == "StrettoOptional.cmake", path


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_checkout_may_be_copied_and_moved(
    project: Path, has_extra: Callable[..., bool], is_moved: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """CMake refuses a build that was made at another place."""
    (project / "packages/extra.h").touch()
    has_extra()
    other = project.with_name("other")
    (shutil.move if is_moved else shutil.copytree)(project, other)
    assert has_extra(other)
    assert "it is built anew" in capfd.readouterr().err
    assert str(project) not in (other / "build/build.ninja").read_text()


# ---- what is there already -----------------------------------------------------------------------


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one source and its library, built later. Ninja is not called."""
    place = tmp_path / "checkout"
    (place / "src").mkdir(parents=True)
    source, library = place / "src/x.cpp", place / "build/release/libstretto-openmpi.so"
    source.touch()
    library.parent.mkdir(parents=True)
    library.touch()
    os.utime(source, (1000, 1000))
    ready.note_built(library.parent, ["stretto-openmpi"], 2000)
    monkeypatch.setattr(ready, "root", lambda: place)
    for module in (ready, build):
        monkeypatch.setattr(module, "build_root", lambda: place / "build")
    monkeypatch.setattr(build.prebuilt, "has", lambda _: False)
    monkeypatch.setattr(build.configuring, "configure", lambda *_: None)
    monkeypatch.setattr(build, "run_tool", lambda *_, **__: print("built"))
    for variable in batch.NUMBERS:
        monkeypatch.delenv(variable, raising=False)
    ready.announce.cache_clear()
    ready._say_older.cache_clear()
    return place


def said(capfd: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """What a build of the library prints."""
    build.ensure_built("release", ["stretto-openmpi"])
    done = capfd.readouterr()
    return done.out, " ".join(done.err.split())


def change(built: Path) -> None:
    os.utime(built / "src/x.cpp", (3000, 3000))


def test_without_a_compiler_what_is_there_serves(
    built: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    change(built)
    assert said(capfd) == ("built\n", "")
    change(built)
    monkeypatch.setattr(packages, "missing", lambda _: list(packages.requirements("build")))
    assert said(capfd) == ("", "")
    with pytest.raises(build.BuildError, match=r"lacks g\+\+"):
        build.ensure_built("release", ["stretto-mpich"])


def test_a_job_builds_nothing_that_is_there(
    built: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PBS_JOBID", "71")
    assert said(capfd) == ("", "")
    change(built)
    out, error = said(capfd)
    assert out == "" and "is older than its sources, and is used" in error
    assert said(capfd) == ("", ""), "one warning"


def test_a_job_says_what_it_builds(
    built: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (built / "build/release/libstretto-openmpi.so").unlink()
    monkeypatch.setenv("SLURM_JOB_ID", "71")
    out, error = said(capfd)
    assert out == "built\n"
    assert "job 71 of Slurm builds stretto-openmpi first, which may take" in error and "stretto env --library" in error


def test_the_build_of_a_checkout_serves_who_may_not_write_to_it(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ready, "build_root", lambda: tmp_path / "cache/build")
    assert said(capfd) == ("", "")


COMPILERS = ("gcc", "g++", "cc", "c++", "cmake", "ninja")


def test_a_built_checkout_needs_no_compiler(stretto: Tool, tmp_path: Path) -> None:
    """With a PATH that has none."""
    if not shutil.which("mpiexec.openmpi", path="/usr/bin"):
        pytest.skip("needs Debian's Open MPI")
    build.library("openmpi")
    for path in Path("/usr/bin").iterdir():
        if path.name not in COMPILERS:
            (tmp_path / path.name).symlink_to(path)
    env = {"PATH": str(tmp_path)}
    assert stretto("env", "--library", "--mpi", "openmpi", env=env).stdout.endswith("libstretto-openmpi.so\n")
    assert "export LD_PRELOAD=" in stretto("env", "--mpi", "openmpi", env=env).stdout
    line = ("run", "-n", "2", "--mpi", "/usr/bin/mpiexec.openmpi", "-s", "wait=yield")
    program = ("--", "/bin/sh", "-c", 'echo "$LD_PRELOAD"')
    assert "LD_PRELOAD" in stretto(*line, "--dry-run", *program, env=env).stdout
    done = stretto(*line, *program, env=env)
    assert done.stdout.count("libstretto-openmpi.so") == 2, done.stderr
    looked = stretto("doctor", "--", "/bin/true", env=env)
    assert "missing: g++, gcc, cmake, ninja" in looked.stdout and looked.returncode == 0, looked.stdout + looked.stderr
